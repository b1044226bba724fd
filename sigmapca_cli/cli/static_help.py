"""Help for `sigmapca train` from the dataclasses and the files of `conf/`, without importing Hydra."""

import dataclasses
import textwrap
from typing import Any

from typer.core import TyperCommand

from sigmapca_cli.settings.conf_files import groups

KNOBS = (
    "a", "k", "seed", "epochs", "steps", "batch_size", "lr", "init", "device", "threads", "if_exists",
    "objective", "tracker", "tags",
)  # fmt: skip

EXAMPLES = """\
  sigmapca train model=nlpca a=4
  sigmapca train model=nlpca data=planted k=12 steps=6000
  sigmapca train -m a=1,2,4,8 seed=0,1,2
  sigmapca train model=nlpca recipe=paper data=cifar10 data.path=FOLDER
  sigmapca train model=nlpca --cfg job --resolve"""


def group_lines() -> list[str]:
    """One entry a group: its name and its choices, wrapped to 80 columns."""
    lines = []
    for name, choices in groups().items():
        head = f"  {name:<13} "
        lines += textwrap.wrap(
            ", ".join(choices),
            78,
            initial_indent=head,
            subsequent_indent=" " * len(head),
            break_on_hyphens=False,
        )
    return lines


def knob_lines() -> list[str]:
    """The top-level knobs with their defaults, those of the default recipe; a model or a recipe may set others."""
    import yaml

    from sigmapca_cli.settings.conf_files import conf_folder
    from sigmapca_cli.settings.schema import Config

    recipe = yaml.safe_load((conf_folder() / "recipe" / "default.yaml").read_text("utf-8"))
    defaults = {**{field.name: field.default for field in dataclasses.fields(Config)}, **recipe}
    cells = [f"{name}={'null' if defaults[name] is None else defaults[name]}" for name in KNOBS]
    return textwrap.wrap(
        "  ".join(cells), 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


class TrainCommand(TyperCommand):
    """Typer's command with the configuration's choices under its options."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, options, then groups, knobs and examples."""
        super().format_help(ctx, formatter)
        for title, lines in (
            ("Groups (choose by name, as in model=nlpca):", group_lines()),
            ("Knobs (defaults; a model or recipe may set others):", knob_lines()),
            ("Examples:", EXAMPLES.splitlines()),
        ):
            formatter.write("\n" + title + "\n" + "\n".join(lines) + "\n")

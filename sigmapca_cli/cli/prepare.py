"""`extract-patches`, `mix-signals`, `sample-points`: data prepared as one file, through Hydra's `data` group."""

import shlex
from pathlib import Path

import typer

from sigmapca_cli.cli.outputs import claim

OVERRIDES = typer.Argument(None, metavar="OVERRIDE", help="data=NAME and data.key=value.")
OUTPUT = typer.Option(None, "--output", "-o", metavar="FILE", help="Default: data/NAME-HASH.h5.")
CFG = typer.Option(None, "--cfg", "-c", metavar="WHAT", help="Print the config (job, hydra, all).")


def extract_patches(
    overrides: list[str] = OVERRIDES,
    output: str = OUTPUT,
    offline: bool = typer.Option(False, "--offline", help="Never download."),
    cfg: str = CFG,
) -> None:
    """Bare, it means CIFAR-10: in data/, in $SIGMAPCA_DATA, else downloaded."""
    extra = ["data.offline=true"] if offline else []
    prepare("pixels", "cifar10", [*(overrides or []), *extra], output, cfg)


def mix_signals(overrides: list[str] = OVERRIDES, output: str = OUTPUT, cfg: str = CFG) -> None:
    """The paper's three signals, or WAV files."""
    prepare("signals", "signals", overrides or [], output, cfg)


def sample_points(overrides: list[str] = OVERRIDES, output: str = OUTPUT, cfg: str = CFG) -> None:
    """Uniform or Laplace points."""
    prepare("made", "points", overrides or [], output, cfg)


def prepare(holds: str, default: str, overrides: list[str], output: str | None, cfg: str | None) -> None:
    """Prepare the file with the default data set unless another is given, and say how to use it."""
    from sigmapca_cli.cli.job import folders_of, show_configuration
    from sigmapca_cli.composition.compose import compose_job
    from sigmapca_cli.data.cache.preparing import prepare as prepared
    from sigmapca_cli.settings.quoting import shell_word

    words = [f"data={default}", *overrides]  # the last override of a group counts
    if cfg is not None:
        show_configuration(words, folders_of(), cfg)
        return
    from sigmapca_cli.runner.unread import refuse_all_but

    job = compose_job(words)
    refuse_all_but(("recipe", "experiment"), job, "prepared data")
    data = job.cfg.data
    if output:  # a file of the same options is used as it is, and no other is replaced
        claim(output, reads=[data.path], force=True)
    path = prepared(data, Path(output) if output else None, holds)
    print(path)
    print(f"  sigmapca data {shlex.quote(str(path))}")
    print(f"  sigmapca train data=prepared {shell_word('data.path', path)}")

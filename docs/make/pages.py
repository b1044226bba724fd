"""Makes docs/methods/NAME.md, docs/methods/index.md and docs/commands.md: python docs/make/pages.py [--check]

A page a method comes from the catalogue and conf/model, the command reference from the options that the commands have.
"""

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
MADE = "<!-- Made by `python docs/make/pages.py`: edit {} instead. -->\n"
GROUPS = ("nonlinearity", "sigma", "constraint", "ordering", "optimizer")


def pages() -> dict[Path, str]:
    """Return every page that this script makes, with its text."""
    from sigmapca_cli.methods.catalogue import CATALOGUE

    made = {DOCS / "methods" / f"{row.name}.md": method_page(row) for row in CATALOGUE.values()}
    return {DOCS / "methods" / "index.md": index_page(), DOCS / "commands.md": commands_page(), **made}


def method_page(row: Any) -> str:
    """Return the page of one method: equation, place in the paper, what it identifies, settings and filters."""
    from sigmapca_cli.methods.catalogue import NOTATION

    lines = [
        MADE.format("sigmapca_cli/methods/catalogue.py or conf/model"),
        f"# {row.name}",
        "",
        f"A method of the family *{row.family}*. [All methods](index.md) · [how methods are composed](../methods.md)",
        "",
        f"    {row.equation}",
        "",
        *(f"* {meaning}" for symbol, meaning in NOTATION.items() if symbol in row.equation),
        "",
        "| | |",
        "|---|---|",
        f"| in the paper | {escaped(row.source)} |",
        f"| identifies | {escaped(row.identifies)} |",
        *([f"| note | {escaped(row.note)} |"] if row.note else []),
        *(f"| `{key}` | `{value}` |" for key, value in settings(row.name)),
        "",
        "```sh",
        f"sigmapca train model={row.name}",
        "```",
        "",
    ]
    if (DOCS / "methods" / f"{row.name}.png").exists():
        lines += [
            f"![The first 16 filters of {row.name}]({row.name}.png)",
            "",
            "The first 16 filters on 11 × 11 colour patches of two photographs, in the order of the run, after at most "
            "4,000 steps from PCA, which some methods need longer to leave: `make method-pictures`.",
            "",
        ]
    return squeezed(lines)


def settings(name: str) -> list[tuple[str, str]]:
    """Return the choices and numbers that conf/model/NAME.yaml sets, as dotted key and value."""
    import yaml

    text = (DOCS.parent / "conf" / "model" / f"{name}.yaml").read_text("utf-8")
    config = yaml.safe_load(text)
    chosen: dict[str, Any] = {}
    for entry in config.pop("defaults", []):
        for key, value in entry.items() if isinstance(entry, dict) else ():
            chosen[str(key).removeprefix("override /")] = value
    flat = {k: v for k, v in chosen.items() if k in GROUPS}
    for key, value in config.items():
        inner = value.items() if isinstance(value, dict) and key != "regularisers" else ()
        flat |= {f"{key}.{k}": v for k, v in inner} if inner else {key: value}
    hidden = ("model.name", "model.family", "model.kind")
    return [(k, as_text(v)) for k, v in flat.items() if k not in hidden and v is not None]


def as_text(value: Any) -> str:
    """Return a value as the command line takes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {as_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_text, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def index_page() -> str:
    """Return the list of all methods by family."""
    from sigmapca_cli.methods.catalogue import CATALOGUE

    lines = [
        MADE.format("sigmapca_cli/methods/catalogue.py"),
        "# All methods",
        "",
        "`sigmapca models` prints this list. [How methods are composed](../methods.md), and how to choose one.",
    ]
    for family in dict.fromkeys(row.family for row in CATALOGUE.values()):
        lines += [
            "",
            f"## {family[0].upper()}{family[1:]}",
            "",
            "| method | equation | identifies |",
            "|---|---|---|",
        ]
        lines += [
            f"| [{row.name}]({row.name}.md) | {escaped(row.equation)} | {escaped(row.identifies)} |"
            for row in CATALOGUE.values()
            if row.family == family
        ]
    return squeezed([*lines, ""])


def commands_page() -> str:
    """Return the reference of all commands: usage, arguments and options, from the commands themselves."""
    from typer.main import get_command

    from sigmapca_cli.cli.app import app

    root: Any = get_command(app)
    lines = [
        MADE.format("the commands in sigmapca_cli/cli"),
        "# Commands",
        "",
        root.help,
        "",
        "`sigmapca COMMAND --help` prints the same. `--debug` behind any command shows a traceback.",
        "Exit status: 0 done, 1 failed, 2 bad usage or input, 75 stopped and resumable, 130 Ctrl-C.",
        "",
        *table(root),
    ]
    for name, command in root.commands.items():
        lines += [
            "",
            f"## sigmapca {name}",
            "",
            sentence(command.help),
            "",
            f"    {usage(name, command)}",
            "",
        ]
        lines += table(command)
    return squeezed([*lines, ""])


def usage(name: str, command: Any) -> str:
    """Return the usage line of a command."""
    arguments = [argument_name(p) for p in command.params if p.param_type_name == "argument"]
    return " ".join(["sigmapca", name, "[OPTIONS]", *arguments])


def argument_name(parameter: Any) -> str:
    """Return an argument as a usage line shows it."""
    name = parameter.metavar or parameter.name.upper()
    name = name if parameter.nargs == 1 or name.endswith("...") or "..." in name else f"{name}..."
    return name if parameter.required else f"[{name}]"


def table(command: Any) -> list[str]:
    """Return the arguments and options of a command as a table."""
    rows = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        else:
            value = "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
            names = ", ".join(f"`{flag}{value}`" for flag in sorted(parameter.opts, key=len, reverse=True))
        rows.append(f"| {names} | {escaped(sentence(parameter.help))} |")
    return ["| | |", "|---|---|", *rows] if rows else []


def sentence(text: str | None) -> str:
    """Return a help text on one line."""
    return " ".join((text or "").split())


def escaped(text: str) -> str:
    """Return a text that a Markdown table shows as it is."""
    for sign in "\\|*_<>[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def squeezed(lines: list[str]) -> str:
    """Join lines; of several empty ones in a row one stays."""
    kept = [line for i, line in enumerate(lines) if line.strip() or (i and lines[i - 1].strip())]
    return "\n".join(kept).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check name those that are not what they should be."""
    made = pages()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    stale += [path for path in (DOCS / "methods").glob("*.md") if path not in made]
    for path in stale:
        print(path.relative_to(DOCS.parent))
        if "--check" not in arguments:
            path.parent.mkdir(exist_ok=True)
            path.write_text(made[path], "utf-8") if path in made else path.unlink()
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

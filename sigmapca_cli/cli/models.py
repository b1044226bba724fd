"""`sigmapca models [NAME]`: the catalogue, each method with its equation."""

import typer

from sigmapca_cli.settings.checks import nearest
from sigmapca_cli.system.errors import InputError


def models(name: str = typer.Argument(None, help="One model, to show it whole.")) -> None:
    """Print the catalogue in families, or one entry."""
    from sigmapca_cli.methods.catalogue import CATALOGUE, NOTATION

    if name is None:
        for family in dict.fromkeys(row.family for row in CATALOGUE.values()):
            print(f"\n{family}")
            for row in CATALOGUE.values():
                if row.family == family:
                    print(wrapped(f"  {row.name:<28} ", row.equation))
        print("\nsigmapca models NAME shows one whole; sigmapca train model=NAME runs it")
        return
    if name not in CATALOGUE:
        raise InputError(f"{name}: no such model{nearest(name, CATALOGUE)}; `sigmapca models` lists them")
    row = CATALOGUE[name]
    print(f"{row.name}  ({row.family})\n\n{wrapped('  ', row.equation)}\n")
    for label, value in (("paper", row.source), ("identifies", row.identifies), ("note", row.note)):
        if value:
            print(wrapped(f"  {label:<11} ", value))
    for symbol, meaning in NOTATION.items():
        if symbol in row.equation:
            print(wrapped(f"  {'where':<11} ", meaning))
    print(f"\n  sigmapca train model={row.name}")


def wrapped(head: str, text: str) -> str:
    """Text beside its head within 79 columns; in a pipe too, where lines are read by people as often."""
    import textwrap

    indent = " " * len(head)
    return textwrap.fill(
        text,
        79,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )

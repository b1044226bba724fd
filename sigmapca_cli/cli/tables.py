"""What commands print: a table for people, JSON or comma-separated values for programs."""

import json
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import csv_cell


def refuse_two_forms(as_json: bool, as_csv: bool) -> None:
    """Raise InputError where both forms for programs are asked for."""
    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other: give one of them")


def print_json(value: Any) -> None:
    """Print one JSON value."""
    print(json.dumps(value, default=str, indent=1))


def print_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print comma-separated values; an empty field where a value is missing."""
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([csv_cell(name) for name in header])
    writer.writerows([["" if value is None else csv_cell(value) for value in row] for row in rows])


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Return plain text columns: those numbered in `left` to the left, the others to the right."""
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for i, name in enumerate(header):
        made.add_column(Text(name), justify="left" if i in left else "right", no_wrap=True)
    for row in rows:
        made.add_row(*map(Text, row))
    out = io.StringIO()
    Console(file=out, width=1_000_000, color_system=None).print(made)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

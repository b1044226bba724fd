"""`sp.runs`: the runs below a folder, as a list and as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, overload

from sigmapca_cli.api.run import Run
from sigmapca_cli.storage.find import find_runs
from sigmapca_cli.storage.rows import COLUMNS, as_rows, condition
from sigmapca_cli.system.errors import InputError

SHOWN = COLUMNS[: COLUMNS.index("seconds")]


class Runs(Sequence[Run]):
    """Runs, oldest first: a sequence of `Run`, and a table of their settings and results.

    Parameters
    ----------
    rows : list of dict
        One summary for each run, as `sigmapca runs --json` prints it.
    """

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        if isinstance(index, slice):
            return Runs(self.rows[index])
        return Run.open(self.rows[index]["folder"])

    def __iter__(self) -> Iterator[Run]:
        for row in self.rows:
            yield Run.open(row["folder"])

    def to_pandas(self) -> Any:
        """Return the table as a frame of pandas.

        Returns
        -------
        pandas.DataFrame
            One row for each run, with its settings, metrics and folder.
        """
        import pandas

        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        many = f"{len(self)} run{'s' * (len(self) != 1)}"
        return "\n".join([many, *("  ".join(cells(row)) for row in self.rows)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in SHOWN)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells(row)) + "</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cells(row: dict[str, Any]) -> list[str]:
    """Return the columns SHOWN of a row as text."""
    values = [row.get(name) for name in SHOWN]
    return ["–" if v in (None, "") else f"{v:.4g}" if isinstance(v, float) else str(v) for v in values]


def runs(folder: str | os.PathLike[str] | None = None, where: str | None = None) -> Runs:
    """Return the runs below a folder.

    Parameters
    ----------
    folder : str or PathLike, optional
        Where to look: $SIGMAPCA_OUTPUTS, else ./outputs, unless given.
    where : str, optional
        A condition, as `sigmapca runs --where` has it: "a>2 and model==nlpca".

    Returns
    -------
    Runs
        Oldest first; one that cannot be read has the status "unreadable" and says why in `error`.

    Raises
    ------
    InputError
        If there is no such folder, or the condition cannot be read.
    """
    if folder is not None and not Path(folder).is_dir():
        raise InputError(f"{os.fspath(folder)}: no such folder")
    rows = as_rows(find_runs(folder))
    if where:
        holds = condition(where, list(dict.fromkeys(name for row in rows for name in row)))
        rows = [row for row in rows if holds(row)]
    return Runs(rows)

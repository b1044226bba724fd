"""A matrix with what its file says about it: names of columns, where a row stands, what was left out."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.config import DataConfig

MOST_NAMED = 12
# What programs call the column that counts the rows.
COUNTERS = {
    "", "#", "id", "idx", "index", "key", "level_0", "n", "no", "no.", "nr", "nr.", "number", "obs", "observation",
    "row", "row.names", "row_id", "row_number", "rowid", "rownames", "unnamed: 0", "unnamed: 0.1",
}  # fmt: skip


class WordColumns(InputError):
    """Columns that hold no numbers: `names` (or numbers) are what data.drop would leave out, `kinds` what they hold."""

    def __init__(self, message: str, names: Sequence[str | int], kinds: Sequence[str]) -> None:
        super().__init__(message)
        self.names, self.kinds = list(names), list(kinds)


@dataclass
class Table:
    """A matrix (n, p) as read and not yet checked: an array, a memory map or an open h5py data set."""

    data: Any
    names: list[str] | None = None  # of the columns; None where the file has none
    units: dict[str, str] = field(default_factory=dict)  # of the columns, by name, where the file says
    notes: list[str] = field(
        default_factory=list
    )  # what was left out or taken for something, one sentence each
    line_of: Callable[[int], int] | None = None  # of a text file: the line of row i, as an editor counts
    labels: list[str] | None = None  # of the rows: the index that was left out
    columns: NDArray[np.int64] | None = None  # of `data`: those to take, in this order; None: all


def chosen(
    names: Sequence[str] | None, width: int, cfg: DataConfig, where: object, left_out: Sequence[int] = ()
) -> list[int]:
    """Positions of the columns to read, in order: data.columns, or all but `left_out`; then without data.drop.

    Raises InputError for a name that the file does not have, and where nothing is left.
    """
    if names is not None and (expected := getattr(cfg, "expected", None)) is not None:
        return in_order(names, expected, where)
    if (wanted := getattr(cfg, "columns", None)) is not None:
        keep = [place_of(name, names, width, "columns", where) for name in wanted]
        if twice := next((name for name, i in zip(wanted, keep, strict=True) if keep.count(i) > 1), None):
            raise InputError(f"data.columns names {twice!r} twice: a column counts once")
    else:
        keep = [i for i in range(width) if i not in left_out]
    unwanted = getattr(cfg, "drop", None) or []
    dropped = {place_of(name, names, width, "drop", where) for name in unwanted}
    keep = [i for i in keep if i not in dropped]
    if not keep:
        raise InputError(f"{where}: no column is left to read: choose some with data.columns=, or drop fewer")
    return keep


def in_order(names: Sequence[str], expected: Sequence[str], where: object) -> list[int]:
    """Where the columns of a run stand in a new table; the others take no part."""
    if lacking := [name for name in expected if name not in names]:
        raise InputError(
            f"{where} has no column {listed(lacking)}, which the run was trained on; it has {listed(names)}"
        )
    return [list(names).index(name) for name in expected]


def place_of(name: str | int, names: Sequence[str] | None, width: int, key: str, where: object) -> int:
    """The position of a column given by name, or by a number counted from 0."""
    text = str(name)
    if names is not None and text in names:
        if list(names).count(text) > 1:
            raise InputError(f"{where} has {list(names).count(text)} columns named {text!r}: rename them")
        return list(names).index(text)
    if isinstance(name, int) or (names is None and text.isdecimal()):
        if 0 <= int(name) < width:
            return int(name)
        raise InputError(f"data.{key}={name}: {where} has columns 0 to {width - 1}, counted from 0")
    if names is None:
        raise InputError(
            f"data.{key}={text}: the columns of {where} have no names; give numbers, counted from 0"
        )
    near = get_close_matches(text, names, 1, 0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(f"{where} has no column {text!r}: {hint}it has {listed(names)}")


def listed(names: Sequence[str]) -> str:
    """Names in a message, not all of thousands."""
    shown = ", ".join(names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def override(key: str, names: Sequence[Any]) -> str:
    """data.drop=[a,b] as a shell and Hydra take it, whatever the names hold."""
    words = [literal(name) for name in names]
    text = f"data.{key}={words[0] if len(words) == 1 else '[' + ','.join(words) + ']'}"
    return shlex.quote(text) if any(c in text for c in " '\"()[]$&;<>|*?!\\`#~{}") else text


def literal(value: Any) -> str:
    """A value as Hydra's grammar takes it: true, 3, a word as it is, anything else in double quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return str(value) if plain_word(str(value)) else hydra_quoted(str(value))


def plain_word(text: str) -> bool:
    """A word that Hydra's grammar takes as it is, and as text."""
    return bool(text) and text[0].isalpha() and all(c.isascii() and (c.isalnum() or c in "_.-") for c in text)


def hydra_quoted(text: str) -> str:
    """In double quotes, as Hydra's grammar wants other names."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unique(names: Sequence[str]) -> list[str]:
    """Names told apart as pandas does: a, a.1, a.2; an empty one becomes `Unnamed: 3`."""
    found: list[str] = []
    taken = set(names)
    for i, name in enumerate(names):
        name = name or f"Unnamed: {i}"
        if name in found:
            number = next(j for j in range(1, len(names) + 1) if f"{name}.{j}" not in taken)
            name = f"{name}.{number}"
            taken.add(name)
        found.append(name)
    return found


def counts(values: NDArray) -> bool:
    """Whether a column is 0, 1, 2, … or 1, 2, 3, …: at least three rows of it."""
    if len(values) < 3 or values.dtype.kind not in "iuf" or values[0] not in (0, 1):
        return False
    return bool(np.array_equal(values, np.arange(len(values)) + values[0]))


def is_counter(name: str | None, values: NDArray) -> bool:
    """Whether a column only numbers the rows: it counts, and is called so; a nameless one counts from 0."""
    if name is None:
        return bool(len(values)) and values[0] == 0 and counts(values)
    called = name.strip().lower()
    return (called in COUNTERS or called.endswith("id")) and counts(values)


def without_counter(table: Table, cfg: DataConfig, where: object) -> Table:
    """The table without a first column that only numbers the rows, and a sentence that says so."""
    explicit = getattr(cfg, "columns", None) is not None or not getattr(cfg, "recognise", True)
    explicit = explicit or (table.names is not None and getattr(cfg, "expected", None) is not None)
    data = table.data
    if explicit or not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] < 2:
        return table
    name = None if table.names is None else table.names[0]
    if not is_counter(name, data[:, 0]):
        return table
    called = "the first column" if name is None else f"column {name!r}"
    table.notes.append(
        f"{where}: {called} only numbers the rows ({data[0, 0]:.0f}, {data[1, 0]:.0f}, …): left out; "
        f"data.recognise=false reads it"
    )
    table.labels = [f"{value:.0f}" for value in data[:, 0]]
    table.data = data[:, 1:]
    if table.names is not None:
        table.names = table.names[1:]
    return table


def refuse_words(
    where: object, columns: Sequence[tuple[str | int, str, str]], have_numbers: bool
) -> InputError:
    """Columns that hold no numbers, as (name or number, kind, example): what to add to the command."""
    kinds: dict[str, list[str | int]] = {}
    for name, kind, _ in columns:
        kinds.setdefault(kind, []).append(name)
    if len(columns) == 1:
        name, kind, example = columns[0]
        what = f"column {shown_name(name)} is {kind} ({example[:30]!r})"
    else:
        what = "; ".join(
            f"{'columns' if len(names) > 1 else 'column'} {listed([shown_name(n) for n in names])} "
            f"{'are' if len(names) > 1 else 'is'} {kind}"
            for kind, names in kinds.items()
        )
    if not have_numbers:
        return InputError(f"{where}: {what}; no column holds numbers: give a table of numbers")
    pronoun = "it" if len(columns) == 1 else "them"
    names = [c[0] for c in columns]
    return WordColumns(
        f"{where}: {what}, not numbers: leave {pronoun} out with {override('drop', names)}",
        names,
        [c[1] for c in columns],
    )


def shown_name(name: str | int) -> str:
    """A column in a message: its name, or its number."""
    return f"number {name} (counted from 0)" if isinstance(name, int) else name

"""A matrix and what its file says about it: names of columns, line of each row, columns left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.on_disk.row_file import RowFile, collected
from sigmapca_cli.data.readers.columns import identifying_names
from sigmapca_cli.settings.quoting import shell_word
from sigmapca_cli.storage.grid import Grid
from sigmapca_cli.system.errors import InputError

MOST_NAMED = 12
# Names that programs give to the column that numbers the rows.
COUNTERS = {
    "", "#", "id", "idx", "index", "key", "level_0", "n", "no", "no.", "nr", "nr.", "number", "obs", "observation",
    "participant", "respondent", "row", "row.names", "row_id", "row_number", "rowid", "rownames", "sample", "spectrum",
    "subject", "unnamed: 0", "unnamed: 0.1",
}  # fmt: skip


class WordColumns(InputError):
    """Error for columns without numbers; names: their names or numbers, for data.drop; kinds: what they hold."""

    def __init__(self, message: str, names: Sequence[str | int], kinds: Sequence[str]) -> None:
        super().__init__(message)
        self.names, self.kinds = list(names), list(kinds)


@dataclass
class Table:
    """A matrix (n, p) as read and not yet checked: an array, a memory map or an open h5py data set."""

    data: Any
    names: list[str] | None = None  # of the columns; None if the file has none
    units: dict[str, str] = field(default_factory=dict)  # of the columns, by name, if the file has them
    notes: list[str] = field(default_factory=list)  # sentences on what was left out or taken for something
    line_of: Callable[[int], int] | None = None  # of a text file: row to line, counted from 1
    labels: list[str] | None = None  # of the rows: the index column, which is not in `data`
    subjects: NDArray[np.int64] | None = None  # of the rows: whose they are, numbered as they appear
    pieces: tuple[int, ...] = ()  # rows at which a new file or a stretch after a gap begins
    timed: bool = False  # a column counts the time
    sample_rate: float | None = None  # rows a second, of a recording
    grid: Grid | None = None  # where the columns lie in an array of more than two dimensions
    columns: NDArray[np.int64] | None = None  # columns of `data` to use, in this order; None: all


def chosen(
    names: Sequence[str] | None, width: int, cfg: DataConfig, where: object, left_out: Sequence[int] = ()
) -> list[int]:
    """Return the positions of the columns to read: data.columns, or all but `left_out`, without data.drop.

    Raise InputError for a name that the file does not have, and if no column remains.
    """
    if names is not None and (expected := getattr(cfg, "expected", None)) is not None:
        return in_order(names, expected, where, left_out)
    if (wanted := cfg.columns) is not None:
        keep = [place_of(name, names, width, "columns", where) for name in wanted]
        if twice := next((name for name, i in zip(wanted, keep, strict=True) if keep.count(i) > 1), None):
            raise InputError(f"data.columns names {twice!r} twice: name each column once")
    else:
        keep = [i for i in range(width) if i not in left_out]
    unwanted = cfg.drop or []
    dropped = {place_of(name, names, width, "drop", where) for name in unwanted}
    keep = [i for i in keep if i not in dropped]
    if not keep:
        raise InputError(
            f"{where}: no column remains: choose some with data.columns=, or drop fewer with data.drop="
        )
    return keep


def in_order(
    names: Sequence[str], expected: Sequence[str], where: object, left_out: Sequence[int] = ()
) -> list[int]:
    """Return the positions of the columns of a run in a new table; other columns are ignored.

    They go by name, or by position where names occur twice and the table has as many columns as the run.
    """
    if lacking := [name for name in expected if name not in names]:
        lacking_words = (
            f"has no column {listed(lacking)}, which the run was trained on; it has {listed(names)}"
        )
    elif twice := [name for name in expected if list(names).count(name) > 1]:
        lacking_words = f"has several columns named {listed(twice)}: rename them as in the training data"
    else:
        return [list(names).index(name) for name in expected]
    rest = [i for i in range(len(names)) if i not in left_out]
    if identifying_names([names[i] for i in rest]) is None and len(rest) == len(expected):
        return rest
    raise InputError(f"{where} {lacking_words}")


def place_of(name: str | int, names: Sequence[str] | None, width: int, key: str, where: object) -> int:
    """Return the position of a column given by name, or by a number counted from 0."""
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
    """Return names for a message, at most MOST_NAMED of them."""
    shown = ", ".join(names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def override(key: str, names: Sequence[Any]) -> str:
    """Return data.KEY=[a,b], quoted for the shell and for Hydra."""
    return shell_word(f"data.{key}", names[0] if len(names) == 1 else list(names))


def without_names(table: Table, where: object) -> Table:
    """Return the table; names that do not identify its columns are set aside, with a note: columns go by position."""
    if table.names is not None and identifying_names(table.names) is None:
        twice = sorted({name for name in table.names if table.names.count(name) > 1 or not name})
        table.notes.append(
            f"{where}: the names of its columns are set aside, and columns go by position, because "
            f"{'one has no name' if not twice[0] else f'several are named {twice[0]}'}"
        )
        table.names = None
    return table


def names_beside(words: dict[str, NDArray], width: int) -> list[str] | None:
    """Return the names of the columns: the only array of `width` strings; None if there is none or several."""
    fitting = [value for value in words.values() if value.shape == (width,)]
    if len(fitting) != 1:
        return None
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in fitting[0].tolist()]


def counts(values: NDArray) -> bool:
    """Return whether a column is 0, 1, 2, … or 1, 2, 3, …, with at least three rows."""
    if len(values) < 3 or values.dtype.kind not in "iuf" or values[0] not in (0, 1):
        return False
    return bool(np.array_equal(values, np.arange(len(values)) + values[0]))


def is_counter(name: str | None, values: NDArray) -> bool:
    """Return whether a column only numbers the rows: by values and name; a nameless column must count from 0."""
    if name is None:
        return bool(len(values)) and values[0] == 0 and counts(values)
    called = name.strip().lower()
    return (called in COUNTERS or called.endswith("id")) and counts(values)


def without_counter(table: Table, cfg: DataConfig, where: object) -> Table:
    """Return the table without a first column that only numbers the rows, and with a note about it."""
    explicit = cfg.columns is not None or not cfg.recognise
    explicit = explicit or (table.names is not None and getattr(cfg, "expected", None) is not None)
    data = table.data
    if explicit or not isinstance(data, np.ndarray | RowFile) or len(data.shape) != 2 or data.shape[1] < 2:
        return table
    name = None if table.names is None else table.names[0]
    first = data[:, 0] if isinstance(data, np.ndarray) else data.block(0, 3)[:, 0]
    if not is_counter(name, first):
        return table
    if isinstance(data, RowFile):
        first = np.concatenate([block[:, 0] for block in data.blocks()])
        if not is_counter(name, first):
            return table
    called = "the first column" if name is None else f"column {name!r}"
    table.notes.append(
        f"{where}: {called} only numbers the rows ({first[0]:.0f}, {first[1]:.0f}, …): left out; "
        f"data.recognise=false reads it"
    )
    table.labels = [f"{value:.0f}" for value in first]
    if isinstance(data, RowFile):
        table.data = collected((block[:, 1:] for block in data.blocks()), data.shape[1] - 1, data.dtype)
    else:
        table.data = data[:, 1:]
    if table.names is not None:
        table.names = table.names[1:]
    return table


def refuse_words(
    where: object, columns: Sequence[tuple[str | int, str, str]], have_numbers: bool
) -> InputError:
    """Return the error for columns without numbers, (name or number, kind, example), with the option that helps."""
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
    """Return a column for a message: its name, or its number."""
    return f"number {name} (counted from 0)" if isinstance(name, int) else name


def in_array(row: int, column: int) -> str:
    """Return words for the place of a value in an array."""
    return f"at row {row}, column {column}, counted from 0"


def in_table(table: Table, kept: NDArray[np.int64] | None) -> Callable[[int, int], str] | None:
    """Return a function (row, column) to words for the place of a value in a table; None without names and lines."""
    if table.names is None and table.line_of is None:
        return None

    def place(row: int, column: int) -> str:
        row = row if kept is None else int(kept[row])
        name = f"column {column + 1}" if table.names is None else f"column {table.names[column]!r}"
        line = f"row {row}, counted from 0" if table.line_of is None else f"line {table.line_of(row)}"
        return f"on {line}, in {name}" if table.line_of is not None else f"in {name}, {line}"

    return place


def row_words(table: Table, kept: NDArray[np.int64] | None, part: slice) -> Callable[[int], str]:
    """Return a function from a row of the source to its name in the file, such as "line 7"."""
    first, step = part.start or 0, part.step or 1

    def words(row: int) -> str:
        row = first + row * step
        row = row if kept is None else int(kept[row])
        return f"row {row}" if table.line_of is None else f"line {table.line_of(row)}"

    return words

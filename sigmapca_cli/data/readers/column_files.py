"""Readers of Parquet and Feather, by pyarrow: columns with names and types, and the index that pandas stored."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.on_disk.row_file import collected
from sigmapca_cli.data.readers.table import Table, chosen, listed, override, place_of, refuse_words
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.packages import required
from sigmapca_cli.system.untrusted_files import damaged

INDEX = "__index_level_"  # pandas' name of an index without a name
Read = Callable[[list[int]], Iterator[Any]]


def read_columns(path: Path, cfg: DataConfig) -> Table:
    """Return the selected numeric columns of a Parquet or Feather file, of a large one on disk; only those are read."""
    arrow = required(f"{path} is Parquet or Feather, which", "pyarrow")

    with damaged(path), path.open("rb") as opened:
        schema, read = (_parquet if opened.read(4) == b"PAR1" else _feather)(path)
        names: list[str] = schema.names
        if not names:
            raise InputError(f"{path} has no columns: give a table of numbers")
        declared = [
            name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)
        ]
        index = [i for i, name in enumerate(names) if name in declared or name.startswith(INDEX)]
        index = index if cfg.recognise and cfg.columns is None else []
        keep = chosen(names, len(names), cfg, path, index)
        lists = [names[i] for i in keep if _is_list(schema.field(i).type)]
        if lists and len(keep) == 1:
            return Table(collected_lists(path, lists[0], read(keep), arrow))
        if lists:
            raise ListColumns(path, lists)
        kinds = [_kind(schema.field(i).type) for i in keep]
        bad: list[tuple[str | int, str, str]] = [
            (names[i], kind, str(schema.field(i).type))
            for i, kind in zip(keep, kinds, strict=True)
            if isinstance(kind, str)
        ]
        if bad:
            raise refuse_words(path, bad, have_numbers=len(bad) < len(keep))
        dtype = np.result_type(*kinds)
        if dtype != np.float64:  # with missing values a column is float64
            nulls = np.zeros(len(keep), np.int64)
            for batch in read(keep):
                nulls += [column.null_count for column in batch]
            dtype = np.result_type(*kinds, *([np.float64] if nulls.any() else []))
        data = collected((_values(batch, arrow, dtype) for batch in read(keep)), len(keep), dtype)
        labels = (
            [str(value) for batch in read(index[:1]) for value in batch[0].to_pylist()] if index else None
        )
    notes = []
    if index:
        called = f"column{'s' * (len(index) > 1)} {', '.join(names[i] for i in index)}"
        notes.append(
            f"{path}: the index, as the file says, is left out ({called}); data.recognise=false reads it"
        )
    return Table(data, [names[i] for i in keep], notes=notes, labels=labels)


def values_of(path: Path, name: str | int) -> list[Any]:
    """Return the values of one column of a Parquet or Feather file. Raise InputError if there is no such column."""
    with damaged(path), path.open("rb") as opened:
        schema, read = (_parquet if opened.read(4) == b"PAR1" else _feather)(path)
        place = place_of(name, schema.names, len(schema.names), "subject", path)
        return [value for batch in read([place]) for value in batch[0].to_pylist()]


class ListColumns(InputError):
    """Error for columns whose fields are lists of numbers, beside other columns; names: their names."""

    def __init__(self, path: Path, names: list[str]) -> None:
        super().__init__(
            f"{path}: column {listed(names)} holds lists of numbers beside other columns: read it as the matrix with "
            f"{override('columns', names[:1])}"
        )
        self.names = names


def _is_list(kind: Any) -> bool:
    import pyarrow.types as types

    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and not isinstance(_kind(kind.value_type), str))


def collected_lists(path: Path, name: str, batches: Iterator[Any], arrow: Any) -> Any:
    """Return the lists of a column as the rows of a matrix. Raise InputError for missing lists and other lengths."""
    width, blocks = 0, []

    def matrices() -> Iterator[NDArray]:
        nonlocal width
        for (column,) in batches:
            if not len(column):
                continue
            lengths = set(arrow.compute.list_value_length(column).to_pylist())
            width = width or next(iter(lengths)) or 0
            if lengths != {width} or not width:
                raise InputError(
                    f"{path}: the lists of column {name!r} have different lengths, or some are missing: make them equal"
                )
            values = column.flatten()
            kind = _kind(values.type)
            yield _values([values], arrow, np.float64 if values.null_count else kind).reshape(-1, width)

    rows = matrices()
    for block in rows:
        blocks.append(block)
        break
    if not blocks:
        raise InputError(f"{path} has no rows: give rows of numbers")
    return collected(chain(blocks, rows), width, blocks[0].dtype)


def _parquet(path: Path) -> tuple[Any, Read]:
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(path)
    names = file.schema_arrow.names

    def read(columns: list[int]) -> Iterator[Any]:
        wanted = [names[i] for i in columns]
        by_name = len(set(names)) == len(names)
        for batch in file.iter_batches(columns=wanted if by_name else None):
            yield [batch.column(name if by_name else i) for i, name in zip(columns, wanted, strict=True)]

    return file.schema_arrow, read


def _feather(path: Path) -> tuple[Any, Read]:
    import pyarrow as arrow
    from pyarrow import feather

    with path.open("rb") as opened:
        old = opened.read(4) == b"FEA1"
    if old:
        table = feather.read_table(path, memory_map=False)
        return table.schema, lambda columns: ([batch[i] for i in columns] for batch in table.to_batches())
    file = arrow.ipc.open_file(arrow.memory_map(str(path)))
    batches = range(file.num_record_batches)
    return file.schema, lambda columns: ([file.get_batch(b)[i] for i in columns] for b in batches)


def _kind(kind: Any) -> np.dtype | str:
    """Return the NumPy type of a column without missing values; a word for a column that holds no numbers."""
    import pyarrow.types as types

    if types.is_boolean(kind):
        return np.dtype(np.int8)
    if types.is_decimal(kind):
        return np.dtype(np.float64)
    if types.is_integer(kind) or types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    if types.is_temporal(kind):
        return "dates"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        return "text"
    return f"of type {kind}"


def _values(columns: Sequence[Any], arrow: Any, dtype: Any) -> NDArray:
    """Return columns side by side (m, p); nulls become NaN."""
    out = np.empty((len(columns[0]), len(columns)), dtype)
    for i, column in enumerate(columns):
        if arrow.types.is_boolean(column.type):
            column = column.cast(arrow.int8())
        elif arrow.types.is_decimal(column.type):
            column = column.cast(arrow.float64())
        out[:, i] = column.to_numpy(zero_copy_only=False)
    return out

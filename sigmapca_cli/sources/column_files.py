"""Readers of Parquet and Feather, by pyarrow: columns with names and types, and the index that pandas stored."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.config import DataConfig
from sigmapca_cli.sources.table import Table, chosen, refuse_words
from sigmapca_cli.untrusted_files import damaged, need_memory

INDEX = "__index_level_"  # pandas' name of an index without a name


def _pyarrow(path: Path, kind: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise InputError(f"{path} is {kind}, which needs a package: pip install pyarrow") from None
    return pyarrow


def read_parquet(path: Path, cfg: DataConfig) -> Table:
    """Return the selected numeric columns of a Parquet file; only those are read."""
    _pyarrow(path, "Parquet")
    import pyarrow.parquet as parquet

    with damaged(path):
        file = parquet.ParquetFile(path)
        schema, rows = file.schema_arrow, file.metadata.num_rows
        keep, notes, labels = _keep(path, schema, cfg)
        need_memory(rows * len(keep) * 8.0, path, "save a part of it, or .npy")
        table = file.read(columns=[*(schema.names[i] for i in keep), *labels])
    return _table(path, schema, table, keep, notes, labels)


def read_feather(path: Path, cfg: DataConfig) -> Table:
    """Return the selected numeric columns of a Feather (Arrow) file."""
    pyarrow = _pyarrow(path, "Feather")
    from pyarrow import feather

    with damaged(path):
        if path.read_bytes()[:4] == b"FEA1":
            table = feather.read_table(path, memory_map=False)
        else:
            with pyarrow.memory_map(str(path)) as source:
                table = pyarrow.ipc.open_file(source).read_all()
        keep, notes, labels = _keep(path, table.schema, cfg)
        need_memory(table.num_rows * len(keep) * 8.0, path, "save a part of it, or .npy")
    return _table(path, table.schema, table, keep, notes, labels)


def index_columns(schema: Any) -> list[str]:
    """Return the columns that pandas' metadata or their names declare as the index."""
    declared = (schema.pandas_metadata or {}).get("index_columns", [])
    named = [name for name in declared if isinstance(name, str)]
    return [name for name in schema.names if name in named or name.startswith(INDEX)]


def _keep(path: Path, schema: Any, cfg: DataConfig) -> tuple[list[int], list[str], list[str]]:
    """Return (columns to read, notes on left-out ones, index columns); raise InputError for columns without numbers."""
    import pyarrow.types as types

    names = schema.names
    if not names:
        raise InputError(f"{path} has no columns: give a table of numbers")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"{path} has {names.count(twice)} columns named {twice!r}: rename them")
    recognise = cfg.recognise and cfg.columns is None
    index = index_columns(schema) if recognise else []
    notes = []
    if index:
        notes.append(
            f"{path}: column{'s' * (len(index) > 1)} {', '.join(index)} {'are' if len(index) > 1 else 'is'} the "
            "index, as the file says: left out; data.recognise=false reads it"
        )
    keep = chosen(names, len(names), cfg, path, [names.index(name) for name in index])

    def numeric(kind: Any) -> bool:
        return (
            types.is_integer(kind)
            or types.is_floating(kind)
            or types.is_boolean(kind)
            or types.is_decimal(kind)
        )

    bad: list[tuple[str | int, str, str]] = [
        (names[i], _kind(schema.field(i).type), str(schema.field(i).type))
        for i in keep
        if not numeric(schema.field(i).type)
    ]
    if bad:
        raise refuse_words(path, bad, have_numbers=len(bad) < len(keep))
    return keep, notes, index[:1]


def _kind(kind: Any) -> str:
    import pyarrow.types as types

    if types.is_temporal(kind):
        return "dates"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        return "text"
    return f"of type {kind}"


def _table(
    path: Path, schema: Any, table: Any, keep: Sequence[int], notes: list[str], labels: list[str]
) -> Table:
    import pyarrow as pa

    columns = []
    for i in keep:
        column = table[schema.names[i]]
        with damaged(path):
            if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
                column = column.cast(pa.int8() if pa.types.is_boolean(column.type) else pa.float64())
            values = column.to_numpy()  # nulls become NaN
        columns.append(values.astype(np.float64) if column.null_count else values)
    found = [str(value) for value in table[labels[0]].to_pylist()] if labels else None
    return Table(np.column_stack(columns), [schema.names[i] for i in keep], notes=notes, labels=found)

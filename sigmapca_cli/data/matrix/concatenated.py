"""Several files as one matrix: a list, a pattern, or a folder of parts."""

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.cleaning.repair import blocks
from sigmapca_cli.data.locate import existing
from sigmapca_cli.data.on_disk import row_file
from sigmapca_cli.data.on_disk.row_file import RowFile, collected
from sigmapca_cli.data.readers.sparse_files import is_sparse
from sigmapca_cli.data.readers.table import Table, listed
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import refuse_special
from sigmapca_cli.system.untrusted_zarr import is_zarr

PARTS = (".npy", ".npz", ".csv", ".tsv", ".txt", ".h5", ".hdf5", ".nc", ".parquet", ".feather", ".mat")


def files_of(path: str | Sequence[str]) -> list[Path]:
    """Return the files that data.path means, sorted; numbers in their names are sorted as numbers."""
    if not isinstance(path, str):
        return [file for one in path for file in files_of(one)]
    found = Path(path).expanduser()
    if not found.exists() and glob.has_magic(path):
        files = sorted((Path(name) for name in glob.glob(str(found), recursive=True)), key=natural)
        files = [file for file in files if not file.name.startswith(".")]
        if not files:
            raise InputError(f"data.path={path}: no file matches this pattern")
        for file in files:
            refuse_special(file, str(file))
        return files
    place = existing(path, "a matrix")
    return parts_of(place) if place.is_dir() else [place]


def parts_of(folder: Path) -> list[Path]:
    """Return the files of a folder of parts, as Spark and Dask write it; the folder itself if there are none.

    They may lie in folders such as year=2020, by the values of a column.
    """
    if is_zarr(folder):
        return [folder]
    files = [f for f in folder.iterdir() if f.is_file() and not f.name.startswith((".", "_"))]
    if not files:
        inside = (f for f in folder.rglob("*") if f.is_file() and not f.name.startswith((".", "_")))
        files = [f for f in inside if all("=" in part for part in f.relative_to(folder).parts[:-1])]
    kinds = {f.suffix.lower() for f in files} & set(PARTS)
    if len(kinds) > 1:
        shown = ", ".join(sorted(kinds))
        raise InputError(
            f"{folder} holds files of several kinds ({shown}): give a pattern such as '{folder}/*.csv'"
        )
    return sorted((f for f in files if f.suffix.lower() in kinds), key=natural) or [folder]


def natural(path: Path) -> list[tuple[int, int | str]]:
    """Return a sort key that puts part-2 before part-10."""
    return [
        (0, int(piece)) if piece.isdecimal() else (1, piece)
        for piece in re.split(r"(\d+)", str(path))
        if piece
    ]


def stacked(tables: Sequence[Table], paths: Sequence[Path]) -> Table:
    """Return the rows of all tables, columns in the order of the first table; raise InputError if columns differ."""
    first = tables[0]
    for table, path in zip(tables, paths, strict=True):
        _agree(first, table, paths[0], path)
    if any(is_sparse(table.data) for table in tables):
        return with_marks(Table(all_sparse(tables, paths), first.names, first.units), tables)
    rows = sum(len(table.data) for table in tables)
    dtype = np.result_type(*(table.data.dtype for table in tables))
    starts = np.cumsum([0, *(len(table.data) for table in tables)])
    data: NDArray | RowFile
    if rows * first.data.shape[1] * dtype.itemsize <= row_file.MEMORY_LIMIT:
        data = np.concatenate([block for table in tables for _, block in blocks(table.data)]).astype(
            dtype, copy=False
        )
    else:
        data = scratch = RowFile.scratch((rows, first.data.shape[1]), dtype)
        for start, table in zip(starts, tables, strict=False):
            for row, block in blocks(table.data):
                scratch.write(int(start) + row, block)
    notes = list(dict.fromkeys(note for table in tables for note in table.notes[:4]))
    return with_marks(Table(data, first.names, first.units, notes[:4]), tables)


def with_marks(whole: Table, tables: Sequence[Table]) -> Table:
    """Return the table of all rows with the marks of its files: each begins a piece, and its subjects are its own.

    Labels stay where every file has some.
    """
    starts = np.cumsum([0, *(table.data.shape[0] for table in tables)])
    for start, table in zip(starts, tables, strict=False):
        whole.pieces += (int(start), *(int(start) + row for row in table.pieces))
        if table.subjects is not None:
            before = np.zeros(0, np.int64) if whole.subjects is None else whole.subjects
            whole.subjects = np.concatenate([before, table.subjects + before.max(initial=-1) + 1])
    whole.timed = any(table.timed for table in tables)
    whole.sample_rate, whole.grid = tables[0].sample_rate, tables[0].grid
    if all(table.labels is not None for table in tables):
        whole.labels = [label for table in tables for label in table.labels or ()]
    return whole


def all_sparse(tables: Sequence[Table], paths: Sequence[Path]) -> Any:
    """Return the rows of sparse tables, one below the other. Raise InputError if one of them is not sparse."""
    from scipy import sparse

    for table, path in zip(tables, paths, strict=True):
        if not is_sparse(table.data):
            raise InputError(f"{path} is not sparse, but others of these files are: give files of one kind")
    return sparse.vstack([table.data for table in tables], format="csr")


def _agree(first: Table, table: Table, first_path: Path, path: Path) -> None:
    """Put the columns of a table into the order of the first one; raise InputError if it has other columns."""
    order = order_of(table.names, first.names, path, first_path)
    if order is not None:
        table.names, data = first.names, table.data
        if isinstance(data, RowFile):
            table.data = collected((block[:, order] for block in data.blocks()), len(order), data.dtype)
        else:
            table.data = data[:, order]
    if table.data.shape[1] != first.data.shape[1]:
        raise InputError(
            f"{path} has {table.data.shape[1]} columns, {first_path} has {first.data.shape[1]}: give files that agree"
        )
    if said := differs(first, table):
        raise InputError(f"{path} has {said[1]}, {first_path} has {said[0]}: give files that agree")


def differs(first: Table, table: Table) -> tuple[str, str] | None:
    """Return what two files with the same columns say of them or of their rows, where they contradict each other."""
    if first.sample_rate != table.sample_rate:
        return rate_words(first.sample_rate), rate_words(table.sample_rate)
    for name in first.units.keys() & table.units.keys():
        if first.units[name] != table.units[name]:
            return f"{name or 'values'} in {first.units[name]}", f"{name or 'values'} in {table.units[name]}"
    if table.names is None and first.grid is not None and not first.grid.equals(table.grid):
        return (
            f"features in {first.grid.words}",
            f"features in {table.grid.words if table.grid else 'no cells'}",
        )
    return None


def rate_words(rate: float | None) -> str:
    """Return a sampling rate in words."""
    return "no sampling rate" if rate is None else f"{rate:g} samples a second"


def order_of(
    names: Sequence[str] | None, wanted: Sequence[str] | None, path: Path, first_path: Path
) -> list[int] | None:
    """Return the positions in `names` of the names that are wanted; None where columns stay as they are.

    They stay where the names are equal, or where one file has none: by position then. Raise InputError if the two
    files do not have the same names.
    """
    if names is None or wanted is None or names == wanted:
        return None
    missing = [name for name in wanted if name not in names]
    more = [name for name in names if name not in wanted]
    if missing or more:
        what = f"has no column {listed(missing)}" if missing else f"has more columns: {listed(more)}"
        raise InputError(f"{path} {what}, unlike {first_path}: choose the common ones with data.columns=")
    return [list(names).index(name) for name in wanted]

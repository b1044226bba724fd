"""Rows that a program holds in memory: as a matrix, records or compressed rows, and as the source of their file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data import asked_order
from sigmapca_cli.data.config import DataConfig, Forecast
from sigmapca_cli.data.matrix.arrays import checked, table_source
from sigmapca_cli.data.matrix.in_rows import check_matrix, check_numbers, plain, plain_form
from sigmapca_cli.data.on_disk import row_file
from sigmapca_cli.data.on_disk.row_file import RowsInMemory
from sigmapca_cli.data.readers.array_files import select
from sigmapca_cli.data.readers.columns import identifying_names
from sigmapca_cli.data.readers.row_marks import by_subject, column_held, without_subject
from sigmapca_cli.data.readers.sparse_files import csr
from sigmapca_cli.data.readers.table import Table, without_names
from sigmapca_cli.data.source import Source
from sigmapca_cli.system.errors import InputError

WHERE = Path("data")
"""What messages call the rows: the argument of `sp.train`."""


def as_rows(data: Any) -> Any:
    """Return data from memory as a plain array, as records that keep the names of their columns, or as CSR.

    What is given is not changed, and copied only where its layout or type is another. Raise InputError for what is no
    matrix of numbers.
    """
    data = plain_form(data, str(WHERE))
    if hasattr(data, "tocsr") and hasattr(data, "nnz"):
        from scipy import sparse

        check_matrix(data, str(WHERE))
        matrix = sparse.csr_matrix(data)
        if matrix.has_canonical_format:
            return matrix
        matrix = matrix.copy()
        matrix.sum_duplicates()
        return matrix
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        return of_table(data)
    try:
        values = np.asarray(data)
    except ValueError as problem:  # rows of different lengths
        raise InputError(f"{WHERE}: no matrix of numbers ({problem})") from None
    if values.ndim > 2:  # data.rows says what to do with it
        check_numbers(values.dtype, str(WHERE))
    else:
        check_matrix(values, str(WHERE))
    return plain(values)


def of_table(table: Any) -> np.ndarray:
    """Return a table of pandas or polars as records (n,) of float64; as a matrix if names do not identify its columns.

    Raise InputError for columns of other things than numbers.
    """
    names = [str(name) for name in table.columns]
    if not names or not len(table):
        raise InputError(f"{WHERE}: is empty, {len(table)} × {len(names)}: give samples × features")
    values = np.empty((len(table), len(names)))
    for number, name in enumerate(names):
        # By position: pandas has several columns of one name.
        found = (table.iloc[:, number] if hasattr(table, "iloc") else table.to_series(number)).to_numpy()
        try:
            if found.dtype.kind in "Mm":
                raise TypeError
            values[:, number] = found
        except (TypeError, ValueError):
            raise InputError(
                f"{WHERE}: column {name!r} holds no numbers: leave it out, or encode it"
            ) from None
    if identifying_names(names) is None:
        for note in without_names(Table(values, names), WHERE).notes:
            logging.getLogger("sigmapca").warning("%s", note)
        return values
    return values.view([(name, np.float64) for name in names])[:, 0]


def held_source(rows: Any, cfg: DataConfig, forecast: Forecast | None = None) -> Source:
    """Return rows of `as_rows` as the source that data=array makes of their file: the same hash, moments and bits.

    Raise InputError for values or settings that cannot be used.
    """
    subjects = (
        None
        if cfg.subject is None or not isinstance(rows, np.ndarray)
        else column_held(Table(rows), cfg.subject)
    )
    if isinstance(rows, np.ndarray):
        table = select(Table(rows), without_subject(cfg), WHERE)
        if table.data.nbytes > row_file.MEMORY_LIMIT:
            table.data = RowsInMemory(table.data)
    else:
        table = select(Table(csr(rows.data, rows.indices, rows.indptr, rows.shape, WHERE)), cfg, WHERE)
    source = table_source(
        by_subject(checked(table, cfg, WHERE), WHERE, cfg, subjects), cfg, str(WHERE), forecast
    )
    source.ordered = asked_order(cfg)
    return source

"""What a column says of the rows of a table: whose they are, and when they were; where one stretch ends."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.array_files import read_matrix, reader_of
from sigmapca_cli.data.readers.column_files import read_columns, values_of
from sigmapca_cli.data.readers.table import Table, place_of
from sigmapca_cli.data.readers.text import fields_in, read_text
from sigmapca_cli.system.errors import InputError

TIMES = {"time", "t", "date", "datetime", "timestamp", "year", "month", "day", "second", "seconds", "time_s"}
"""Names of columns that count the time, if they rise from row to row."""
GAP = 5.0
"""A step of time larger than this many usual ones ends a stretch of rows; weekends of daily values do not."""
DATES: tuple[dict[str, Any], ...] = ({"format": "ISO8601"}, {}, {"dayfirst": True})
"""Ways to read dates: 2019-01-31, the months first as 1/31/2019, the days first as 31.1.2019."""
MOSTLY = 0.9
"""Share of rows whose time has to be later than that of the row before."""


def without_subject(cfg: DataConfig) -> DataConfig:
    """Return how the features are read where one column says whose row it is: without that column."""
    if cfg.subject is None:
        return cfg
    if cfg.columns is not None:
        return replace(cfg, columns=[name for name in cfg.columns if str(name) != str(cfg.subject)])
    return replace(cfg, drop=[*(cfg.drop or []), cfg.subject])


def marked(table: Table, path: Path, cfg: DataConfig) -> Table:
    """Return a checked table with the subjects of its rows, and where stretches of time begin.

    Raise InputError if there is no such column.
    """
    if cfg.transpose:
        if cfg.subject is not None:
            raise InputError(
                f"data.subject={cfg.subject}: goes with rows of samples, not with data.transpose"
            )
        return table
    return by_time(by_subject(table, path, cfg, None), path, cfg)


def by_subject(table: Table, path: Path, cfg: DataConfig, values: Any) -> Table:
    """Return the table with its rows by subject, in their order within each; values: their column, if it was read."""
    if cfg.subject is None:
        return table
    found = np.asarray(column(path, cfg, cfg.subject) if values is None else values).astype(str)
    _, first, code = np.unique(found, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[code]  # numbered as they appear
    if (np.diff(rank) < 0).any():
        order = np.argsort(rank, kind="stable")
        if not (isinstance(table.data, np.ndarray) or hasattr(table.data, "tocsr")):
            raise InputError(
                f"{path}: rows of one subject are apart, in a file too large for memory: sort it by subject"
            )
        table.data, found, rank = table.data[order], found[order], rank[order]
        table.labels = None if table.labels is None else [table.labels[row] for row in order]
        if (line_of := table.line_of) is not None:
            table.line_of = lambda row: line_of(int(order[row]))
    table.subjects = rank
    return table


def by_time(table: Table, path: Path, cfg: DataConfig) -> Table:
    """Return the table with the rows at which time jumps, if a column that counts the time is read or left out."""
    names = [*(table.names or []), *(cfg.drop or [])]
    name = next((name for name in names if str(name).strip().lower() in TIMES), None)
    if name is None or table.subjects is not None:
        return table
    if table.names is not None and name in table.names:
        values: Any = np.asarray(table.data[:, table.names.index(str(name))]).ravel()
    else:
        values = column(path, cfg, name)
    times = as_times(values)
    if times is None or len(times) != table.data.shape[0]:
        return table
    steps = np.diff(times)
    usual = np.median(steps)
    if usual > 0 and rises(times):
        table.timed = True
        table.pieces = tuple((np.flatnonzero((steps <= 0) | (steps > GAP * usual)) + 1).tolist())
    return table


def as_times(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.float64] | None:
    """Return times as numbers, from numbers or dates; None for other words, and where one is missing."""
    found = np.asarray(values)
    try:
        times = found.astype(np.float64) if found.dtype.kind in "biuf" else None
        if times is None:
            times = np.array([float(value) for value in found.tolist()])
    except (TypeError, ValueError):
        times = next((read for way in DATES if rises(read := as_dates(found, **way))), None)
        if times is None:
            return None
    return times if len(times) > 1 and np.isfinite(times).all() else None


def as_dates(words: NDArray[Any], **way: Any) -> NDArray[np.float64]:
    """Return dates of any time zone in seconds, read in one way; nan for missing ones, and for all of other words."""
    import pandas

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a way that is not theirs
            moments = pandas.to_datetime(words, utc=True, **way)
    except (TypeError, ValueError, OverflowError):
        return np.full(len(words), np.nan)
    times = moments.tz_convert(None).to_numpy("datetime64[us]").astype(np.int64) / 1e6
    times[moments.isna()] = np.nan
    return np.asarray(times)


def rises(times: NDArray[np.float64]) -> bool:
    """Return whether times rise from row to row, nearly always."""
    return bool(len(times) > 1 and (np.diff(times) > 0).mean() > MOSTLY)


def column(path: Path, cfg: DataConfig, name: str | int) -> Any:
    """Return the values of one column, numbers or words. Raise InputError if the file has no such column."""
    with path.open("rb") as file:
        reader = reader_of(path, file.read(512))
    if reader is read_text:
        return fields_in(path, cfg, name)
    if reader is read_columns:
        return values_of(path, name)
    alone = replace(cfg, columns=[name], drop=None, subject=None)
    table = read_matrix(path, alone)
    values = table.data if table.columns is None else table.data[:, table.columns]
    return np.asarray(values).ravel()


def column_held(table: Table, name: str | int) -> NDArray[Any]:
    """Return the values of one column of rows in memory."""
    records = table.data.dtype.names
    if records:
        return np.asarray(table.data[list(records)[place_of(name, records, len(records), "subject", "data")]])
    return np.asarray(table.data[:, place_of(name, table.names, table.data.shape[1], "subject", "data")])

"""Tables with names, written whole or not at all."""

from pathlib import Path
from typing import Any

from sigmapca_cli.system.atomic import replacing
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.packages import required

SUFFIXES = (".csv", ".parquet")


def write_frame(table: Any, place: Path, *, index: bool) -> None:
    """Write a data frame of pandas as CSV or Parquet, with its index if asked.

    Raise InputError for another suffix, and where the package for Parquet is missing.
    """
    if place.suffix not in SUFFIXES:
        raise InputError(f"{place}: give a name that ends in {' or '.join(SUFFIXES)}")
    write = table.to_parquet if place.suffix == ".parquet" else table.to_csv
    if place.suffix == ".parquet":
        required(f"{place}: writing Parquet", "pyarrow")
    with replacing(place) as aside:
        write(aside, index=index)

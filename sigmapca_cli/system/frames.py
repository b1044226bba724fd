"""Tables with names, written whole or not at all."""

from pathlib import Path
from typing import Any

from sigmapca_cli.system.atomic import replacing
from sigmapca_cli.system.errors import InputError

SUFFIXES = (".csv", ".parquet")


def write_frame(table: Any, place: Path, *, index: bool) -> None:
    """Write a data frame of pandas as CSV or Parquet, with its index if asked.

    Raise InputError for another suffix, and where the package for Parquet is missing.
    """
    if place.suffix not in SUFFIXES:
        raise InputError(f"{place}: give a name that ends in {' or '.join(SUFFIXES)}")
    write = table.to_parquet if place.suffix == ".parquet" else table.to_csv
    with replacing(place) as aside:
        try:
            write(aside, index=index)
        except ImportError:
            raise needs_pyarrow(place) from None


def needs_pyarrow(place: Path) -> InputError:
    """Return the error of a Parquet file where the package for it is missing."""
    return InputError(f"{place}: writing Parquet needs a package: pip install pyarrow")

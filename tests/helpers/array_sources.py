"""Sources of data=array, as configured in one call, and their rows in the units of the file."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.source import Source


def source_of(path: Path | str | list[Path], **options: Any) -> Source:
    """Return the source of a file, a folder or a list of files, with these keys of the `data` group."""
    paths = [str(each) for each in path] if isinstance(path, list) else str(path)
    return build(DataConfig(**{"name": "array", "path": paths, **options}))


def values(source: Source) -> NDArray[Any]:
    """Return all rows before standardisation."""
    return np.concatenate(list(source.blocks(raw=True)))

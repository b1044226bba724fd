"""What a sample holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Sound:
    """Tracks recorded at once, one a microphone, at `rate` numbers a second, between -1 and 1."""

    rate: int
    tracks: dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Sample:
    """Data of a field and the components they were made of.

    content: a table, tracks, or windows of pictures (n, rows, columns). truth: features × components, in the units of
    the data: component j adds truth[:, j] times its value to a row. words: sizes, for a line of the terminal.
    """

    content: pd.DataFrame | Sound | NDArray[np.uint8]
    truth: pd.DataFrame
    words: str

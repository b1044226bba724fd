"""Where features lie in an array of several dimensions, as the cells of a map do: stored beside the filters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.system.untrusted_files import need_memory

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    """The dimensions of an array that do not count its rows, such as latitude × longitude.

    shape (d,): their lengths. place (p,): the cell of each feature, the last dimension fastest; cells that are no
    feature have no value in any row. names (d,): of the dimensions, () if the file has none. coordinates: values along
    each, None where the file has no numbers.
    """

    shape: tuple[int, ...]
    place: NDArray[np.int64]
    names: tuple[str, ...] = ()
    coordinates: tuple[Array | None, ...] = ()

    def maps(self, values: NDArray[Any]) -> Array:
        """Return values of the features (p, m) as arrays (m, *shape); nan where there is no feature.

        Raise InputError where they do not fit in memory.
        """
        values = np.asarray(values)
        need_memory(8.0 * values.shape[1] * math.prod(self.shape), "the maps", "take fewer filters")
        cells = np.full((values.shape[1], math.prod(self.shape)), np.nan)
        cells[:, self.place] = values.T
        return cells.reshape(-1, *self.shape)

    @property
    def words(self) -> str:
        """Return the shape and the names in words."""
        return (
            " × ".join(map(str, self.shape))
            + " cells"
            + (f" ({', '.join(self.names)})" if self.names else "")
        )

    def of(self, features: Any) -> Grid:
        """Return the grid of some of the features, by an index, in its order."""
        return replace(self, place=self.place[features])

    def equals(self, other: Grid | None) -> bool:
        """Return whether the features of another grid lie in the same cells, and these at the same coordinates."""
        mine, theirs = self.arrays(), {} if other is None else other.arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[name], theirs[name], equal_nan=name == "grid_coordinates") for name in mine
        )

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that run.h5 stores: see `format.ARRAYS`."""
        known = self.coordinates or (None,) * len(self.shape)
        along = [np.full(n, np.nan) if v is None else v for n, v in zip(self.shape, known, strict=True)]
        return {
            "grid_shape": np.array(self.shape, np.int64),
            "grid_place": self.place,
            "grid_coordinates": np.concatenate(along),
            **({"grid_name": np.array(self.names)} if self.names else {}),
        }

    @classmethod
    def stored(cls, arrays: Mapping[str, Any]) -> Grid:
        """Return the grid of stored arrays. Raise ValueError where they contradict each other."""
        shape = tuple(int(n) for n in arrays["grid_shape"])
        place = np.asarray(arrays["grid_place"], np.int64)
        along, cells = np.asarray(arrays["grid_coordinates"], np.float64), math.prod(shape)
        if not shape or min(shape) < 1 or sum(shape) != len(along):
            raise ValueError("grid_coordinates has another length than grid_shape says")
        if len(place) and not (place.min() >= 0 and place.max() < cells):
            raise ValueError("grid_place has cells outside grid_shape")
        parts = np.split(along, np.cumsum(shape)[:-1])
        names = tuple(str(name) for name in arrays.get("grid_name", ()))
        return cls(shape, place, names, tuple(None if np.isnan(part).any() else part for part in parts))


def picture_shape(grid: Grid | None) -> tuple[int, int, int] | None:
    """Return (rows, columns, channels) of features that are the pixels of a square picture, grey or in colours.

    It is a whole grid without names and coordinates, which those of maps have. None for another one.
    """
    if grid is None or grid.names or any(along is not None for along in grid.coordinates):
        return None
    shape = grid.shape if len(grid.shape) == 3 else (*grid.shape, 1)
    square = len(shape) == 3 and shape[0] == shape[1] > 2 and shape[2] in (1, 3)
    if not square or not np.array_equal(grid.place, np.arange(math.prod(shape))):
        return None
    return shape[0], shape[1], shape[2]

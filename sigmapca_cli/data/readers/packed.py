"""Values as netCDF packs them: fill values, valid ranges, scale factors, and unsigned numbers in signed types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.system.untrusted_hdf5 import as_text

FILLS = ("_FillValue", "missing_value")


@dataclass(frozen=True)
class Packing:
    """How the values of a data set are decoded, by its attributes (the conventions of netCDF).

    unsigned: the stored integers are unsigned ones (`_Unsigned`). fill: stored values that are missing. low, high: the
    valid stored values (`valid_min`, `valid_max`, `valid_range`). The others are NaN, and x = scale · stored + offset.
    """

    unsigned: bool = False
    fill: tuple[float, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    scale: float = 1.0
    offset: float = 0.0

    @classmethod
    def of(cls, data: Any) -> Packing:
        """Return the packing of an h5py data set."""
        given = {name: np.ravel(data.attrs[name]) for name in (*FILLS, *LIMITS) if name in data.attrs}
        numbers = {name: values for name, values in given.items() if values.dtype.kind in "iuf"}
        unsigned = data.dtype.kind == "i" and as_text(data.attrs.get("_Unsigned", "false")).lower() == "true"

        def first(name: str, neutral: float) -> float:
            return _value(numbers[name][0], data.dtype, unsigned) if name in numbers else neutral

        low, high = first("valid_min", -np.inf), first("valid_max", np.inf)
        if len(bounds := numbers.get("valid_range", ())) == 2:
            low, high = (_value(bound, data.dtype, unsigned) for bound in bounds)
        fill = [_value(v, data.dtype, unsigned) for name in FILLS for v in numbers.get(name, ()) if v == v]
        scale, offset = (
            float(np.ravel(data.attrs[name])[0]) if name in data.attrs else neutral
            for name, neutral in (("scale_factor", 1.0), ("add_offset", 0.0))
        )
        return cls(unsigned, tuple(fill), low, high, scale, offset)

    def __bool__(self) -> bool:
        """Whether the stored values differ from the decoded ones."""
        return self != Packing()

    def decode(self, stored: NDArray) -> NDArray[np.float64]:
        """Return the decoded values of stored ones."""
        if self.unsigned:
            stored = stored.view(stored.dtype.str.replace("i", "u"))
        out = stored.astype(np.float64)
        missing = (out < self.low) | (out > self.high)
        for value in self.fill:
            missing |= stored == np.asarray(value).astype(stored.dtype)
        out[missing] = np.nan
        return out * self.scale + self.offset if (self.scale, self.offset) != (1.0, 0.0) else out


LIMITS = ("valid_min", "valid_max", "valid_range")


def _value(value: Any, dtype: np.dtype, unsigned: bool) -> float:
    """Return a value of an attribute as a stored one: of an unsigned integer, the negative ones are the upper half."""
    number = float(value)
    return number + 256.0**dtype.itemsize if unsigned and number < 0 else number


class Decoded:
    """A data set of any shape as float64 numbers, decoded in blocks as it is read, like an h5py data set."""

    def __init__(self, data: Any, packing: Packing) -> None:
        self._data, self._packing = data, packing
        self.shape, self.ndim, self.dtype = data.shape, data.ndim, np.dtype(np.float64)
        self.size = data.size

    def __getitem__(self, index: Any) -> NDArray[np.float64]:
        return self._packing.decode(np.asarray(self._data[index]))

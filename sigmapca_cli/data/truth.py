"""The known answer of made data, which an evaluation compares a solution with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Truth:
    """The known answer: orthonormal filters (p, k) in standardised coordinates, sources, mixing (p, k)."""

    kind: str
    filters: Array | None = None
    sources: Array | None = None
    mixing: Array | None = None

    def in_part(self, part: slice, *, turned: bool) -> "Truth":
        """What still holds of some of the rows; `turned` where they were scaled by feature or whitened.

        Both tilt the directions: they are no longer orthonormal, and only the sources can be compared.
        """
        sources = None if self.sources is None else self.sources[part]
        if not turned:
            return Truth(self.kind, self.filters, sources, self.mixing)
        return Truth("sources", None, sources, self.mixing)

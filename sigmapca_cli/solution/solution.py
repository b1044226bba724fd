"""The solution of a run as a map from raw rows to components, and back: what every use of it on new rows applies."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import as_stored
from sigmapca_cli.data.images.patches import pixel_unit
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.linalg.low_rank import LowRank
from sigmapca_cli.system.errors import InputError

Array = NDArray[np.float64]

ROWS_AT_ONCE = 8192
"""Rows that are mapped at once, of at most `WIDE` features."""
ENTRIES = 1 << 22
"""Entries of a block of wider rows: 32 MB."""
FAR = 20.0
"""Values whose mean is so many times larger than that of the run's pixels are on another scale."""


@dataclass(frozen=True)
class Solution:
    """components = ((raw − mean)/scale [@ whitening]) @ encoder, and raw ≈ components @ decoder, undone.

    Raw rows are those of the file or array that a user gives. Before the map, integers of a run on pixels are divided
    by the largest value of their type, missing values are treated as `missing` says, and values are clipped.

    encoder (p, k), decoder (k, p), mean and scale (p,); whitening (p, p), clip (2, p) and names only where the run has
    them. missing: data.missing of the run. pixels: whether a feature is a pixel.
    """

    encoder: Array
    decoder: Array
    mean: Array
    scale: Array
    whitening: Array | LowRank | None = None
    clip: Array | None = None
    names: list[str] | None = None
    missing: str = "refuse"
    pixels: bool = False

    @classmethod
    def of(cls, run: Any) -> Solution:
        """Return the solution of a finished run. Raise InputError if encoder, decoder, mean or scale is missing."""
        found = {name: getattr(run, name) for name in ("encoder", "decoder", "mean", "scale")}
        if lacking := [name for name, value in found.items() if value is None]:
            raise InputError(
                f"{run.folder}: the run has no {lacking[0]} (status {run.status}): is it finished?"
            )
        return cls(
            **{name: np.asarray(value, np.float64) for name, value in found.items()},
            whitening=run.whitening,
            clip=run.clip,
            names=run.names,
            missing=str(as_stored(run.config.get("data", {})).get("missing", "refuse")),
            pixels=run.patch_shape is not None,
        )

    @cached_property
    def forward(self) -> Array:
        """Return F (p, k) with components = (raw − mean) @ F."""
        encoder = self.encoder if self.whitening is None else self.whitening @ self.encoder
        return np.asarray(encoder / self.scale[:, None])

    @cached_property
    def back(self) -> Array:
        """Return B (k, p) with raw ≈ components @ B + mean."""
        T = self.whitening
        if T is None:
            return self.decoder * self.scale
        inverse = T.inverse() if isinstance(T, LowRank) else np.linalg.pinv(T)
        return np.asarray((self.decoder @ inverse) * self.scale)

    @property
    def fills(self) -> bool:
        """Return whether a missing value is replaced by the mean; a row that has one gets components of nan if not."""
        return self.missing == "mean"

    def unit(self, dtype: np.dtype[Any]) -> float:
        """Return the factor that brings values of this type to the units of the mean."""
        return pixel_unit(dtype) if self.pixels else 1.0

    def apply(self, rows: Any, where: str = "features") -> Array:
        """Return the components (n, k), float64, of raw rows (n, p) of any type; `where`: their name in an error.

        Sparse rows are not filled, unless the run's data were clipped: then by blocks. Raise InputError if a value is
        infinite, or missing where the run's data had to be whole.
        """
        n, p = rows.shape
        size = ROWS_AT_ONCE if p <= WIDE else max(1, min(ROWS_AT_ONCE, ENTRIES // p))
        out = np.empty((n, self.forward.shape[1]))
        for start in range(0, n, size):
            part = slice(start, min(start + size, n))
            out[part] = self._mapped(rows[part], where, start)
        return out

    def _mapped(self, block: Any, where: str, start: int) -> Array:
        if hasattr(block, "tocsr"):
            block = block.tocsr()
            if not np.isfinite(block.data).all():
                raise InputError(
                    f"{where}: sparse rows with values that are not finite: remove or replace them"
                )
            if self.clip is None:
                return np.asarray(block @ self.forward) - self.mean @ self.forward
            block = block.toarray()
        x, incomplete = self.raw(block, where, start)
        # The mean first: far from zero, the difference of two products would lose digits.
        y = np.asarray((x - self.mean) @ self.forward)
        y[incomplete] = np.nan
        return y

    def raw(
        self, block: NDArray[Any], where: str = "features", start: int = 0
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return rows (n, p) in the units of the mean, whole and clipped, and which of them (n,) have no components.

        `start`: number of the first row, for an error. Raise InputError as `apply`.
        """
        x, incomplete = block.astype(np.float64) * self.unit(block.dtype), np.zeros(len(block), bool)
        if not np.isfinite(x).all():
            bad = np.isnan(x)
            if np.isinf(x).any() or self.missing == "refuse":
                row, column = np.argwhere(~np.isfinite(x))[0]
                kind = "NaN" if bad[row, column] else "infinity"
                raise InputError(
                    f"{where}: {kind} at row {row + start}, column {column}, counted from 0: remove or replace it"
                )
            x = np.where(bad, self.mean, x)
            if not self.fills:
                incomplete[bad.any(axis=1)] = True
        return x if self.clip is None else np.clip(x, *self.clip), incomplete

    def standardised(self, raw: Array) -> NDArray[np.float32]:
        """Return rows (n, p) in the units of the mean as training took them: clipped, scaled and whitened, float32."""
        x = raw if self.clip is None else np.clip(raw, *self.clip)
        x32 = ((x - self.mean) / self.scale).astype(np.float32)
        return x32 if self.whitening is None else np.asarray(x32 @ self.whitening.astype(np.float32))

    def stream(self, source: Any) -> Iterator[Array]:
        """Yield the components (m, k) of a source that `new_rows` has read, by blocks of rows, in order."""
        for block, incomplete in blocks_of(source):
            y = self.apply(block)
            y[incomplete] = np.nan
            yield y

    def stream_without(self, source: Any, removed: Sequence[int]) -> Iterator[Array]:
        """Yield the rows (m, p) of a source without some components, numbered from 0: x − Σ y_i b_i over these.

        What the other components do not explain stays. Rows are in the units of the mean; a row with missing values is
        nan.
        """
        chosen = list(removed)
        for block, incomplete in blocks_of(source):
            dense = block.toarray() if hasattr(block, "toarray") else block
            x, missing = self.raw(dense)
            x = x - ((x - self.mean) @ self.forward[:, chosen]) @ self.back[chosen]
            x[missing | incomplete] = np.nan
            yield x

    def invert(self, components: NDArray[Any]) -> Array:
        """Return the raw rows (n, p) that components (n, k) stand for: pixels between 0 and 1, not clipped."""
        return np.asarray(components @ self.back + self.mean)

    def check_scale(self, mean: Array, where: str) -> None:
        """Warn if rows with this mean (p,) are hardly pixels on the scale of the run's."""
        largest = float(np.abs(mean).max(initial=0.0))
        if self.pixels and largest > FAR * max(1.0, float(np.abs(self.mean).max())):
            logging.getLogger("sigmapca").warning(
                "%s: its values are far outside 0 to 1, the range of the pixels of the run: divide them by 255 first",
                where,
            )


def blocks_of(source: Any) -> Iterator[tuple[Any, NDArray[np.bool_]]]:
    """Yield the raw rows of a source that `new_rows` has read, by blocks in order, and which of them are incomplete."""
    X: Any = getattr(source, "X", None)
    if hasattr(X, "tocsr"):
        blocks: Any = (X[start : start + ROWS_AT_ONCE] for start in range(0, source.n, ROWS_AT_ONCE))
    else:
        blocks = source.blocks(ROWS_AT_ONCE, raw=True)
    place = 0
    for block in blocks:
        count = block.shape[0]
        known = source.incomplete is not None
        yield block, source.incomplete[place : place + count] if known else np.zeros(count, bool)
        place += count


def told_incomplete(rows: int) -> str:
    """Return what is said of rows without components: the model that filled the training rows is not stored."""
    return f"{rows} row{'s' * (rows != 1)} with missing values have nan: the run filled none by means"

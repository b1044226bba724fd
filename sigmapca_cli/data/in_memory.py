"""Sources whose rows are a matrix in memory."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.source import Index, Source
from sigmapca_cli.data.standardisation import Standardisation, need_two_samples, rows_of
from sigmapca_cli.data.truth import Truth


class MemorySource(Source):
    """Rows of a matrix (n, p) that is already in memory."""

    def __init__(
        self,
        name: str,
        X: NDArray,
        options: Standardisation,
        truth: Truth | None = None,
        content: bytes | None = None,
    ) -> None:
        need_two_samples(len(X), f"data={name}")
        self.name, self.X, self.truth = name, X, truth
        self.n, self.p = X.shape
        digest = hashlib.sha256(np.ascontiguousarray(X).data).digest() if content is None else content
        self._standardise(options, digest)

    def _gather(self, rows: Index | slice) -> NDArray:
        return self.X[rows]


class PlacedSource(MemorySource):
    """Rows already standardised with another data set's mean and scale; they are used unchanged.

    Their mean (p,) may differ from zero: `covariance` gives it, and the covariance about it.
    """

    def _standardise(self, options: Standardisation, content: bytes) -> None:
        super()._standardise(options, content)
        self.mean = np.zeros(self.p)
        self._constant = np.zeros_like(self._constant)
        self._prepare_apply()


def known_source(
    name: str, X: NDArray, truth: Truth | None, cfg: DataConfig, options: Standardisation | None = None
) -> MemorySource:
    """Return rows X (n, p) and their truth as a source: the half asked for, and what then holds of the truth.

    options: how rows are standardised, where that is not as the data group says.
    """
    part, options = rows_of(len(X), cfg), options or Standardisation.of(cfg)
    held = None if truth is None else truth.in_part(part, turned=options.turns)
    return MemorySource(name, X[part], options, held)

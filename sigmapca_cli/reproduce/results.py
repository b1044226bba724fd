"""The finished runs of one experiment, and the measures that claims are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.evaluation import chance
from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.evaluation.metrics import correlations, match
from sigmapca_cli.reproduce.plan import Panel, Setting
from sigmapca_cli.runs.read import Run

Array = NDArray[np.float64]


class Missing(Exception):
    """A claim asks for a run that could not be made."""


class Results:
    """Runs by the key of their panel. Asking for one that failed raises `Missing` with the reason."""

    def __init__(
        self, panels: Sequence[Panel], setting: Setting, runs: Mapping[str, Run], problems: Mapping[str, str]
    ) -> None:
        self.panels, self.setting = tuple(panels), setting
        self.runs, self.problems = dict(runs), dict(problems)
        self._sources: dict[str, Any] = {}
        self.asked: set[str] = set()

    def run(self, key: str) -> Run:
        """The finished run of a panel."""
        self.asked.add(key)
        if key not in self.runs:
            raise Missing(f"{key}: {self.problems.get(key, 'not run')}")
        return self.runs[key]

    def solved(self) -> list[str]:
        """The panels that the Newton solver, or solver=moments, solved or tried to."""
        return [
            key for key, run in self.runs.items() if run.config["solver"]["name"] in ("newton", "moments")
        ]

    def unsettled(self) -> list[str]:
        """Those of them on which it did not converge."""
        return [key for key in self.solved() if not self.runs[key].evaluation["converged"]]

    def filters(self, key: str) -> Array:
        """Filters (p, k) as they are shown: for linear ICA the columns of the unmixing, of unit norm."""
        run = self.run(key)
        W = run.encoder if run.rotation is not None else run.filters
        assert W is not None  # a finished run has its solution
        norm = np.linalg.norm(W, axis=0)
        return W / np.where(norm > 0, norm, 1.0)

    def measure(self, key: str, name: str) -> Any:
        """A stored metric of a run."""
        return self.run(key).evaluation[name]

    def mean(self, key: str, name: str) -> float:
        """A metric, or its mean over the components."""
        return float(np.mean(self.measure(key, name)))

    def ratio(self, one: str, other: str, name: str) -> float:
        """Mean of a metric in one run over that in another."""
        return self.mean(one, name) / self.mean(other, name)

    def agreement(self, one: str, other: str | None = None) -> float:
        """Mean matched |cos| of two runs' filters; of a key alone: of its two halves."""
        if other is None:
            one, other = f"{one}/even", f"{one}/odd"
        return agreement(self.filters(one), self.filters(other)).mean

    def subspace_chance(self, key: str) -> float:
        """The matched |cos| of two random sets of k orthonormal axes in one k-dimensional subspace."""
        k = self.filters(key).shape[1]
        return chance.matched_cosine(k, k)

    def largest_cosine(self, key: str) -> float:
        """The largest |cos| between two filters of one run."""
        W = self.filters(key)
        gram = np.abs(W.T @ W)
        np.fill_diagonal(gram, 0)
        return float(gram.max())

    def spread(self, key: str) -> float:
        """How widely filters are spread over their patch, 1 for evenly and 1/pixels for a single one.

        Mean over filters of 1 / (n Σ_i e_i²), e_i the share of the filter's energy in pixel i (channels summed).
        """
        shape = self.run(key).patch_shape
        W = self.filters(key)
        channels = shape[2] if shape else 1
        energy = (W**2).reshape(-1, channels, W.shape[1]).sum(axis=1)
        share = energy / energy.sum(axis=0)
        return float(np.mean(1 / (len(share) * np.sum(share**2, axis=0))))

    def loss(self, key: str) -> float:
        """Mean loss over the steps of the last epoch."""
        run = self.run(key)
        step, loss = run.metrics["step"], run.metrics["loss"]
        n, b = int(run.attrs["n"]), int(run.config["batch_size"])
        whole, rest = divmod(n, min(b, n))
        return float(np.mean(loss[step > step[-1] - (whole + (rest >= 2))]))

    def source(self, key: str) -> Any:
        """The data of a run."""
        from sigmapca_cli.sources import build
        from sigmapca_cli.sources.config import DataConfig, as_stored

        stored = self.run(key).config["data"]
        name = repr(sorted(stored.items()))
        if name not in self._sources:
            self._sources[name] = build(DataConfig(**as_stored(stored)))
        return self._sources[name]

    def rows(self, key: str, most: int | None = None) -> Array:
        """Standardised rows of a run's data, spread evenly over it, (n, p)."""
        source = self.source(key)
        step = 1 if most is None else max(1, source.n // most)
        return source.rows(np.arange(0, source.n, step)).astype(np.float64)

    def components(self, key: str) -> Array:
        """y = xW (n, k); for linear ICA the unit variance x B."""
        run = self.run(key)
        W = run.encoder if run.rotation is not None or is_ica(run) else run.filters
        assert W is not None
        return self.rows(key) @ W

    def source_correlation(self, key: str) -> Array:
        """|corr| of each true source with the component matched to it, (k,)."""
        similarity = correlations(self.components(key), self.source(key).truth.sources)
        rows, columns = match(similarity)
        return np.asarray(similarity[rows, columns][np.argsort(columns)])

    def variance_error(self, key: str) -> float:
        """The largest |var(y) − var(s)| / var(s) over the true sources."""
        S, Y = self.source(key).truth.sources, self.components(key)
        rows, columns = match(correlations(Y, S))
        error = Y.var(axis=0)[rows] / S.var(axis=0)[columns] - 1
        return float(np.abs(error).max())


def is_ica(run: Run) -> bool:
    """Whether a run's components have unit variance and no order by variance."""
    return str(run.config["model"]["family"]) == "linear_ica"

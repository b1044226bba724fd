"""The finished runs of one experiment, and the measures that claims are made of."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.evaluation.agreement import agreement, matched_cosine
from sigmapca_cli.evaluation.matching import correlations, match
from sigmapca_cli.reproduce.plan import Panel, Setting, name_of
from sigmapca_cli.settings.ways import Way, way_stored
from sigmapca_cli.storage.read import StoredRun

Array = NDArray[np.float64]


class Missing(Exception):
    """A claim asks for a run that could not be made."""


class Results:
    """Runs by their names, seen at one repetition. Asking for one that failed raises `Missing` with the reason."""

    def __init__(
        self,
        panels: Sequence[Panel],
        setting: Setting,
        runs: Mapping[str, StoredRun],
        problems: Mapping[str, str],
        repetitions: int = 1,
    ) -> None:
        self.panels, self.setting, self.repetitions = tuple(panels), setting, repetitions
        self.runs, self.problems = dict(runs), dict(problems)
        self.repetition = 0
        self.asked: set[str] = set()
        self._sources: dict[str, Any] = {}
        self._seeded = {panel.key: panel.seeded for panel in panels}

    def at(self, repetition: int) -> Results:
        """Return the same results at one repetition; what is asked for is counted in common."""
        other = copy.copy(self)
        other.repetition = repetition % self.repetitions
        return other

    def name(self, key: str) -> str:
        """Return the name of a panel's run at this repetition."""
        return name_of(key, self.repetition if self._seeded.get(key, True) else 0)

    def run(self, key: str) -> StoredRun:
        """Return the finished run of a panel at this repetition."""
        name = self.name(key)
        self.asked.add(name)
        if name not in self.runs:
            raise Missing(f"{name}: {self.problems.get(name, 'not run')}")
        return self.runs[name]

    def depends_on_seed(self) -> bool:
        """Return whether any run that was asked for draws random numbers."""
        return any(self._seeded.get(name.partition("@")[0], True) for name in self.asked)

    def own(self) -> bool:
        """Return whether what was asked for is this way's own: with a solver, none trained and at least one solved."""
        if self.setting.solver == "stochastic":
            return True
        kinds = {"left out" if name not in self.runs else kind_of(self.runs[name]) for name in self.asked}
        return "solved" in kinds and not kinds & {"left out", "trained"}

    def solved(self) -> list[str]:
        """Return the runs that the Newton solver, or solver=moments, solved or tried to."""
        return [name for name, run in self.runs.items() if kind_of(run) == "solved"]

    def unsettled(self) -> list[str]:
        """Return those of them on which it did not converge."""
        return [name for name in self.solved() if not self.runs[name].evaluation["converged"]]

    def between_seeds(self, key: str) -> float:
        """Return the matched |cos| of a panel's filters with those of its next seed."""
        if self.setting.solver != "stochastic":
            return 1.0  # a solver draws nothing
        if self.repetitions < 2:
            raise Missing(f"{key}: one seed; agreement between seeds needs --seeds 2 or more")
        return agreement(self.filters(key), self.at(self.repetition + 1).filters(key)).mean

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

    def order(self, key: str) -> float:
        """Return the share of pairs of components whose places by index and by σ agree: 1 in order, ½ by chance."""
        index = np.asarray(self.measure(key, "index"))
        above = np.triu(np.ones((len(index), len(index)), bool), 1)
        return float((index[:, None] < index[None, :])[above].mean())

    def agreement(self, one: str, other: str | None = None) -> float:
        """Mean matched |cos| of two runs' filters; of a key alone: of its two halves."""
        if other is None:
            one, other = f"{one}/even", f"{one}/odd"
        return agreement(self.filters(one), self.filters(other)).mean

    def subspace_chance(self, key: str) -> float:
        """The matched |cos| of two random sets of k orthonormal axes in one k-dimensional subspace."""
        k = self.filters(key).shape[1]
        return matched_cosine(k, k)

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
        return last_loss(self.run(key))

    def source(self, key: str) -> Any:
        """The data of a run."""
        from sigmapca_cli.data import build
        from sigmapca_cli.data.config import DataConfig, as_stored

        stored = self.run(key).config["data"]
        name = repr(sorted(stored.items()))
        if name not in self._sources:
            self._sources[name] = build(DataConfig(**as_stored(stored)))
        return self._sources[name]

    def rows(self, key: str, most: int | None = None) -> Array:
        """Standardised rows of a run's data, spread evenly over it, (n, p)."""
        source = self.source(key)
        step = 1 if most is None else max(1, source.n // most)
        return source.take(np.arange(0, source.n, step)).astype(np.float64)

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


def last_loss(run: StoredRun) -> float:
    """Return the mean loss over the steps of the last epoch."""
    step, loss = run.metrics["step"], run.metrics["loss"]
    n, b = int(run.attrs["n"]), int(run.config["batch_size"])
    whole, rest = divmod(n, min(b, n))
    return float(np.mean(loss[step > step[-1] - (whole + (rest >= 2))]))


def kind_of(run: StoredRun) -> str:
    """Return how a run was made: solved, direct or trained."""
    way = way_stored(run.config)
    if way.is_solver:
        return "solved"
    return "direct" if way is Way.DIRECT else "trained"


def is_ica(run: StoredRun) -> bool:
    """Whether a run's components have unit variance and no order by variance."""
    return str(run.config["model"]["family"]) == "linear_ica"

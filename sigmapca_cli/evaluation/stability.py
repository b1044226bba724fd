"""Components that every run finds: clusters of the estimates of many seeds, as in ICASSO.

Himberg, Hyvärinen and Esposito (2004): pool the components of all runs, cluster them by |cos| with average
linkage, and call a component reliable if its cluster is compact, isolated, and has a member from every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.evaluation.matching import Array, cosines
from sigmapca_cli.system.errors import InputError

RELIABLE_INDEX = 0.9
"""Smallest index of a reproducible cluster. Two unidentified axes, which may point anywhere in their plane, still reach
an index of 8/π² = 0.81 (average linkage cuts the plane into quarters)."""
RELIABLE_RUNS = 0.9
"""Smallest fraction of the runs that have a member in a reproducible cluster."""
FALSE_RATE = 0.05
"""Largest probability of calling unidentified axes reproducible. With few runs, some axes agree by chance."""
USED = 0.5
"""Fraction of that probability that the simulated quantile uses; the rest allows for the error of the simulation."""
SIMULATIONS = 1000
"""Number of simulated sets of runs for the chance level."""


@dataclass(frozen=True)
class Stability:
    """Clusters of the components of several runs, the most stable first.

    Attributes
    ----------
    index : ndarray of shape (c,)
        I_q, the mean |cos| of two different members of the cluster less the mean |cos| from it to the rest; at most
        1, and 0 for a single estimate, which has no partner to agree with.
    centrotype : ndarray of shape (p, c)
        The member that is most similar to its cluster.
    source : ndarray of int, of shape (c, 2)
        Run and component of the centrotype.
    runs : ndarray of shape (c,)
        Share of the runs that have a member.
    size : ndarray of int, of shape (c,)
        Number of members.
    labels : list of ndarray of int
        One array (k,) a run: the cluster of each of its components.
    reproducible : ndarray of bool, of shape (c,)
        Alike, in nearly every run, and more so than freely turning axes are in all but 5 % of cases.
    undecided : ndarray of bool, of shape (c,)
        Alike and in nearly every run, but no more than free axes may be in so few runs.
    chance : float
        The mean |cos| within a cluster that free axes exceed in 5 % of cases.
    """

    index: Array
    centrotype: Array
    source: NDArray[np.intp]
    runs: Array
    size: NDArray[np.intp]
    labels: list[NDArray[np.intp]]
    reproducible: NDArray[np.bool_]
    undecided: NDArray[np.bool_]
    chance: float

    @property
    def mean(self) -> float:
        """Return the mean stability index over the clusters."""
        return float(self.index.mean())


def stability(filters: Sequence[ArrayLike], clusters: int | None = None) -> Stability:
    """Return the clusters of the filters of two or more runs.

    Parameters
    ----------
    filters : sequence of array-like of shape (p, k)
        Filters of each run; k may differ. Sign, order and scale change nothing.
    clusters : int, optional
        How many clusters; the largest k unless given.

    Returns
    -------
    Stability
        One entry a cluster.

    Raises
    ------
    InputError
        If there are fewer than two runs, or their numbers of features differ.

    Notes
    -----
    Components of all runs are pooled and clustered by average linkage of 1 − |cos|, as ICASSO does.

    References
    ----------
    J. Himberg, A. Hyvärinen, F. Esposito (2004). Validating the independent components of neuroimaging time series via
    clustering and visualization. NeuroImage 22.
    """
    runs = [np.asarray(W, dtype=np.float64) for W in filters]
    if len(runs) < 2 or len({len(W) for W in runs}) != 1:
        raise InputError("stability needs two or more runs with the same number of features")
    pooled = np.hstack([W / np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny) for W in runs])
    similarity = cosines(pooled, pooled)
    run_of = np.repeat(np.arange(len(runs)), [W.shape[1] for W in runs])
    label = _clustered(similarity, clusters or max(W.shape[1] for W in runs))
    return _describe(pooled, similarity, label, run_of, [W.shape[1] for W in runs])


def _describe(
    pooled: Array, similarity: Array, label: NDArray, run_of: NDArray, sizes: list[int]
) -> Stability:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    within, across, centre, fraction, size = [], [], [], [], []
    for cluster in range(label.max() + 1):
        inside = np.flatnonzero(label == cluster)
        outside = np.flatnonzero(label != cluster)
        among = similarity[np.ix_(inside, inside)]
        within.append(_without_self(among))
        across.append(similarity[np.ix_(inside, outside)].mean() if len(outside) else 0.0)
        centre.append(inside[np.argmax(among.sum(axis=1))])
        fraction.append(len(np.unique(run_of[inside])) / len(sizes))
        size.append(len(inside))
    index = np.where(np.array(size) > 1, np.array(within) - np.array(across), 0.0)
    order = np.lexsort((centre, -index))
    renamed = np.empty_like(order)
    renamed[order] = np.arange(len(order))
    members = np.array(centre)[order]
    values, covered = index[order], np.array(fraction)[order]
    alike = (values >= RELIABLE_INDEX) & (covered >= RELIABLE_RUNS)
    chance = _chance_level(len(sizes))
    beyond = np.array(within)[order] > chance
    return Stability(
        index=values,
        centrotype=pooled[:, members],
        source=np.stack([run_of[members], members - starts[run_of[members]]], axis=1),
        runs=covered,
        size=np.array(size)[order],
        labels=np.split(renamed[label], starts[1:-1]),
        reproducible=alike & beyond,
        undecided=alike & ~beyond,
        chance=chance,
    )


def _without_self(similarity: Array) -> float:
    """Return the mean similarity of two different estimates, 0 for one: agreement with itself says nothing."""
    m = len(similarity)
    return float((similarity.sum() - np.trace(similarity)) / (m * (m - 1))) if m > 1 else 0.0


@cache
def _chance_level(runs: int) -> float:
    """Return the mean |cos| within a cluster that freely turning axes exceed in 5 % of cases: 0.99 for 3 runs.

    By simulation, with the same clustering, of two axes in their plane. It is the worst case: in more dimensions free
    axes meet less often.
    """
    random = np.random.default_rng(0)
    levels = []
    for _ in range(SIMULATIONS if runs < 20 else SIMULATIONS // 5):
        angle = random.uniform(0, np.pi / 2, runs)
        both = np.concatenate([angle, angle + np.pi / 2])
        similarity = np.abs(np.cos(both[:, None] - both))
        label = _clustered(similarity, 2)
        for cluster in range(label.max() + 1):
            inside = np.flatnonzero(label == cluster)
            covered = len(np.unique(inside % runs)) / runs >= RELIABLE_RUNS
            levels.append(_without_self(similarity[np.ix_(inside, inside)]) if covered else 0.0)
    return float(np.quantile(levels, 1 - USED * FALSE_RATE))


def _clustered(similarity: Array, count: int) -> NDArray[np.intp]:
    """Return the cluster of each estimate, (m,), of at most `count`, by average linkage of 1 − similarity (m, m)."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distance = squareform(1 - similarity, checks=False)
    return np.asarray(fcluster(linkage(distance, "average"), count, "maxclust") - 1, np.intp)

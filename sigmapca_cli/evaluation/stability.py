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

from sigmapca_cli.errors import InputError
from sigmapca_cli.evaluation.metrics import Array, cosines

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
    """One entry a cluster, the most stable first.

    index (c,): I_q = mean |cos| of two different members of the cluster − mean |cos| from it to the rest, at most
    1; a single estimate has no partner to agree with and gets 0. centrotype (p, c): the member most similar to its
    cluster. source (c, 2): run and component of the centrotype. runs (c,): fraction of the runs with a
    member. size (c,): members. labels: one array (k,) a run, the cluster of each of its components.
    reproducible (c,): alike, in nearly every run, and more so than freely turning axes are in all but 5 % of cases.
    undecided (c,): alike and in nearly every run, but no more than free axes may be in so few runs. chance: the mean
    |cos| within that free axes exceed in 5 % of cases.
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
        """Mean stability index over the clusters."""
        return float(self.index.mean())


def stability(filters: Sequence[ArrayLike], clusters: int | None = None) -> Stability:
    """Cluster the filters (p, k) of two or more runs; `clusters` is the largest k unless given.

    The similarity is |cos|. Sign, order and scale of the filters change nothing. InputError for fewer than two
    runs.
    """
    runs = [np.asarray(W, dtype=np.float64) for W in filters]
    if len(runs) < 2 or len({len(W) for W in runs}) != 1:
        raise InputError("stability needs two or more runs with the same number of features")
    pooled = np.hstack([W / np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny) for W in runs])
    similarity = cosines(pooled, pooled)
    run_of = np.repeat(np.arange(len(runs)), [W.shape[1] for W in runs])
    label = clustered(similarity, clusters or max(W.shape[1] for W in runs))
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
        within.append(without_self(among))
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
    chance = chance_level(len(sizes))
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


def without_self(similarity: Array) -> float:
    """Return the mean similarity (m, m) of two different estimates, without the diagonal; 0 for a single estimate."""
    m = len(similarity)
    return float((similarity.sum() - np.trace(similarity)) / (m * (m - 1))) if m > 1 else 0.0


@cache
def chance_level(runs: int) -> float:
    """Return the mean |cos| within a cluster that two unidentified axes exceed by chance in 5 % of cases.

    The axes are random in their plane, which is the worst case: in more dimensions random axes agree less often. By
    simulation with the same clustering; 0.9995 for 2 runs, 0.99 for 3, 0.81 in the limit of many.
    """
    random = np.random.default_rng(0)
    levels = []
    for _ in range(SIMULATIONS if runs < 20 else SIMULATIONS // 5):
        angle = random.uniform(0, np.pi / 2, runs)
        both = np.concatenate([angle, angle + np.pi / 2])
        similarity = np.abs(np.cos(both[:, None] - both))
        label = clustered(similarity, 2)
        for cluster in range(label.max() + 1):
            inside = np.flatnonzero(label == cluster)
            covered = len(np.unique(inside % runs)) / runs >= RELIABLE_RUNS
            levels.append(without_self(similarity[np.ix_(inside, inside)]) if covered else 0.0)
    return float(np.quantile(levels, 1 - USED * FALSE_RATE))


def clustered(similarity: Array, count: int) -> NDArray[np.intp]:
    """Return the cluster (from 0) of each estimate, for at most `count` clusters by average linkage."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distance = squareform(1 - similarity, checks=False)
    return np.asarray(fcluster(linkage(distance, "average"), count, "maxclust") - 1, np.intp)

"""Which components come back in every run: clusters of the estimates of many seeds, as in ICASSO.

Himberg, Hyvärinen and Esposito (2004): pool the components of all runs, cluster them by |cos| with average
linkage, and call a component reliable when its cluster is compact, isolated, and has a member of every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.evaluation.metrics import Array, cosines

#: A cluster is reproducible from this index on, and from this fraction of the runs on. Two axes that turn
#: freely in their plane still reach an index of 8/π² = 0.81 (average linkage cuts the plane in quarters).
RELIABLE_INDEX = 0.9
RELIABLE_RUNS = 0.9


@dataclass(frozen=True)
class Stability:
    """One entry a cluster, the most stable first.

    index (c,): I_q = mean |cos| within the cluster − mean |cos| from it to the rest, at most 1; a single
    estimate has no partner to agree with and gets 0. centrotype (p, c): the member most similar to its
    cluster. source (c, 2): run and component of the centrotype. runs (c,): fraction of the runs with a
    member. size (c,): members. labels: one array (k,) a run, the cluster of each of its components.
    reproducible (c,).
    """

    index: Array
    centrotype: Array
    source: NDArray[np.intp]
    runs: Array
    size: NDArray[np.intp]
    labels: list[NDArray[np.intp]]
    reproducible: NDArray[np.bool_]

    @property
    def mean(self) -> float:
        """Mean stability index over the clusters."""
        return float(self.index.mean())


def stability(
    filters: Sequence[ArrayLike], clusters: int | None = None, C: ArrayLike | None = None
) -> Stability:
    """Cluster the filters (p, k) of two or more runs; `clusters` is the largest k unless given.

    With the covariance C (p, p) of the data the similarity is the |corr| of the components rather than the
    |cos| of the filters. Sign, order and scale of the filters change nothing. InputError for fewer than two
    runs.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    runs = [np.asarray(W, dtype=np.float64) for W in filters]
    if len(runs) < 2 or len({len(W) for W in runs}) != 1:
        raise InputError("stability needs two or more runs with the same number of features")
    pooled = np.hstack([W / np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny) for W in runs])
    similarity = cosines(pooled, pooled) if C is None else cosines(root := _root(C) @ pooled, root)
    run_of = np.repeat(np.arange(len(runs)), [W.shape[1] for W in runs])
    distance = squareform(1 - similarity, checks=False)
    count = clusters or max(W.shape[1] for W in runs)
    label = fcluster(linkage(distance, "average"), count, "maxclust") - 1
    return _describe(pooled, similarity, label, run_of, [W.shape[1] for W in runs])


def _describe(
    pooled: Array, similarity: Array, label: NDArray, run_of: NDArray, sizes: list[int]
) -> Stability:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    index, centre, fraction, size = [], [], [], []
    for cluster in range(label.max() + 1):
        inside = np.flatnonzero(label == cluster)
        outside = np.flatnonzero(label != cluster)
        within = similarity[np.ix_(inside, inside)]
        across = similarity[np.ix_(inside, outside)].mean() if len(outside) else 0.0
        index.append(within.mean() - across if len(inside) > 1 else 0.0)
        centre.append(inside[np.argmax(within.sum(axis=1))])
        fraction.append(len(np.unique(run_of[inside])) / len(sizes))
        size.append(len(inside))
    order = np.lexsort((centre, -np.array(index)))
    renamed = np.empty_like(order)
    renamed[order] = np.arange(len(order))
    members = np.array(centre)[order]
    values, covered = np.array(index)[order], np.array(fraction)[order]
    return Stability(
        index=values,
        centrotype=pooled[:, members],
        source=np.stack([run_of[members], members - starts[run_of[members]]], axis=1),
        runs=covered,
        size=np.array(size)[order],
        labels=np.split(renamed[label], starts[1:-1]),
        reproducible=(values >= RELIABLE_INDEX) & (covered >= RELIABLE_RUNS),
    )


def _root(C: ArrayLike) -> Array:
    values, vectors = np.linalg.eigh(np.asarray(C, dtype=np.float64))
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T

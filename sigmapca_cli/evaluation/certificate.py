"""What a certificate holds: the verdict on every pair of components, its errors, and how a run stores it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.evaluation.metrics import Array
from sigmapca_cli.solvers.rows.stretches import unsure

IDENTIFIED, ARBITRARY, REPELLED = "identified", "arbitrary", "repelled"


class StoredVerdict(IntEnum):
    """The numbers that stand for verdicts in a run file."""

    REPELLED = -1
    ARBITRARY = 0
    IDENTIFIED = 1


def to_stored(verdict: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of a matrix of verdicts."""
    return np.select([verdict == each.name.lower() for each in StoredVerdict], [*StoredVerdict])


CERTIFICATE_LEVEL = 0.05
"""Default error rate of a certificate."""
WHITE = 1e-6
"""Relative difference of standard deviations up to which components were made white."""


@dataclass(frozen=True)
class Certificate:
    """What holds each pair of k components; matrices are symmetric (k, k) with nan on their diagonal.

    Attributes
    ----------
    curvature : ndarray of shape (k, k)
        H, the curvature of the loss as the pair turns.
    error : ndarray of shape (k, k)
        Standard error of H.
    score : ndarray of shape (k, k)
        H less its sampling bias, over its error.
    shape : ndarray of shape (k, k)
        The part of H that does not come from different variances.
    shape_error : ndarray of shape (k, k)
        Its standard error.
    variance_score : ndarray of shape (k, k)
        The difference of the two log σ over its standard error.
    angle : ndarray of shape (k, k)
        Standard error of the angle between the two axes, in radians; inf where nothing fixes it.
    verdict : ndarray of str, of shape (k, k)
        IDENTIFIED, ARBITRARY or REPELLED.
    kurtosis : ndarray of shape (k,)
        Excess kurtosis.
    sigma : ndarray of shape (k,)
        Standard deviations.
    n : int
        Number of rows.
    threshold : float
        The score up to which a pair is arbitrary.
    level : float
        The error rate that the threshold is for.
    linear : bool
        Judged by variances alone, as linear PCA is.
    lam : float or None
        λ of F, where H is the curvature of an answer of solver=moments and not of the main loss.
    tau : float or None
        τ of C, where H is the curvature of an answer of solver=independence.
    dependent : tuple of (int, int)
        Pairs of such an answer that depend on each other, the most dependent first; numbered from 0.
    together : bool
        Whether the components of such an answer depend on each other, all pairs together, and no pair stands out.
    spectra : bool
        Whether the spectra of rows in time take the place of variances.
    filled : int
        Number of rows that were left out because missing values were filled in them.
    with_filled : bool
        Whether rows with filled values were judged, because hardly a row has none.
    a : ndarray of shape (k,), or None
        Scale of the nonlinearity of each component.
    gaussian : ndarray of bool, of shape (k,), or None
        Components whose shape these rows do not tell from a Gaussian one, by their negentropy J.
    mixed : ndarray of bool, of shape (k, k), or None
        Pairs that are held where they are mixtures (`mixtures`); REPELLED in verdict.
    cut : ndarray of bool, of shape (k,), or None
        Components whose variance is that of directions left out.
    converged : bool or None
        Whether the axes are those of a solution, and not where training stopped; None where the run does not know.
    """

    curvature: Array
    error: Array
    score: Array
    shape: Array
    shape_error: Array
    variance_score: Array
    angle: Array
    verdict: NDArray[Any]
    kurtosis: Array
    sigma: Array
    n: int
    threshold: float
    level: float
    linear: bool = False
    lam: float | None = None
    tau: float | None = None
    dependent: tuple[tuple[int, int], ...] = ()
    together: bool = False
    spectra: bool = False
    filled: int = 0
    with_filled: bool = False
    a: Array | None = None
    gaussian: NDArray[Any] | None = None
    mixed: NDArray[Any] | None = None
    cut: NDArray[Any] | None = None
    converged: bool | None = True

    def __post_init__(self) -> None:
        """Leave no axis identified that is `unsure`, no finite angle of other pairs, and nothing on the diagonals."""
        loose = unsure(self.verdict == IDENTIFIED, self.angle)
        object.__setattr__(self, "verdict", np.where(loose, ARBITRARY, self.verdict))
        object.__setattr__(self, "angle", np.where(self.verdict == IDENTIFIED, self.angle, np.inf))
        for name in ("curvature", "error", "score", "shape", "shape_error", "variance_score", "angle"):
            matrix = np.array(getattr(self, name), dtype=np.float64)
            np.fill_diagonal(matrix, np.nan)
            object.__setattr__(self, name, matrix)

    @property
    def weakest(self) -> NDArray[np.intp]:
        """Return (k,): the partner with the smallest score."""
        return np.argmin(np.where(np.eye(len(self.sigma), dtype=bool), np.inf, self.score), axis=1)

    @property
    def white(self) -> bool:
        """Return whether all components have one variance by construction, which is then no reason for anything."""
        return len(self.sigma) > 1 and bool(np.ptp(self.sigma) <= WHITE * self.sigma.max())

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Return (k,): whether every pair of the component is identified; none where the axes are no solution."""
        if self.converged is False:
            return np.zeros(len(self.sigma), dtype=bool)
        other = ~np.eye(len(self.sigma), dtype=bool)
        held = np.array([(self.verdict[i][other[i]] == IDENTIFIED).all() for i in range(len(self.sigma))])
        return held if self.cut is None else held & ~self.cut

    @property
    def expected_cosine(self) -> Array:
        """Return (k,): the |cos| of an axis with its large-sample limit that the angles predict, cos √(Σ_j angle²).

        Rotation within the k components only; an arbitrary axis gives 0.
        """
        angles = np.where(np.isfinite(self.angle), np.minimum(self.angle, np.pi / 2), np.pi / 2)
        np.fill_diagonal(angles, 0.0)
        return np.cos(np.minimum(np.sqrt(np.sum(angles**2, axis=1)), np.pi / 2))


def verdict_of(score: Array, threshold: float) -> NDArray[Any]:
    """Return IDENTIFIED where a score (k, k) is above the threshold, REPELLED below its negative, else ARBITRARY."""
    return np.where(score > threshold, IDENTIFIED, np.where(score < -threshold, REPELLED, ARBITRARY))

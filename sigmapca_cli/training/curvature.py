"""The curvature of a field at given filters: for every pair of components, and for every direction out of their span.

Coordinates: rows of A and G are coordinates along B = [U, E], with U (q, k) the orthonormal matrix nearest to the
filters and E (q, r) directions orthogonal to them. A pair (i, j) can turn (both axes rotate together) or lean (the two
axes rotate towards each other). The 2 × 2 response to both has a small eigenvalue, the soft mode, which decides whether
the pair is stable, and a large one, the stiff mode. Below, a "way" is one such mode, or a direction out of the span.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.linalg.rotations import disjoint_pairs

Array = np.ndarray

STEP = 0.02
"""Angle of a trial rotation, radians: the error is its square, and differences stay above float32 rounding."""


@dataclass(frozen=True)
class Curvatures:
    """Curvature and residual along each of m ways: pairs first, then directions out of the span.

    curvature (m,) and its standard error (m,); residual (m,), the field along the way, and its standard error (m,);
    moves (m, 2): the two components of a pair, or −1 and the component that moves most; share (m, k): radians that
    each component moves per radian of the way; lean (m,): distance to the stationary point along the stiff mode of a
    pair, radians.
    """

    curvature: Array
    error: Array
    residual: Array
    residual_error: Array
    moves: Array
    share: Array
    lean: Array


def turned(A: Array, i: Array, j: Array, angle: float) -> Array:
    """Return A (…, q, k) with planes (i, j) rotated: row i ← cos·row i − sin·row j, row j ← sin·row i + cos·row j."""
    c, s = np.cos(angle), np.sin(angle)
    result = A.copy()
    result[..., i, :] = c * A[..., i, :] - s * A[..., j, :]
    result[..., j, :] = s * A[..., i, :] + c * A[..., j, :]
    return result


def leaning(A: Array, i: Array, j: Array, step: Array) -> Array:
    """Return A (q, k) with the columns i and j moved towards each other by step (k,), in units of A."""
    result = A.copy()
    result[i, j] += step[j]
    result[j, i] += step[i]
    return result


@dataclass(frozen=True)
class Responses:
    """How the field responds, by groups of rows, to small moves of the columns of A (q, k).

    pairs (G, m, 2, 2): to the turn and the lean of the m pairs `moves` (m, 2); outside (G, r, k, k): of all components
    to moves towards each of r directions out of the span. norms, sigma (k,) of the columns.
    """

    pairs: Array
    moves: Array
    outside: Array
    norms: Array
    sigma: Array
    rigid: bool

    @property
    def scale(self) -> Array:
        """2σ_iσ_j/‖a_i‖ (k, k): the field within the span divided by it has no unit."""
        return 2 * (self.sigma / self.norms)[:, None] * self.sigma


def responses_at(field: Callable[[Array], Array], A: Array, sigma: Array, rigid: bool = False) -> Responses:
    """Return the responses at A (q, k) of a field A -> (G, q, k), by small trial moves.

    rigid: a constraint keeps the columns orthonormal, so that pairs can turn but not lean. sigma (k,): standard
    deviations of the components.
    """
    k, norms = A.shape[1], np.linalg.norm(A, axis=0)
    scale = 2 * (sigma / norms)[:, None] * sigma
    base = field(A)
    blocks, moves = [np.zeros((len(base), 0, 2, 2))], [np.zeros((0, 2), int)]
    rounds = disjoint_pairs(k)
    for i, j in rounds[:1] + rounds[:0:-1]:  # stored runs list their pairs in this order
        up, down = turned(A, i, j, STEP), turned(A, i, j, -STEP)
        turn = (turned(field(up), i, j, -STEP) - turned(field(down), i, j, STEP)) / (2 * STEP)
        lean = np.zeros_like(turn)
        if not rigid:
            out, back = leaning(A, i, j, STEP * norms), leaning(A, i, j, -STEP * norms)
            lean = (field(out) - field(back)) / (2 * STEP)
        blocks.append(np.stack([in_pair(v, i, j, scale) for v in (turn, lean)], axis=-1))
        moves.append(np.stack([i, j], axis=1))
    outside = responses_out_of_span(field, A, base, sigma, norms)
    return Responses(np.concatenate(blocks, 1), np.concatenate(moves), outside, norms, sigma, rigid)


def curvatures_of(found: Responses, measured: Array) -> Curvatures:
    """Return curvature and residual along all ways; measured (G', q, k): the field at A over more rows.

    Curvatures have no unit: the field is divided by 2σ_iσ_j.
    """
    parts = []
    if len(found.moves):
        along = in_pair(measured, found.moves[:, 0], found.moves[:, 1], found.scale)
        parts.append(pair_curvatures(found.pairs, along, found.moves, found.rigid, len(found.sigma)))
    if found.outside.shape[1]:
        parts.append(curvatures_out_of_span(found, measured))
    return concatenated(parts)


def in_pair(F: Array, i: Array, j: Array, scale: Array) -> Array:
    """Return the field F (…, q, k) along the turn and along the lean of each pair, (…, pairs, 2)."""
    high, low = F[..., j, i] / scale[j, i], F[..., i, j] / scale[i, j]
    return np.stack([high - low, high + low], axis=-1) / 2


def pair_curvatures(blocks: Array, residuals: Array, moves: Array, rigid: bool, k: int) -> Curvatures:
    """Return the soft mode of every pair from its responses (G, pairs, 2, 2) and its residuals (G', pairs, 2)."""
    if rigid:
        turn, along = blocks[:, :, 0, 0], residuals[:, :, 0]
        ones, none = shares(np.ones((len(moves), 2)), moves, k), np.zeros(len(moves))
        return Curvatures(turn.mean(0), spread(turn), along.mean(0), spread(along), moves, ones, none)
    B, F = blocks.mean(0), residuals.mean(0)
    half = (B[:, 0, 0] + B[:, 1, 1]) / 2
    root = np.sqrt(np.maximum(half**2 - (B[:, 0, 0] * B[:, 1, 1] - B[:, 0, 1] * B[:, 1, 0]), 0.0))
    soft, stiff = half - root, half + root
    right, left = vector(B, soft), vector(B.swapaxes(1, 2), soft)
    product = np.einsum("mi,mi->m", left, right)
    # A block with two equal eigenvalues and only one eigenvector has no two modes: the turn is used as the soft mode.
    whole = np.abs(product) < 1e-3
    right[whole], left[whole], product[whole] = (1.0, 0.0), (1.0, 0.0), 1.0
    left /= product[:, None]
    curvature = np.einsum("mi,gmij,mj->gm", left, blocks, right)
    curvature[:, whole] = (blocks[:, whole, 0, 0] + blocks[:, whole, 1, 1]) / 2
    along = np.einsum("mi,gmi->gm", left, residuals)
    rest = F - along.mean(0)[:, None] * right
    lean = np.linalg.norm(rest, axis=1) / np.maximum(np.abs(stiff), np.finfo(float).tiny)
    # Component i moves by turn + lean, j by −turn + lean.
    each = np.stack([right[:, 0] + right[:, 1], right[:, 1] - right[:, 0]], axis=1)
    lean = np.where(np.abs(stiff) > 1e-6, lean, 0.0)
    share = shares(np.abs(each), moves, k)
    return Curvatures(curvature.mean(0), spread(curvature), along.mean(0), spread(along), moves, share, lean)


def shares(each: Array, moves: Array, k: int) -> Array:
    """Return the share (m, k) of every component from `each` (m, 2), that of the two components of each pair."""
    share = np.zeros((len(moves), k))
    rows = np.arange(len(moves))
    share[rows, moves[:, 0]], share[rows, moves[:, 1]] = each[:, 0], each[:, 1]
    return share


def vector(B: Array, value: Array) -> Array:
    """Return the unit eigenvectors (m, 2) of the matrices B (m, 2, 2) for the eigenvalues `value` (m,).

    Either row of B − value·I gives the eigenvector; the one of larger norm is used. Of a multiple of I: (1, 0).
    """
    first = np.stack([B[:, 0, 1], value - B[:, 0, 0]], axis=1)
    second = np.stack([value - B[:, 1, 1], B[:, 1, 0]], axis=1)
    larger = np.linalg.norm(second, axis=1) > np.linalg.norm(first, axis=1)
    vectors = np.where(larger[:, None], second, first)
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.where(size > 1e-12, vectors / np.where(size > 1e-12, size, 1.0), np.array([1.0, 0.0]))


def responses_out_of_span(
    field: Callable[[Array], Array], A: Array, base: Array, sigma: Array, norms: Array
) -> Array:
    """Return the responses (G, r, k, k) of all components to moves of each towards each direction out of the span.

    In the scale b_j = σ_j a_j the (k, k) matrix of a direction is symmetric if the field is a gradient.
    """
    q, k = A.shape
    r = q - k
    blocks = np.zeros((len(base), r, k, k))
    for start in range(0, k, max(r, 1)) if r else ():
        columns = np.arange(start, min(start + r, k))
        for first in range(r):
            beyond = (columns - start + first) % r  # each component moves towards another direction
            moved = A.copy()
            moved[k + beyond, columns] += STEP * norms[columns]
            response = (field(moved) - base)[:, k + beyond, :] / STEP  # (G, columns, k)
            for i, (v, column) in enumerate(zip(beyond, columns, strict=True)):
                blocks[:, v, :, column] = response[:, i] * norms / (2 * sigma * sigma[column])
    return blocks


def eigenvectors_outside(found: Responses) -> tuple[Array, Array]:
    """Return the eigenvalues (r, k) and eigenvectors (r, k, k) of the mean responses to each direction."""
    mean = found.outside.mean(0)
    values, vectors = np.linalg.eigh((mean + mean.swapaxes(-1, -2)) / 2)
    return values, vectors


def curvatures_out_of_span(found: Responses, measured: Array) -> Curvatures:
    """Return the ways out of the span: for each direction orthogonal to it, k joint moves of the components."""
    blocks, sigma = found.outside, found.sigma
    k, r = len(sigma), blocks.shape[1]
    values, vectors = eigenvectors_outside(found)
    curvature = np.einsum("vjm,gvji,vim->gvm", vectors, blocks, vectors, optimize=True)
    scaled = measured[:, k:, :] * found.norms / (2 * sigma)
    most = np.abs(vectors / sigma[:, None]).argmax(1)  # (r, k): the component that moves most
    residual = np.einsum("vjm,gvj->gvm", vectors, scaled) / sigma[most]
    share = np.abs(vectors / sigma[:, None]).swapaxes(1, 2) * sigma[most][..., None]
    moves = np.stack([np.full(r * k, -1), most.ravel()], axis=1)
    c, s = curvature.reshape(len(blocks), -1), residual.reshape(len(measured), -1)
    none = np.zeros(r * k)
    return Curvatures(values.ravel(), spread(c), s.mean(0), spread(s), moves, share.reshape(-1, k), none)


def spread(groups: Array) -> Array:
    """Return the standard error (m,) of the mean over the groups (G, m)."""
    return groups.std(0, ddof=1) / np.sqrt(len(groups))


def concatenated(parts: list[Curvatures]) -> Curvatures:
    """Concatenate several sets of ways; return an empty one for a single component of a single feature."""
    if not parts:
        none = np.zeros(0)
        return Curvatures(none, none, none, none, np.zeros((0, 2), int), np.zeros((0, 1)), none)
    names = Curvatures.__dataclass_fields__
    return Curvatures(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

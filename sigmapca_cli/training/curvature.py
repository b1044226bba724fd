"""How a field turns filters close to a point: for every pair of components, and for every way out of their span.

All in the frame of the filters: rows of A and G are coordinates along B = [U, E], U (q, k) the orthonormal matrix
nearest to the filters, E (q, r) directions beside them. A pair (i, j) can turn as a whole, or its two axes can lean
towards each other; the 2 × 2 response to both has a small eigenvalue, which is what holds the pair, and a large one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

STEP = 0.02
"""Radians of a trial turn: its square is the error, and no float32 sum is lost in it."""


@dataclass(frozen=True)
class Holds:
    """What holds each way to move, m of them: pairs first, then (direction beside, component).

    curvature (m,), its standard error (m,); residual (m,) the field along it, its standard error (m,); moves
    (m, 2): the two components, or −1 and the one that moves most; share (m, k): radians that each component moves for
    each radian of the way; lean (m,): radians that the stiff way of a pair has still to go.
    """

    curvature: Array
    error: Array
    residual: Array
    residual_error: Array
    moves: Array
    share: Array
    lean: Array


def rounds(k: int) -> list[tuple[Array, Array]]:
    """Every pair of k components once, in k − 1 or k sets of pairs that share no component (a tournament)."""
    players = list(range(k)) + ([-1] if k % 2 else [])
    found = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        pairs = [
            (a, b) for a, b in zip(players[:half], players[: half - 1 : -1], strict=True) if min(a, b) >= 0
        ]
        found.append((np.array([min(p) for p in pairs], int), np.array([max(p) for p in pairs], int)))
        players = [players[0], players[-1], *players[1:-1]]
    return [pair for pair in found if len(pair[0])] if k > 1 else []


def turned(A: Array, i: Array, j: Array, angle: float) -> Array:
    """A (…, q, k) after a turn of the planes (i, j): row i ← cos·row i − sin·row j, row j ← sin·row i + cos·row j."""
    c, s = np.cos(angle), np.sin(angle)
    result = A.copy()
    result[..., i, :] = c * A[..., i, :] - s * A[..., j, :]
    result[..., j, :] = s * A[..., i, :] + c * A[..., j, :]
    return result


def leaning(A: Array, i: Array, j: Array, step: Array) -> Array:
    """A (q, k) with columns i and j leaning towards each other, by step (k,) times their own length."""
    result = A.copy()
    result[i, j] += step[j]
    result[j, i] += step[i]
    return result


def holds(
    field: Callable[[Array], Array], A: Array, sigma: Array, measured: Array, rigid: bool = False
) -> Holds:
    """The ways to move at A (q, k) and what holds them.

    field: A -> (G, q, k), by groups of rows; measured (G', q, k): the same at A, over more rows. sigma (k,): standard
    deviations of the components. Curvatures are free of units: the field is divided by 2σ_iσ_j. rigid: a constraint
    keeps the columns orthonormal, so that pairs turn and cannot lean.
    """
    k, norms = A.shape[1], np.linalg.norm(A, axis=0)
    along = sigma / norms
    scale = 2 * along[:, None] * sigma
    base = field(A)
    blocks, residuals, moves = [], [], []
    for i, j in rounds(k):
        up, down = turned(A, i, j, STEP), turned(A, i, j, -STEP)
        turn = (turned(field(up), i, j, -STEP) - turned(field(down), i, j, STEP)) / (2 * STEP)
        lean = np.zeros_like(turn)
        if not rigid:
            out, back = leaning(A, i, j, STEP * norms), leaning(A, i, j, -STEP * norms)
            lean = (field(out) - field(back)) / (2 * STEP)
        blocks.append(np.stack([in_pair(v, i, j, scale) for v in (turn, lean)], axis=-1))
        residuals.append(in_pair(measured, i, j, scale))
        moves.append(np.stack([i, j], axis=1))
    found = (
        [of_pairs(np.concatenate(blocks, 1), np.concatenate(residuals, 1), np.concatenate(moves), rigid, k)]
        if moves
        else []
    )
    if len(A) > k:
        found.append(beside(field, A, base, measured, sigma, norms))
    return joined(found)


def in_pair(F: Array, i: Array, j: Array, scale: Array) -> Array:
    """(G, pairs, 2): the field (G, q, k) along the turn of each pair, and along its lean."""
    high, low = F[:, j, i] / scale[j, i], F[:, i, j] / scale[i, j]
    return np.stack([high - low, high + low], axis=-1) / 2


def of_pairs(blocks: Array, residuals: Array, moves: Array, rigid: bool, k: int) -> Holds:
    """The soft way of every pair from its responses (G, pairs, 2, 2) and its residuals (G', pairs, 2)."""
    if rigid:
        turn, along = blocks[:, :, 0, 0], residuals[:, :, 0]
        ones, none = shares(np.ones((len(moves), 2)), moves, k), np.zeros(len(moves))
        return Holds(turn.mean(0), spread(turn), along.mean(0), spread(along), moves, ones, none)
    B, F = blocks.mean(0), residuals.mean(0)
    half = (B[:, 0, 0] + B[:, 1, 1]) / 2
    root = np.sqrt(np.maximum(half**2 - (B[:, 0, 0] * B[:, 1, 1] - B[:, 0, 1] * B[:, 1, 0]), 0.0))
    soft, stiff = half - root, half + root
    right, left = vector(B, soft), vector(B.swapaxes(1, 2), soft)
    product = np.einsum("mi,mi->m", left, right)
    # A block with two equal eigenvalues and one eigenvector cannot be split: the turn stands for the soft way.
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
    return Holds(curvature.mean(0), spread(curvature), along.mean(0), spread(along), moves, share, lean)


def shares(each: Array, moves: Array, k: int) -> Array:
    """(m, k) from what the two components of each pair move, (m, 2)."""
    found = np.zeros((len(moves), k))
    rows = np.arange(len(moves))
    found[rows, moves[:, 0]], found[rows, moves[:, 1]] = each[:, 0], each[:, 1]
    return found


def vector(B: Array, value: Array) -> Array:
    """The eigenvectors (m, 2) of matrices B (m, 2, 2) to these eigenvalues: the larger of two ways to write them."""
    one = np.stack([B[:, 0, 1], value - B[:, 0, 0]], axis=1)
    two = np.stack([value - B[:, 1, 1], B[:, 1, 0]], axis=1)
    larger = np.linalg.norm(two, axis=1) > np.linalg.norm(one, axis=1)
    found = np.where(larger[:, None], two, one)
    size = np.linalg.norm(found, axis=1, keepdims=True)
    return np.where(size > 1e-12, found / np.where(size > 1e-12, size, 1.0), np.array([1.0, 0.0]))


def beside(
    field: Callable[[Array], Array], A: Array, base: Array, measured: Array, sigma: Array, norms: Array
) -> Holds:
    """The ways out of the span: towards each direction v beside it, the components together.

    The responses of all components to moves of all components towards one v are a (k, k) matrix, symmetric for a
    gradient in the scale of b_j = σ_j a_j. Its eigenvectors are the ways.
    """
    q, k = A.shape
    r = q - k
    blocks = np.zeros((len(base), r, k, k))
    for start in range(0, k, r):
        columns = np.arange(start, min(start + r, k))
        for first in range(r):
            beyond = (columns - start + first) % r  # each component towards a direction of its own
            moved = A.copy()
            moved[k + beyond, columns] += STEP * norms[columns]
            response = (field(moved) - base)[:, k + beyond, :] / STEP  # (G, columns, k)
            for i, (v, column) in enumerate(zip(beyond, columns, strict=True)):
                blocks[:, v, :, column] = response[:, i] * norms / (2 * sigma * sigma[column])
    mean = blocks.mean(0)
    values, vectors = np.linalg.eigh((mean + mean.swapaxes(-1, -2)) / 2)  # (r, k), (r, k, k)
    curvature = np.einsum("vjm,gvji,vim->gvm", vectors, blocks, vectors, optimize=True)
    scaled = measured[:, k:, :] * norms / (2 * sigma)
    most = np.abs(vectors / sigma[:, None]).argmax(1)  # (r, k): the component that moves most
    residual = np.einsum("vjm,gvj->gvm", vectors, scaled) / sigma[most]
    share = np.abs(vectors / sigma[:, None]).swapaxes(1, 2) * sigma[most][..., None]
    moves = np.stack([np.full(r * k, -1), most.ravel()], axis=1)
    c, s = curvature.reshape(len(base), -1), residual.reshape(len(measured), -1)
    none = np.zeros(r * k)
    return Holds(values.ravel(), spread(c), s.mean(0), spread(s), moves, share.reshape(-1, k), none)


def spread(groups: Array) -> Array:
    """Standard error of the mean of the groups (G, m)."""
    return groups.std(0, ddof=1) / np.sqrt(len(groups))


def joined(parts: list[Holds]) -> Holds:
    """Several sets of ways as one; none for a single component of a single feature."""
    if not parts:
        none = np.zeros(0)
        return Holds(none, none, none, none, np.zeros((0, 2), int), np.zeros((0, 1)), none)
    names = Holds.__dataclass_fields__
    return Holds(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

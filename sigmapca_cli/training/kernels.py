"""The loops of `compiled_step` as machine code: what lies between the matrix products of a step, in three functions.

numba compiles them once for a machine and keeps the result on disk. Only `compiled_step.load` imports this module.
All arrays are C-contiguous and of one type. R runs lie one behind the other; no number depends on R, so that a run
in a group has the bits that it has alone. An array (m, k) of a run is read as one line of m·k numbers, in pieces of L:
L is a multiple of k, so that entry j of a piece always belongs to component j mod k, and long enough for the
processor's vector instructions also where k is small. `lanes` (3, L) is the scratch memory for that. Each inner loop
uses few arrays, since the compiler vectorises it only then.
"""

import math
from typing import Any

from numba import njit

Array = Any  # numpy.ndarray

# "contract": a·b + c may be rounded once. Nothing else may be reordered: the same run has the same bits.
compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@compiled
def spread(column: Array, lane: Array) -> None:
    """Set lane[i] = column[i mod k]."""
    k = len(column)
    for i in range(0, len(lane), k):
        lane[i : i + k] = column


@compiled
def folded(lane: Array, column: Array) -> None:
    """Set column[j] to the sum of lane[i] over the i with i mod k = j."""
    k = len(column)
    column[:] = lane[:k]
    for i in range(k, len(lane), k):
        column += lane[i : i + k]


@compiled
def activate(
    y: Array, t: Array, gram: Array, variance: Array, sigma: Array, columns: Array, lanes: Array, ema: bool
) -> None:
    """Update σ, and set t = y/(aσ) and the rows of the Gram matrix to WᵀW·aσ.

    y, t (R, b, k); gram (R, k, k); variance, sigma (R, k); columns (6, R, k): a, 1 − momentum, f, e of σ² = f·v + e,
    then aσ and wᵀg, which are results. `ema`: v moves by the batch's variance; else σ stays.
    """
    runs, b, k = y.shape
    n, size = b * k, lanes.shape[1]
    lane = lanes[0]
    for r in range(runs):
        rows, units, scale = y[r].reshape(n), t[r].reshape(n), columns[4, r]
        if ema:
            lane[:] = 0
            for i in range(0, n, size):
                piece = rows[i : i + size]
                for j in range(len(piece)):
                    lane[j] += piece[j] * piece[j]
            folded(lane, scale)
            for j in range(k):
                variance[r, j] += (scale[j] / y.dtype.type(b) - variance[r, j]) * columns[1, r, j]
                sigma[r, j] = math.sqrt(variance[r, j] * columns[2, r, j] + columns[3, r, j])
        for j in range(k):
            scale[j] = sigma[r, j] * columns[0, r, j]
            for i in range(k):
                gram[r, j, i] *= scale[j]
        spread(scale, lane)
        for j in range(size):
            lane[j] = 1 / lane[j]
        for i in range(0, n, size):
            piece, unit = rows[i : i + size], units[i : i + size]
            for j in range(len(piece)):
                unit[j] = piece[j] * lane[j]


@compiled
def differentiate(
    y: Array, t: Array, G: Array, columns: Array, lanes: Array, loss: Array, factors: Array, one: bool
) -> None:
    """Set G = 2/b·(G − y) ⊙ h′, G = ŷWᵀW before, the loss terms (⟨ŷ, G − y⟩ − ⟨ŷ, y⟩)/b, and wᵀg = Σ y ⊙ G.

    y, t, G (R, b, k), t after the tanh; loss (R,); factors (2,) are 2/b and 1/b. h′ = 1 − t², or 1 with `one`.
    """
    runs, b, k = y.shape
    n, size = b * k, lanes.shape[1]
    terms, pull, scale = lanes[0], lanes[1], lanes[2]
    twice, mean = factors[0], factors[1]
    for r in range(runs):
        rows, units, errors = y[r].reshape(n), t[r].reshape(n), G[r].reshape(n)
        terms[:] = 0
        pull[:] = 0
        spread(columns[4, r], scale)
        for i in range(0, n, size):
            piece, unit, error = rows[i : i + size], units[i : i + size], errors[i : i + size]
            for j in range(len(piece)):
                error[j] -= piece[j]
            for j in range(len(piece)):
                terms[j] += unit[j] * (error[j] - piece[j])
            if not one:
                for j in range(len(piece)):
                    error[j] -= error[j] * (unit[j] * unit[j])
            for j in range(len(piece)):
                error[j] *= twice
            for j in range(len(piece)):
                pull[j] += error[j] * piece[j]
        folded(pull, columns[5, r])
        total = terms[0] * scale[0]
        for j in range(1, size):
            total += terms[j] * scale[j]
        loss[r] = total * mean


@compiled
def adam(
    W: Array, g: Array, m: Array, v: Array, columns: Array, lanes: Array, numbers: Array, tangent: bool
) -> None:
    """Project g, make a step of Adam on W, and divide each w by its norm.

    W, g, m, v (R, p, k); numbers (R, 6): β₁, 1 − β₁, β₂, 1 − β₂, ε·√c₂, and the rate·√c₂/c₁, c = 1 − βᵗ.
    """
    runs, p, k = W.shape
    n, size = p * k, lanes.shape[1]
    pull, norms = lanes[0], lanes[1]
    for r in range(runs):
        weights, slopes, means, squares = W[r].reshape(n), g[r].reshape(n), m[r].reshape(n), v[r].reshape(n)
        keep1, take1, keep2, take2, epsilon, rate = numbers[r]
        spread(columns[5, r], pull)
        norms[:] = 0
        for i in range(0, n, size):
            w, slope = weights[i : i + size], slopes[i : i + size]
            mean, square = means[i : i + size], squares[i : i + size]
            if tangent:
                for j in range(len(w)):
                    slope[j] -= w[j] * pull[j]
            for j in range(len(w)):
                mean[j] = mean[j] * keep1 + slope[j] * take1
            for j in range(len(w)):
                square[j] = square[j] * keep2 + slope[j] * slope[j] * take2
            for j in range(len(w)):
                w[j] -= rate * (mean[j] / (math.sqrt(square[j]) + epsilon))
            for j in range(len(w)):
                norms[j] += w[j] * w[j]
        normalise(weights, norms, columns[5, r])


@compiled
def momentum(
    W: Array, g: Array, velocity: Array, columns: Array, lanes: Array, numbers: Array, tangent: bool
) -> None:
    """Project g, make a step of SGD with heavy-ball momentum on W, and divide each w by its norm.

    W, g, velocity (R, p, k); numbers (R, 2): μ of b ← μ·b + g, and the rate of w ← w − rate·b.
    """
    runs, p, k = W.shape
    n, size = p * k, lanes.shape[1]
    pull, norms = lanes[0], lanes[1]
    for r in range(runs):
        weights, slopes, speeds = W[r].reshape(n), g[r].reshape(n), velocity[r].reshape(n)
        keep, rate = numbers[r]
        spread(columns[5, r], pull)
        norms[:] = 0
        for i in range(0, n, size):
            w, slope, speed = weights[i : i + size], slopes[i : i + size], speeds[i : i + size]
            if tangent:
                for j in range(len(w)):
                    slope[j] -= w[j] * pull[j]
            for j in range(len(w)):
                speed[j] = speed[j] * keep + slope[j]
            for j in range(len(w)):
                w[j] -= rate * speed[j]
            for j in range(len(w)):
                norms[j] += w[j] * w[j]
        normalise(weights, norms, columns[5, r])


@compiled
def normalise(weights: Array, norms: Array, column: Array) -> None:
    """Divide each filter by its norm. weights (p·k,); norms (L,): its squares, summed by lane; column (k,): scratch."""
    size = len(norms)
    folded(norms, column)
    for j in range(len(column)):
        column[j] = 1 / math.sqrt(column[j])
    spread(column, norms)
    for i in range(0, len(weights), size):
        w = weights[i : i + size]
        for j in range(len(w)):
            w[j] *= norms[j]

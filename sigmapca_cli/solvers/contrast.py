"""F(R) = Σ_j σ_j⁴ + λ·Σ_j |cum₄(y_j)|: its value, its exact gradient and Hessian, and its maximum over one pair.

A small rotation A (antisymmetric) moves the components to y·expm(A). On pairs i < j the coordinate is θ_ij = A_ji, so
that y_i gains θ_ij y_j, as everywhere in these solvers. The signs s_j = sign cum₄(y_j) are held in the derivatives:
F is the greatest of the functions that they choose among, so that no maximum lies where one of them changes.
"""

from __future__ import annotations

import numpy as np

from sigmapca_cli.solvers.fourth import Fourth, Point, expanded
from sigmapca_cli.solvers.jacobian import pack

Array = np.ndarray


def value(C: Array, kappa: Array, lam: float) -> float:
    """F = Σ C_jj² + λ·Σ|κ_j|."""
    return float(np.sum(np.diag(C) ** 2) + lam * np.abs(kappa).sum())


def signs(kappa: Array) -> Array:
    """sign κ_j, and 1 where κ_j is 0."""
    return np.where(kappa < 0, -1.0, 1.0)


def slopes(point: Point, lam: float) -> Array:
    """G (k, k): G_aj = 4C_jj C_aj + 4λ s_j cum(y_a, y_j, y_j, y_j), what y_j gains F by a share of y_a."""
    C = point.C
    return np.asarray(4 * (C * np.diag(C) + lam * point.cross * signs(point.kappa)))


def gradient(G: Array) -> Array:
    """∂F/∂θ_ij = G_ji − G_ij on pairs i < j."""
    return pack(G.T - G)


def blocks(C: Array, shared: Array, G: Array, s: Array, lam: float) -> Array:
    """N (k, k, k): the Hessian maps A to the antisymmetric part of X, X_aj = Σ_b N_j[a, b] A_bj.

    N_j = 4C_jj C + 8 C_·j C_·jᵀ + 12λ s_j cum(y_j, y_j, y_a, y_b) − (G + Gᵀ)/2.
    """
    N = 4 * np.diag(C)[:, None, None] * C + 8 * C.T[:, :, None] * C.T[:, None, :]
    return np.asarray(N + 12 * lam * s[:, None, None] * shared - (G + G.T) / 2)


def hessian(N: Array) -> Array:
    """d²F over pairs i < j, (k(k−1)/2, k(k−1)/2), from the blocks N."""
    k = len(N)
    i, j = np.triu_indices(k, 1)
    index = np.zeros((k, k), np.int64)
    index[i, j] = index[j, i] = np.arange(len(i))
    H = np.zeros((len(i), len(i)))
    for c in range(k):
        others = np.delete(np.arange(k), c)
        sign = np.sign(others - c)  # θ_cb = A_bc for c < b
        place = index[c, others]
        H[np.ix_(place, place)] += np.outer(sign, sign) * N[c][np.ix_(others, others)]
    return H


def scale(C: Array, kappa: Array, lam: float) -> Array:
    """D_ij on pairs i < j: −d²F of independent components, with a small part of σ⁴ so that it is never 0.

    4(σ_i² − σ_j²)² + 4λ(|κ_i| + |κ_j|) + 0.04(σ_i⁴ + σ_j⁴): g/D is an angle, free of units.
    """
    v, size = np.diag(C), np.abs(kappa)
    apart = (v[:, None] - v) ** 2 + lam * (size[:, None] + size)
    return pack(np.asarray(4 * apart + 0.04 * (v[:, None] ** 2 + v**2)))


def best_angles(moments: Fourth, R: Array, i: Array, j: Array, lam: float) -> Array:
    """Angles (m,) that maximise F over each of m disjoint pairs: y_i ← cy_i + sy_j, y_j ← cy_j − sy_i.

    With q the pair's Σσ⁴/2, u half the sum and v half the difference of its two cumulants,
    F/2 = q + λ·max(|u|, |v|), where q and u are constants plus the harmonic 4θ, and v is the harmonic 2θ: three cases,
    each with a closed form. 0 where nothing is gained. Symmetric fourth forms x: x₄₀ … x₀₄ of (i, j).
    """
    P, Q = R[:, i], R[:, j]
    ii, jj, ij = expanded(P, P), expanded(Q, Q), expanded(P, Q)
    first, second = moments.K @ ii, moments.K @ jj
    kappa = [
        np.sum(left * right, 0)
        for left, right in ((ii, first), (ij, first), (jj, first), (ij, second), (jj, second))
    ]
    a, b, c = (np.sum(left * (moments.C @ right), 0) for left, right in ((P, P), (P, Q), (Q, Q)))
    fourth = [a * a, a * b, (a * c + 2 * b * b) / 3, b * c, c * c]
    return greatest(harmonics(fourth), harmonics(kappa), lam)


def harmonics(x: list[Array]) -> tuple[Array, Array, Array]:
    """Mean, and the complex coefficients of e^{2iθ} and e^{4iθ} (real part taken), of x₄₀ as the pair is turned."""
    x40, x31, x22, x13, x04 = x
    mean = (3 * (x40 + x04) + 6 * x22) / 8
    return mean, (x40 - x04) / 2 - 1j * (x31 + x13), (x40 + x04 - 6 * x22) / 8 - 0.5j * (x31 - x13)


Form = tuple[Array, Array, Array]


def greatest(q: Form, kappa: Form, lam: float) -> Array:
    """The θ in [−π/4, π/4) at which q + λ·max(|u|, |v|) is greatest, 0 where 0 is as good."""
    mean, double, quadruple = (lam * part for part in kappa)
    q4 = q[2]
    zero = np.zeros(len(mean))
    candidates = [zero]
    for sign in (1, -1):  # both cumulants of one sign: 4θ alone
        candidates.append(-np.angle(q4 + sign * quadruple) / 4)
    roots = stationary(
        double, q4
    )  # cumulants of two signs: y_i and y_j may change places, v changes its sign then
    candidates += list(roots.T)
    theta = np.stack(candidates)
    turn = np.exp(2j * theta)
    u = mean + (quadruple * turn**2).real
    v = (double * turn).real
    gained = (q4 * turn**2).real + np.maximum(np.abs(u), np.abs(v))
    size = np.abs(q4) + np.abs(mean) + np.abs(double) + np.abs(quadruple) + q[0]
    best = gained.argmax(0)
    at = np.arange(len(best))
    found = theta[best, at]
    found = np.where(gained[best, at] > gained[0] + 1e-15 * size, found, 0.0)
    # a quarter turn only exchanges the two components
    return np.asarray((found + np.pi / 4) % (np.pi / 2) - np.pi / 4)


def stationary(double: Array, quadruple: Array) -> Array:
    """(m, 4): angles θ where the derivative of Re(d·e^{2iθ} + q·e^{4iθ}) may vanish.

    With t = e^{2iθ} it is 2q·t⁴ + d·t³ − d̄·t − 2q̄ = 0 on the unit circle: the eigenvalues of a companion matrix.
    """
    size = np.abs(double) + np.abs(quadruple)
    lead = np.where(np.abs(quadruple) > 1e-14 * size, quadruple, 1e-14 * size + (size == 0))
    companion = np.zeros((len(double), 4, 4), complex)
    companion[:, 0, 0], companion[:, 0, 2] = -double / (2 * lead), double.conj() / (2 * lead)
    companion[:, 0, 3] = lead.conj() / lead
    companion[:, 1, 0] = companion[:, 2, 1] = companion[:, 3, 2] = 1
    return np.asarray(np.angle(np.linalg.eigvals(companion)) / 2)

"""F(R) = Σ_j σ_j⁴ + λ·Σ_j |cum₄(y_j)|: its value, its exact gradient and Hessian, and its maximum over one pair.

A small rotation A (antisymmetric) moves the components to y·expm(A). On pairs i < j the coordinate is θ_ij = A_ji, so
that y_i gains θ_ij y_j, as everywhere in these solvers. The derivatives hold the signs s_j = sign cum₄(y_j) constant.
F is the maximum over all choices of signs of smooth functions, so that no maximum of F lies where a sign changes.
"""

from __future__ import annotations

import numpy as np

from sigmapca_cli.solvers.fourth_moments.fourth import Fourth, Point, expanded
from sigmapca_cli.solvers.newton.jacobian import pack, pairs

Array = np.ndarray


def value(C: Array, kappa: Array, lam: float) -> float:
    """Return F = Σ C_jj² + λ·Σ|κ_j|; C (k, k), kappa (k,)."""
    return float(np.sum(np.diag(C) ** 2) + lam * np.abs(kappa).sum())


def signs(kappa: Array) -> Array:
    """Return sign κ_j (k,), with 1 where κ_j is 0."""
    return np.where(kappa < 0, -1.0, 1.0)


def slopes(point: Point, lam: float) -> Array:
    """Return G (k, k), G_aj = 4C_jj C_aj + 4λ s_j cum(y_a, y_j, y_j, y_j): dF/dε for y_j ← y_j + ε·y_a."""
    C = point.C
    return np.asarray(4 * (C * np.diag(C) + lam * point.cross * signs(point.kappa)))


def gradient(G: Array) -> Array:
    """Return ∂F/∂θ_ij = G_ji − G_ij on pairs i < j, (k(k−1)/2,)."""
    return pack(G.T - G)


def blocks(C: Array, shared: Array, G: Array, s: Array, lam: float) -> Array:
    """Return N (k, k, k): the Hessian maps A to the antisymmetric part of X, X_aj = Σ_b N_j[a, b] A_bj.

    N_j = 4C_jj C + 8 C_·j C_·jᵀ + 12λ s_j cum(y_j, y_j, y_a, y_b) − (G + Gᵀ)/2.
    """
    N = 4 * np.diag(C)[:, None, None] * C + 8 * C.T[:, :, None] * C.T[:, None, :]
    return np.asarray(N + 12 * lam * s[:, None, None] * shared - (G + G.T) / 2)


def hessian(N: Array) -> Array:
    """Return the Hessian of F on pairs i < j, (k(k−1)/2, k(k−1)/2), from the blocks N."""
    k = len(N)
    i, _, index, _ = pairs(k)
    H = np.zeros((len(i), len(i)))
    for c in range(k):
        others = np.delete(np.arange(k), c)
        sign = np.sign(others - c)  # θ_cb = A_bc for c < b
        place = index[c, others]
        H[np.ix_(place, place)] += np.outer(sign, sign) * N[c][np.ix_(others, others)]
    return H


def scale(C: Array, kappa: Array, lam: float) -> Array:
    """Return D_ij on pairs i < j: −∂²F/∂θ_ij² of independent components, plus a small multiple of σ⁴.

    D_ij = 4(σ_i² − σ_j²)² + 4λ(|κ_i| + |κ_j|) + 0.04(σ_i⁴ + σ_j⁴). It is never 0, and gradient/D is an angle in
    radians, whatever the unit of the data.
    """
    v, size = np.diag(C), np.abs(kappa)
    apart = (v[:, None] - v) ** 2 + lam * (size[:, None] + size)
    return pack(np.asarray(4 * apart + 0.04 * (v[:, None] ** 2 + v**2)))


def best_angles(moments: Fourth, R: Array, i: Array, j: Array, lam: float) -> Array:
    """Return the angles (m,) that maximise F over each of m disjoint pairs: y_i ← cy_i + sy_j, y_j ← cy_j − sy_i.

    With q the pair's Σσ⁴/2, u half the sum and v half the difference of its two cumulants,
    F/2 = q + λ·max(|u|, |v|), where q and u are constants plus the harmonic 4θ, and v is the harmonic 2θ. Each of the
    three cases has a closed form. The angle is 0 where no rotation increases F. x = [x₄₀, x₃₁, x₂₂, x₁₃, x₀₄] below
    is a symmetric fourth-order form of (i, j).
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
    """Return the mean of x₄₀ as the pair rotates, and its complex coefficients of e^{2iθ} and e^{4iθ}.

    x₄₀(θ) is the mean plus the real part of the two terms.
    """
    x40, x31, x22, x13, x04 = x
    mean = (3 * (x40 + x04) + 6 * x22) / 8
    return mean, (x40 - x04) / 2 - 1j * (x31 + x13), (x40 + x04 - 6 * x22) / 8 - 0.5j * (x31 - x13)


Form = tuple[Array, Array, Array]


def greatest(q: Form, kappa: Form, lam: float) -> Array:
    """Return the θ in [−π/4, π/4) that maximises q + λ·max(|u|, |v|); 0 where θ = 0 is as good."""
    mean, double, quadruple = (lam * part for part in kappa)
    q4 = q[2]
    zero = np.zeros(len(mean))
    candidates = [zero]
    for sign in (1, -1):  # both cumulants have the same sign: only the harmonic 4θ
        candidates.append(-np.angle(q4 + sign * quadruple) / 4)
    # the cumulants have opposite signs; exchanging y_i and y_j changes the sign of v
    candidates += list(stationary(double, q4).T)
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
    """Return the angles θ (m, 4) where the derivative of Re(d·e^{2iθ} + q·e^{4iθ}) may vanish.

    With t = e^{2iθ} the condition is 2q·t⁴ + d·t³ − d̄·t − 2q̄ = 0 on the unit circle. The roots are the eigenvalues
    of a companion matrix.
    """
    size = np.abs(double) + np.abs(quadruple)
    lead = np.where(np.abs(quadruple) > 1e-14 * size, quadruple, 1e-14 * size + (size == 0))
    companion = np.zeros((len(double), 4, 4), complex)
    companion[:, 0, 0], companion[:, 0, 2] = -double / (2 * lead), double.conj() / (2 * lead)
    companion[:, 0, 3] = lead.conj() / lead
    companion[:, 1, 0] = companion[:, 2, 1] = companion[:, 3, 2] = 1
    return np.asarray(np.angle(np.linalg.eigvals(companion)) / 2)

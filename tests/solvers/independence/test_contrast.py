"""C_τ: its gradient and Hessian are those of finite differences, on any rows, weights and spectra."""

import numpy as np
import pytest
from solver_helpers import orthogonal, sources
from thread_ranks import on_ranks

from sigmapca_cli.solvers.independence.contrast import K1, K2, Contrast
from sigmapca_cli.solvers.independence.curvature import Curvature
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.newton.jacobian import pack, unpack
from sigmapca_cli.solvers.newton.steps import rotate
from sigmapca_cli.system.errors import InputError

K = 5
PAIRS = K * (K - 1) // 2


def dependent(n=900, seed=0):
    """Correlated, dependent and skewed components."""
    Y = sources("mixed", n, K, 2, seed) @ np.random.default_rng(seed).normal(size=(K, K))
    return np.column_stack([Y[:, 0] * np.abs(Y[:, 1]), np.exp(Y[:, 1] / 9), Y[:, 2:]])


def spectra(seed=3):
    A = np.random.default_rng(seed).normal(size=(6, 9, K))
    return np.einsum("fni,fnj->fij", A, A)


def weights(n=900):
    return np.random.default_rng(7).integers(0, 4, n).astype(float)


def cases():
    yield Contrast(Rows.of(dependent()), 1.0)
    yield Contrast(Rows.of(dependent()), 0.3, spectra())
    yield Contrast(Rows.of(dependent(), weights()), 0.7)
    yield Contrast(Rows.of(dependent()), 0.0)


def differences(f, step=1e-5):
    units = step * np.eye(PAIRS)
    return np.array([f(unit) - f(-unit) for unit in units]) / (2 * step)


@pytest.mark.parametrize("contrast", cases(), ids=["rows", "spectra", "weights", "tau=0"])
def test_gradient_and_hessian_are_those_of_differences(contrast):
    R = orthogonal(K, 3)
    point = contrast.at(R)
    found = differences(lambda theta: contrast.at(rotate(R, theta)).value)
    np.testing.assert_allclose(point.gradient, found, atol=1e-7)

    curvature = Curvature(point, contrast.rows)
    second = differences(
        lambda theta: differences(lambda more: contrast.at(rotate(R, theta + more)).value, 1e-4), 1e-4
    )
    whole = curvature.whole()
    np.testing.assert_allclose(whole, second, atol=1e-5)
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    np.testing.assert_allclose(np.array([curvature(unit) for unit in np.eye(PAIRS)]), whole, atol=1e-12)
    np.testing.assert_allclose(curvature.diagonal, np.diag(whole), atol=1e-12)


def test_psi_is_the_derivative_of_the_negentropy():
    contrast = Contrast(Rows.of(dependent()), 1.0)
    point = contrast.at(np.eye(K))
    z = np.linspace(-4, 4, 41)[:, None] * np.ones(K)

    def J(z):
        return 2 * K1 * point.alpha * z * np.exp(-z * z / 2) + 2 * K2 * point.beta * np.exp(-z * z / 2)

    np.testing.assert_allclose(point.psi(z), (J(z + 1e-5) - J(z - 1e-5)) / 2e-5, atol=1e-8)
    np.testing.assert_allclose(
        point.psi_prime(z), (point.psi(z + 1e-5) - point.psi(z - 1e-5)) / 2e-5, atol=1e-8
    )


def test_k1_and_k2_make_the_functions_orthonormal_under_the_gaussian():
    z, w = np.polynomial.hermite_e.hermegauss(80)
    w = w / w.sum()
    for G, size, against in (
        (z * np.exp(-z * z / 2), K1, [z]),
        (np.exp(-z * z / 2), K2, [np.ones_like(z), z * z - 1]),
    ):
        rest = G - sum((w @ (G * one)) / (w @ one**2) * one for one in against)
        assert 1 / (w @ rest**2) == pytest.approx(2 * size, rel=1e-6)


def test_weights_are_repetitions():
    Y, w = dependent(), weights()
    R = orthogonal(K, 1)
    once = Contrast(Rows.of(Y, w), 1.0).at(R)
    often = Contrast(Rows.of(np.repeat(Y, w.astype(int), axis=0)), 1.0).at(R)
    assert once.value == pytest.approx(often.value, abs=1e-12)
    np.testing.assert_allclose(once.gradient, often.gradient, atol=1e-12)
    np.testing.assert_allclose(
        Curvature(once, Rows.of(Y, w)).whole(),
        Curvature(often, Rows.of(np.repeat(Y, w.astype(int), axis=0))).whole(),
        atol=1e-11,
    )


@pytest.mark.parametrize("bad", [np.ones(3), -np.ones(900), np.zeros(900), np.full(900, np.nan)])
def test_weights_that_are_none_are_refused(bad):
    with pytest.raises(InputError):
        Rows.of(dependent(), bad)


def test_shares_of_the_rows_give_what_all_rows_give():
    Y, w, R = dependent(), weights(), orthogonal(K, 2)
    whole = Contrast(Rows.of(Y, w), 1.0).at(R)
    theta = np.linspace(-1, 1, PAIRS)
    product = Curvature(whole, Rows.of(Y, w))(theta)

    def share(rank):
        mine = slice(300 * rank, 300 * (rank + 1))
        rows = Rows.of(Y[mine], w[mine])
        point = Contrast(rows, 1.0).at(R)
        return rows.n, point.gradient, Curvature(point, rows)(theta), rows.subset(100).n

    for n, gradient, hv, some in on_ranks(3, share):
        assert (n, some) == (900, 100)
        np.testing.assert_allclose(gradient, whole.gradient, atol=1e-12)
        np.testing.assert_allclose(hv, product, atol=1e-12)


def test_pack_of_the_gradient_is_the_formula_of_a_plane():
    """∂C/∂θ_ij = E[y_j g_i] − E[y_i g_j], with g the derivative of each component's part of C."""
    Y = dependent()
    point = Contrast(Rows.of(Y), 1.0).at(np.eye(K))
    y = Y - Y.mean(0)
    z = y / point.sigma
    psi = point.psi(z)
    g = (z * (1 + (psi * z).mean(0)) - psi) / point.sigma
    G = y.T @ g / len(y)
    np.testing.assert_allclose(point.gradient, pack(G.T - G), atol=1e-12)
    assert unpack(point.gradient, K).shape == (K, K)

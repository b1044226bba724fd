"""Products with the Jacobian against the whole one and finite differences; steps and stability in a Krylov space."""

import numpy as np
import pytest
from mechanisms import every
from scipy.linalg import expm
from solver_helpers import orthogonal

from sigmapca_cli.solvers.newton import jacobian as jac
from sigmapca_cli.solvers.newton import steps
from sigmapca_cli.solvers.newton.jacobian import Product, measure
from sigmapca_cli.solvers.newton.krylov import Arnoldi, MatrixFreeJacobian
from sigmapca_cli.solvers.newton.scores import lookup
from sigmapca_cli.solvers.newton.solve import solve
from sigmapca_cli.solvers.newton.stage import Adaptive, Stage
from sigmapca_cli.solvers.rows.parallel import threads

K = 48
"""Components with more pairs than a whole Jacobian is made for."""


def sources(kind, n, k, seed=0):
    """Independent components in eight groups of equal standard deviation, centred."""
    rng = np.random.default_rng(seed)
    heavy, light = rng.laplace(size=(n, k)) / np.sqrt(2), rng.uniform(-np.sqrt(3), np.sqrt(3), (n, k))
    S = {"laplace": heavy, "uniform": light, "mixed": np.where(np.arange(k) % 2, light, heavy)}[kind]
    S = S * 3 * 0.8 ** (np.arange(k) * 8 // k)
    return S - S.mean(0)


def principal(S, seed=1):
    """The sources rotated to principal axes of the sample, and where the true axes lie there."""
    E = orthogonal(S.shape[1], seed)
    X = S @ E.T
    P = np.linalg.eigh(X.T @ X / len(X))[1][:, ::-1]
    return X @ P, P.T @ E


def matched(R, truth):
    """The least |cos| of a true axis with the column nearest to it."""
    return np.abs(truth.T @ R).max(1).min()


def small(dtype=np.float64, k=6, signs=None):
    """Dependent components, a rotation that solves nothing, and J there: (Y, C, R, score, a, signs)."""
    rng = np.random.default_rng(3)
    Y = rng.laplace(size=(3000, k)) @ rng.normal(size=(k, k))
    Y = (Y - Y.mean(0)).astype(dtype)
    signs = np.ones(k) if signs is None else signs
    a = np.linspace(1, 3, k)
    return Y, Y.T @ Y / len(Y), orthogonal(k, 4), lookup("scaled_tanh", "true"), a, signs


def residual_at(theta, Y, C, R, score, a, signs):
    turned = R @ expm(jac.unpack(theta, len(R)).T)
    sigma = np.sqrt(np.diag(turned.T @ C @ turned))
    return jac.pack(jac.residual(measure(Y, turned / sigma, score, a).signed(signs), sigma))


@pytest.mark.parametrize("signs", [None, np.array([1, -1, 1, 1, -1, -1.0])], ids=["plain", "signed"])
def test_product_equals_the_whole_jacobian_and_finite_differences(signs):
    given = small(signs=signs)
    Y, C, R, score, a, signs = given
    product = Product(*given, block=500)
    there = R.T @ C @ R
    sigma = np.sqrt(np.diag(there))
    moments = measure(Y, R / sigma, score, a, third=True).signed(signs)
    J = jac.jacobian(moments, sigma, there)
    for theta in np.random.default_rng(0).normal(size=(3, len(J))):
        np.testing.assert_allclose(product(theta), J @ theta, rtol=1e-12, atol=1e-13)
        rise = (residual_at(1e-6 * theta, *given) - residual_at(-1e-6 * theta, *given)) / 2e-6
        np.testing.assert_allclose(product(theta), rise, atol=1e-8)


def test_steps_in_a_krylov_space_are_those_of_the_whole_jacobian():
    """Where the space is as large as it may get for so few pairs: to rounding error, or the accuracy asked for."""
    given = small()
    Y, _, R, score, a, signs = given
    point = Stage(Y, len(Y), score, Adaptive(a, signs, False, False), 500).at(R)
    D, S = steps.preconditioner(point.H, point.K), jac.pack(point.S)
    product = Product(*given)
    J = np.stack([product(e) for e in np.eye(len(D))], axis=1)
    dense, free = steps.DenseJacobian(J, D), MatrixFreeJacobian(product, np.sqrt(D))
    theta = np.random.default_rng(0).normal(size=len(D))
    assert np.linalg.norm((J @ free.newton(S) + S) / np.sqrt(D)) <= 0.05 * np.linalg.norm(S / np.sqrt(D))
    space = Arnoldi(free.scaled, S, len(S))
    while space.extend():
        pass
    V = space.V[: space.m]
    np.testing.assert_allclose(V @ V.T, np.eye(space.m), atol=1e-12)
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvals(space.H[: space.m])),
        np.sort(np.linalg.eigvals(J / np.sqrt(np.outer(D, D)))),
        atol=1e-10,
    )
    one, other = dense.corrected(S, theta), free.corrected(S, theta)
    np.testing.assert_allclose(one.J @ theta, S, atol=1e-10)
    np.testing.assert_allclose(np.sqrt(D) * other.scaled(np.sqrt(D) * theta), S, atol=1e-10)


@pytest.mark.parametrize("pairs", every([30, 1000], [30]))
def test_an_unstable_direction_is_found_without_the_jacobian(pairs):
    """One eigenvalue of −0.3 among many about 1, of a matrix that is not symmetric; and none without it."""
    rng = np.random.default_rng(0)
    B = np.eye(pairs) + 0.2 * rng.normal(size=(pairs, pairs)) / np.sqrt(pairs)
    root, weak = np.linspace(1, 2, pairs), rng.normal(size=pairs)
    weak /= np.linalg.norm(weak)
    turned = B @ (np.eye(pairs) - np.outer(weak, weak)) - 0.3 * np.outer(weak, weak)
    assert MatrixFreeJacobian(lambda v: root * (B @ (root * v)), root).unstable(0.05) is None
    found = MatrixFreeJacobian(lambda v: root * (turned @ (root * v)), root).unstable(0.05) * root
    assert abs(found @ weak) > 0.95 * np.linalg.norm(found)


def test_an_unstable_point_of_many_components_is_left():
    """Two sources of equal variance halfway between their axes are stationary; the solver must not stay there."""
    Y = sources("laplace", 20_000, K)
    R = np.eye(K)
    R[:2, :2] = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    stage = Stage(Y, len(Y), lookup("scaled_tanh", "true"), Adaptive.of(4.0, K, False), 1024)
    truth = solve(Y, a=4.0, tol=1e-8)
    saddle = truth.R @ R  # the columns of one group, half a turn on
    with threads(1):
        direction = stage.unstable(stage.at(saddle))
        assert stage.unstable(stage.at(truth.R)) is None
    assert direction is not None
    assert np.abs(jac.unpack(direction, K)).argmax() in (1, K)  # the pair (0, 1)
    again = solve(Y, a=4.0, tol=1e-8, start=saddle)
    assert again.converged and matched(again.R, truth.R) > 0.999


@pytest.mark.parametrize(("kind", "a"), every([("laplace", 4.0), ("uniform", 0.8), ("mixed", "auto")], []))
def test_many_sources_are_found_from_pca_and_from_a_random_start(kind, a):
    Y, truth = principal(sources(kind, 60_000, K))
    Y = Y.astype(np.float32)
    result = solve(Y, a=a, tol=1e-6)
    assert result.converged and result.residual <= 1e-6 and result.iterations <= 30
    assert matched(result.R, truth) > 0.995
    again = solve(Y, a=a, tol=1e-6, start=orthogonal(K, 9))
    assert again.converged and matched(again.R, result.R) > 0.999


@pytest.mark.full
def test_any_number_of_threads_gives_the_same_bits_for_many_components():
    """Noise below the variance of the last sources: Krylov steps and quasi-Newton steps take part."""
    rng = np.random.default_rng(0)
    S = sources("laplace", 60_000, K)
    S[:, -16:] = rng.normal(size=(60_000, 16))
    Y, _ = principal(S)
    one, three = (solve(Y.astype(np.float32), a=3.0, threads=count, max_iter=40) for count in (1, 3))
    assert np.array_equal(one.R, three.R) and one.history == three.history


@pytest.mark.full
def test_choices_of_a_are_measured_again_at_the_solution():
    """Held to from far away, a may be the worse one where the iteration ends; the solution then says otherwise."""
    Y, truth = principal(sources("mixed", 60_000, K))
    result = solve(Y.astype(np.float32), a="auto", start=orthogonal(K, 2))
    source = np.abs(truth.T @ result.R).argmax(0)
    np.testing.assert_array_equal(result.a, np.where(source % 2, 0.8, 3.0))

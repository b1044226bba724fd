"""J(R; δ): its gradient is the residual, its primitives are those of the scores, and a = inf is its limit."""

import numpy as np
import pytest
from scipy.linalg import expm
from solver_helpers import components, matched, orthogonal, sources

from sigmapca_cli.settings.schema import Config, SolverConfig
from sigmapca_cli.solvers.fourth_moments.maximum import maximise
from sigmapca_cli.solvers.newton import jacobian as jac
from sigmapca_cli.solvers.newton import merit
from sigmapca_cli.solvers.newton.jacobian import measure
from sigmapca_cli.solvers.newton.scores import SCORES, lookup
from sigmapca_cli.solvers.newton.solve import solve
from sigmapca_cli.system.errors import InputError

INF = np.full(5, np.inf)


@pytest.mark.parametrize("key", list(SCORES), ids="-".join)
def test_primitives_have_the_score_as_derivative(key):
    z, a, step = np.linspace(-4, 4, 82), np.array(1.3), 1e-5
    primitive = merit.primitive_of(*key)
    slope = (primitive(z + step, a) - primitive(z - step, a)) / (2 * step)
    np.testing.assert_allclose(slope, SCORES[key](z, a)[0], atol=1e-8)
    assert primitive(np.zeros(1), a)[0] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("key", [key for key in SCORES if key != ("hard_tanh", "one")], ids="-".join)
def test_a_score_without_a_closed_form_is_integrated(key):
    z, a = np.linspace(-12, 12, 49), np.array(1.3)
    np.testing.assert_allclose(
        merit.integral(SCORES[key])(z, a), merit.primitive_of(*key)(z, a), rtol=1e-6, atol=1e-8
    )


def J(Y, R, key, a, delta):
    sigma = (Y @ R).std(0)
    return merit.value(sigma, merit.mean_primitive(Y, R / sigma, merit.primitive_of(*key), a), delta)


def at(Y, R, key, a):
    sigma = (Y @ R).std(0)
    moments = measure(Y, R / sigma, lookup(*key), a)
    return sigma, moments, 4 * merit.mean_primitive(Y, R / sigma, merit.primitive_of(*key), a) - moments.m


def slopes(f, R):
    steps = 1e-5 * np.eye(len(R) * (len(R) - 1) // 2)
    turned = [(R @ expm(jac.unpack(e, len(R)).T), R @ expm(jac.unpack(-e, len(R)).T)) for e in steps]
    return np.array([f(up) - f(down) for up, down in turned]) / 2e-5


@pytest.mark.parametrize("key", [("scaled_tanh", "true"), ("scaled_tanh", "one"), ("asymmetric", "true")])
def test_the_residual_is_the_gradient_of_j_with_delta_held(key):
    """∂J/∂θ_ij = −σ_i²σ_j²S_ij, by differences, on correlated components, at a rotation that solves nothing."""
    Y = sources("mixed", 3000, 5, 2)
    Y = (Y - Y.mean(0)) @ np.random.default_rng(0).normal(size=(5, 5))
    R, a = orthogonal(5, 3), np.full(5, 1.7)
    sigma, moments, delta = at(Y, R, key, a)
    expected = -jac.pack(np.outer(sigma, sigma) ** 2 * jac.residual(moments, sigma))
    found = slopes(lambda there: J(Y, there, key, a, delta), R)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_without_holding_delta_the_residual_is_not_its_gradient():
    """S is the gradient of no function of R alone: with δ left out there is a term of the correlations."""
    Y = sources("mixed", 3000, 5, 2) @ np.random.default_rng(0).normal(size=(5, 5))
    Y, R, a, key = Y - Y.mean(0), orthogonal(5, 3), np.full(5, 1.7), ("scaled_tanh", "true")
    sigma, moments, delta = at(Y, R, key, a)
    variance, C = sigma**2, np.cov((Y @ R).T, bias=True)
    held = -np.outer(variance, variance) * jac.residual(moments, sigma)
    extra = C * (variance * delta)[:, None]
    found = slopes(lambda there: J(Y, there, key, a, np.zeros(5)), R)
    expected = jac.pack(held + extra - extra.T)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
    assert np.abs(found - jac.pack(held)).max() > 0.01 * np.abs(found).max()


def test_infinite_a_is_the_limit_and_a_function():
    Y = sources("laplace", 3000, 5, 2)
    Y, R, key = Y - Y.mean(0), orthogonal(5, 3), ("scaled_tanh", "true")
    _, moments, delta = at(Y, R, key, INF)
    np.testing.assert_allclose(delta, 0, atol=1e-12)
    assert 4 * J(Y, R, key, INF, delta) == pytest.approx(np.mean((Y @ R) ** 4, axis=0).sum())
    _, large, far = at(Y, R, key, np.full(5, 200.0))
    np.testing.assert_allclose(3 * 200**2 * large.Q, moments.Q, rtol=1e-2, atol=1e-2)
    assert np.abs(far).max() < 1e-2 * np.abs(large.m).max()


def test_infinite_a_is_solved_and_equals_f_at_a_third():
    """Heavy tails: ΣE[y⁴] is F with λ = 1/3, and Newton's root is its maximum. A large a is near."""
    Y, truth = components(sources("laplace", 20_000, 8, 4), p=20)
    result, climbed = solve(Y, a=np.inf, tol=1e-9), maximise(Y, 1 / 3, tol=1e-9)
    assert result.converged and climbed.converged
    assert matched(result.R, truth) > 0.998
    np.testing.assert_allclose(result.R, climbed.R, atol=1e-6)
    assert matched(solve(Y, a=50.0).R, result.R) > 0.9999


def test_infinite_a_belongs_to_newton():
    assert Config(a="inf", solver=SolverConfig("newton")).a == np.inf
    for name in ("stochastic", "moments"):
        with pytest.raises(InputError, match="a=inf"):
            Config(a="inf", solver=SolverConfig(name))

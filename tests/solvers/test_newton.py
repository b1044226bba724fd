"""The solver against the loss it solves (autograd), finite differences, invariances, and known answers."""

import numpy as np
import pytest
import torch
from mechanisms import every
from solver_helpers import components, matched, orthogonal, sources

from sigmapca_cli.solvers.newton import jacobian as jac
from sigmapca_cli.solvers.newton.jacobian import measure
from sigmapca_cli.solvers.newton.scores import SCORES, lookup
from sigmapca_cli.solvers.newton.solve import solve
from sigmapca_cli.system.errors import InputError


def at(Y, R, score, a, third=False):
    C = R.T @ (Y.T @ Y / len(Y)) @ R
    sigma = np.sqrt(np.diag(C))
    moments = measure(Y, R / sigma, score, np.full(len(R), a), third=third)
    return moments, sigma, C


@pytest.mark.parametrize("derivative", ["true", "one"])
def test_residual_is_the_rotational_part_of_the_gradient_of_the_loss(derivative):
    """½WᵀG, each row divided by σ_i², antisymmetrised, is −S where W is orthonormal; G by autograd,
    float64."""
    k, a = 5, 1.7
    Y, _ = components(sources("mixed", 2000, k, 2))
    R = orthogonal(k, 3)
    W = torch.tensor(R, requires_grad=True)
    x = torch.from_numpy(Y)
    y = x @ W
    sigma = y.detach().std(0, correction=0)
    h = a * torch.tanh(y / sigma / a)
    if derivative == "one":
        h = (y / sigma) + (h - y / sigma).detach()
    ((x - h * sigma @ W.detach().T) ** 2).sum(1).mean().backward()
    A = (torch.from_numpy(R).T @ W.grad).numpy() / 2 / sigma.numpy()[:, None] ** 2
    moments, s, _ = at(Y, R, lookup("scaled_tanh", derivative), a)
    np.testing.assert_allclose(jac.residual(moments, s), A.T - A, atol=1e-12)


@pytest.mark.parametrize("key", [key for key in SCORES if key[0] != "hard_tanh"], ids="-".join)
def test_scores_state_their_derivatives(key):
    z, a, step = np.linspace(-4, 4, 81), np.array(1.3), 1e-6
    rise = (SCORES[key](z + step, a)[0] - SCORES[key](z - step, a)[0]) / (2 * step)
    np.testing.assert_allclose(SCORES[key](z, a)[1], rise, atol=1e-8, rtol=1e-6)


def test_jacobian_is_the_derivative_of_the_residual():
    """Against central differences, at a rotation that solves nothing, on dependent components."""
    k, score = 5, lookup("scaled_tanh", "true")
    Y, _ = components(sources("laplace", 3000, k, 2))
    R = orthogonal(k, 4)
    moments, sigma, C = at(Y, R, score, 1.5, third=True)
    J = jac.jacobian(moments, sigma, C)

    def S(theta):
        turn = torch.matrix_exp(torch.from_numpy(jac.unpack(theta, k).T.copy())).numpy()
        moved, s, _ = at(Y, R @ turn, score, 1.5)
        return jac.pack(jac.residual(moved, s))

    step = 1e-5 * np.eye(len(J))
    numeric = np.stack([(S(e) - S(-e)) / 2e-5 for e in step], axis=1)
    np.testing.assert_allclose(J, numeric, atol=1e-8)


def test_curvature_is_the_diagonal_of_the_jacobian_for_independent_sources():
    """H_ij against the exact J on the sources themselves: equal up to sampling error 1/√n."""
    Y = sources("mixed", 100_000, 5, 2)
    moments, sigma, C = at(Y - Y.mean(0), np.eye(5), lookup("scaled_tanh", "true"), 2.0, third=True)
    H, K = jac.curvature(moments, sigma)
    J = jac.jacobian(moments, sigma, C)
    np.testing.assert_allclose(np.diag(J) / jac.pack(K), jac.pack(H) / jac.pack(K), atol=0.02)
    assert np.abs(J - np.diag(np.diag(J))).max() < 0.05 * np.diag(J).max()


@pytest.mark.parametrize("derivative", ["true", "one"])
def test_identity_leaves_linear_pca_unchanged(derivative):
    Y, _ = components(sources("laplace", 3000, 6, 3))
    result = solve(Y, nonlinearity="identity", derivative=derivative, a=1.0)
    assert result.converged and result.iterations == 1
    np.testing.assert_allclose(result.R, np.eye(6), atol=1e-12)


def test_solution_does_not_depend_on_the_basis_or_the_scale():
    """Y → cYQ with start Qᵀ is the same problem: R → QᵀR, σ → cσ."""
    Y, _ = components(sources("laplace", 20_000, 6, 3))
    Q = orthogonal(6, 5)
    one = solve(Y, a=3.0, tol=1e-10)
    other = solve(100 * Y @ Q, a=3.0, tol=1e-10, start=Q.T)
    assert one.converged and other.converged
    np.testing.assert_allclose(np.abs(Q @ other.R), np.abs(one.R), atol=1e-7)
    np.testing.assert_allclose(other.sigma, 100 * one.sigma, rtol=1e-7)


PLANTED = [
    ("laplace", 2.0, 12, 3, 64),
    ("laplace", 8.0, 12, 3, 64),
    ("uniform", 0.8, 12, 3, 64),
    ("mixed", "auto", 12, 3, 64),
    ("mixed", "auto", 16, 8, 32),
]


@pytest.mark.parametrize(("kind", "a", "k", "group", "p"), every(PLANTED, [PLANTED[3]]))
def test_planted_sources_of_equal_variance_are_found(kind, a, k, group, p):
    """Where linear PCA cannot: from PCA within 30 iterations, and the same answer from random starts."""
    Y, truth = components(sources(kind, 20_000, k, group), p=p)
    Y = Y.astype(np.float32)
    result = solve(Y, a=a, tol=1e-6)
    assert result.converged and result.residual <= 1e-6 and result.iterations <= 30
    assert matched(result.R, truth) > 0.999
    assert matched(np.eye(k), truth) < 0.97
    for seed in range(2):
        again = solve(Y, a=a, tol=1e-6, start=orthogonal(k, 10 + seed))
        assert again.converged and matched(again.R, result.R) > 0.9999


def test_auto_follows_the_tails_of_each_source():
    Y, truth = components(sources("mixed", 40_000, 12, 3), p=64)
    result = solve(Y, a="auto")
    source = np.abs(truth.T @ result.R).argmax(0)
    np.testing.assert_array_equal(result.a, np.where(source % 2, 0.8, 3.0))


def test_auto_withstands_outliers():
    """A few rows a hundred times too large decide a kurtosis; they must not decide a."""
    S = sources("uniform", 40_000, 4, 4)
    S[:4] = 100 * np.eye(4)
    Y, _ = components(S - S.mean(0))
    assert np.all(solve(Y, a="auto").a == 0.8)


def test_curvature_is_negative_for_the_wrong_a_and_the_result_says_so():
    Y, truth = components(sources("laplace", 40_000, 4, 4))
    result = solve(Y, a=0.8, max_iter=1, start=truth / np.linalg.norm(truth, axis=0))
    assert (jac.pack(result.H) < -2 * jac.pack(result.H_error)).all()
    assert not result.converged
    assert any("not converged" in note for note in result.notes)
    assert any("negative curvature" in note for note in result.notes)


def test_gaussian_components_of_equal_variance_are_reported_as_unidentified():
    Y = np.random.default_rng(0).normal(size=(20_000, 3))
    result = solve(Y - Y.mean(0), a=3.0, max_iter=50)
    assert result.loose[np.triu_indices(3, 1)].all() and not result.notes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": -1.0}, "a=-1.0: must be positive"),
        ({"a": "best"}, "a=best: must be a positive number or auto"),
        ({"nonlinearity": "sign"}, "no score"),
        ({"start": np.ones((3, 3))}, "orthogonal"),
    ],
)
def test_unusable_settings_are_refused_in_one_line(change, message):
    with pytest.raises(InputError, match=message) as refusal:
        solve(np.random.default_rng(0).normal(size=(100, 3)), **change)
    assert "\n" not in str(refusal.value)


def test_unusable_components_are_refused():
    Y = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.raises(InputError, match="only 2 of 3"):
        solve(Y * [1, 1, 0])
    with pytest.raises(InputError, match="NaN"):
        solve(np.where(Y > 2, np.nan, Y))


def test_one_component_has_no_pair_to_turn():
    result = solve(np.random.default_rng(0).laplace(size=(500, 1)), a=4.0)
    assert result.converged and result.R.tolist() == [[1.0]] and not result.notes


def test_any_number_of_threads_gives_the_same_bits():
    Y, _ = components(sources("laplace", 200_000, 6, 3))
    one, three = (solve(Y.astype(np.float32), a=3.0, threads=count) for count in (1, 3))
    assert np.array_equal(one.R, three.R) and one.history == three.history

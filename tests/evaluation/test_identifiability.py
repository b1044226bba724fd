"""The certificate keeps its error rates on Gaussian pairs, and finds what can be found in others."""

from dataclasses import replace

import numpy as np
import pytest
from mechanisms import every
from source_kinds import KINDS

from sigmapca_cli.evaluation.certificate import ARBITRARY, IDENTIFIED, REPELLED
from sigmapca_cli.evaluation.identifiability import certify
from sigmapca_cli.evaluation.words import explain, groups
from sigmapca_cli.solvers.newton.scores import lookup
from sigmapca_cli.solvers.newton.solve import solve
from sigmapca_cli.system.errors import InputError

SETS = 100
#: Three standard errors of a rate of 5 % over the sets.
SLACK = 3 * np.sqrt(0.05 * 0.95 / SETS)


def principal(Y):
    return Y @ np.linalg.eigh(np.cov(Y.T))[1][:, ::-1]


def statistics(Y, a):
    """S, H of a pair by their definitions."""
    Y = Y - Y.mean(axis=0)
    sigma = Y.std(axis=0)
    z = Y / sigma
    phi, dphi = lookup("scaled_tanh", "true")(z, np.full(2, a))
    N = Y.T @ (phi * sigma) / len(Y)
    m, c = np.mean(z * phi, axis=0), dphi.mean(axis=0)
    r = (sigma[1] / sigma[0]) ** 2
    return N[0, 1] / sigma[0] ** 2 - N[1, 0] / sigma[1] ** 2, m[1] * r + m[0] / r - c.sum()


def fitted_axes(Y, a, angles=16):
    """The stationary rotation of a pair with the largest curvature, None where every one has a negative one."""

    def turned(t):
        return Y @ np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])

    grid = np.linspace(0, np.pi / 2, angles + 1)
    found = [statistics(turned(t), a) for t in grid]
    crossings = [i for i in range(angles) if found[i][0] * found[i + 1][0] < 0 and found[i][1] > 0]
    if not crossings:
        return None
    i = max(crossings, key=lambda i: found[i][1])
    low, high = grid[i], grid[i + 1]
    for _ in range(10):
        middle = (low + high) / 2
        same = statistics(turned(middle), a)[0] * found[i][0] > 0
        low, high = (middle, high) if same else (low, middle)
    return turned(low)


@pytest.mark.parametrize("a", every([0.8, 4.0], [4.0]))
def test_gaussian_pairs_of_equal_variance_are_called_arbitrary_at_the_stated_rate(a):
    missed = fitted_missed = 0
    for seed in range(SETS):
        Y = np.random.default_rng(seed).standard_normal((500, 2))
        missed += certify(principal(Y), a=a, fitted=False).verdict[0, 1] == IDENTIFIED
        fitted = fitted_axes(Y, a)
        fitted_missed += fitted is not None and certify(fitted, a=a).verdict[0, 1] == IDENTIFIED
    assert missed / SETS <= 0.05 + SLACK
    assert fitted_missed / SETS <= 0.05 + SLACK


@pytest.mark.full
def test_no_pair_of_many_gaussians_is_identified_on_axes_that_do_not_depend_on_shape():
    """All ten pairs together at the level: linear PCA chooses axes by variance alone."""
    wrong = 0
    for seed in range(SETS):
        found = certify(
            principal(np.random.default_rng(seed).standard_normal((1000, 5))), a=4.0, fitted=False
        )
        wrong += bool((found.verdict[np.triu_indices(5, 1)] == IDENTIFIED).any())
    assert wrong / SETS <= 0.05 + SLACK


@pytest.mark.full
def test_pairs_of_many_gaussians_fitted_together_keep_the_level_each():
    identified = total = 0
    for seed in range(20):
        Y = principal(np.random.default_rng(seed).standard_normal((2000, 6)))
        Y = np.ascontiguousarray(Y - Y.mean(axis=0))
        verdict = certify(Y @ solve(Y, a=4.0, max_iter=40).R, a=4.0).verdict[np.triu_indices(6, 1)]
        identified, total = identified + np.sum(verdict == IDENTIFIED), total + len(verdict)
    assert identified / total <= 0.05


@pytest.mark.full
def test_the_threshold_for_fitted_axes_is_needed():
    """With the threshold of a normal score, fitted axes would be trusted far too often."""
    scores = []
    for seed in range(60):
        fitted = fitted_axes(np.random.default_rng(seed).standard_normal((500, 2)), 0.8)
        scores.append(-np.inf if fitted is None else certify(fitted, a=0.8).score[0, 1])
    assert np.mean(np.array(scores) > 1.645) > 0.1


@pytest.mark.parametrize(
    ("draw", "a"), [(lambda g, n: g.laplace(size=n), 4.0), (lambda g, n: g.uniform(-1, 1, n), 0.8)]
)
def test_pairs_that_their_shape_separates_are_identified(draw, a):
    for seed in range(50):
        Y = draw(np.random.default_rng(seed), (2000, 2))
        assert certify(Y, a=a).verdict[0, 1] == IDENTIFIED


def test_gaussian_pairs_that_their_variances_separate_are_identified():
    for seed in range(50):
        Y = np.random.default_rng(seed).standard_normal((1000, 2)) * [1, 0.5]
        assert certify(principal(Y), a=4).verdict[0, 1] == IDENTIFIED


def test_the_wrong_a_repels():
    generator = np.random.default_rng(0)
    assert certify(generator.uniform(-1, 1, (2000, 2)), a=4).verdict[0, 1] == REPELLED
    assert certify(generator.laplace(size=(2000, 2)), a=0.8).verdict[0, 1] == REPELLED


def test_curvature_is_its_definition():
    """H is the derivative of S as the pair turns, on dependent and correlated components too."""
    g = np.random.default_rng(0)
    Y = g.laplace(size=(300, 2)) * [3, 2] * g.exponential(size=(300, 1)) @ [[1, 0.3], [0, 1]] + [5, -1]
    found = certify(Y, a=2.0)
    t = 1e-5
    turn = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    slope = (statistics(Y @ turn, 2.0)[0] - statistics(Y @ turn.T, 2.0)[0]) / (2 * t)
    assert found.curvature[0, 1] == pytest.approx(slope, rel=1e-6)
    np.testing.assert_allclose(found.curvature, found.curvature.T)
    np.testing.assert_allclose(found.error, found.error.T)


@pytest.mark.full
def test_standard_errors_are_the_spread_over_data_sets():
    """Skewed and heavy-tailed components of different variance: every influence, of the mean too, takes part."""
    H, error = [], []
    for seed in range(400):
        g = np.random.default_rng(seed)
        Y = np.stack([g.exponential(size=800), 0.8 * g.laplace(size=800)], axis=1)
        found = certify(Y, a=2.0)
        H.append(found.curvature[0, 1])
        error.append(found.error[0, 1])
    assert np.mean(error) == pytest.approx(np.std(H), rel=0.12)


@pytest.mark.full
def test_angles_are_the_spread_of_the_newton_step_from_the_true_axes():
    turn, angle = [], []
    for seed in range(200):
        Y = np.random.default_rng(seed).laplace(size=(1500, 2)) * [1, 0.9]
        S, curvature = statistics(Y, 4.0)
        turn.append(S / curvature)
        angle.append(certify(Y, a=4.0).angle[0, 1])
    assert np.isfinite(angle).all()
    assert np.mean(angle) == pytest.approx(np.std(turn), rel=0.12)


def test_scale_sign_order_and_blocks_change_nothing():
    Y = np.random.default_rng(0).laplace(size=(1000, 4)) * [4, 3, 2, 1]
    found = certify(Y)
    moved = certify([*np.array_split(-1e-6 * Y[:, ::-1] + 3e-6, 7)])
    np.testing.assert_allclose(moved.score[::-1, ::-1], found.score, rtol=1e-6)
    np.testing.assert_allclose(certify(Y, block=13).angle, found.angle, rtol=1e-9)


@pytest.mark.parametrize("n", [107, 155, 201, 246])
def test_any_number_of_rows_is_divided_into_groups(n):
    """The last edge of n/4 groups of n/(n/4) rows is n, whatever the rounding."""
    assert certify(np.random.default_rng(0).standard_normal((n, 3))).n == n


def test_mixed_sources_in_plain_words():
    g = np.random.default_rng(1)
    Y = np.concatenate([g.laplace(size=(4000, 2)) / np.sqrt(2) * 3, g.standard_normal((4000, 2))], axis=1)
    found = certify(Y, a=4.0)
    assert groups(found.verdict) == [[2, 3]]
    np.testing.assert_array_equal(found.identified, [True, True, False, False])
    assert found.weakest[2] == 3 and found.weakest[3] == 2
    assert found.expected_cosine[:2].min() > 0.99 and found.expected_cosine[2:].max() < 1e-9
    lines = explain(found)
    assert lines[0].startswith("2 of 4 components have identified axes")
    assert lines[1].startswith("components 3 and 4 have equal variance (σ 0.999 to 0.987)")
    assert "from a Gaussian one: their axes are arbitrary; report their 2-dimensional subspace" in lines[1]
    np.testing.assert_array_equal(found.gaussian, [False, False, True, True])


def test_skewed_components_of_kurtosis_zero_are_not_called_gaussian():
    Y = KINDS["two-valued, kurtosis 0"](np.random.default_rng(0), (3000, 2))
    found = certify(Y, a=4.0)
    assert not found.gaussian.any()
    zero = np.zeros((2, 2))
    words = " ".join(explain(replace(found, verdict=np.full((2, 2), ARBITRARY), shape=zero, score=zero)))
    assert "Gaussian" not in words and "solver=independence" in words


def test_no_a_is_advised_that_the_components_have():
    found = certify(np.random.default_rng(0).uniform(-1, 1, (3000, 3)), a=4.0)
    lines = explain(found)
    assert lines[0].startswith("0 of 3") and "a smaller a" in lines[1]
    assert lines[1].startswith("components 1–3: this nonlinearity makes these axes unstable")
    again = explain(replace(found, a=np.full(3, 0.8)))[1]
    assert "a smaller a" not in again and "solver=independence" in again


def test_one_component_and_a_constant_one():
    Y = np.random.default_rng(0).laplace(size=(200, 2))
    assert certify(Y[:, :1]).identified.all()
    Y = np.hstack([Y, np.full((200, 2), 2.0)])
    found = certify(Y)
    assert found.verdict[2, 3] == ARBITRARY and np.isfinite(found.kurtosis).all()


def test_a_nonlinearity_without_a_score_is_refused():
    with pytest.raises(InputError, match="sign"):
        certify(np.zeros((3, 2)), nonlinearity="sign")


def test_rows_that_repeat_their_neighbours_count_less():
    """Every row ten times over is no more evidence: standard errors must not shrink by √10."""
    Y = np.random.default_rng(0).laplace(size=(2000, 3)) * [2, 1.5, 1]
    once, often = certify(Y), certify(np.repeat(Y, 10, axis=0))
    np.testing.assert_allclose(often.error[0, 1], once.error[0, 1], rtol=0.05)

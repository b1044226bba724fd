"""solver=moments: the moments, the derivatives and the climb of F, its theorem, and what it says about its answer."""

import itertools

import numpy as np
import pytest
from mechanisms import every
from scipy.linalg import expm
from solver_helpers import components, matched, orthogonal, sources

from sigmapca_cli.solvers.fourth_moments import ascent, contrast, influence
from sigmapca_cli.solvers.fourth_moments.fourth import Fourth, Streamed
from sigmapca_cli.solvers.fourth_moments.maximum import maximise
from sigmapca_cli.solvers.newton.jacobian import unpack
from sigmapca_cli.system.errors import InputError

LAM = 0.3


def dependent(n=4000, k=6, seed=0):
    """Centred rows of correlated components of heavy and of light tails."""
    rng = np.random.default_rng(seed)
    Y = sources("mixed", n, k, 2, seed) @ rng.normal(size=(k, k))
    return Y - Y.mean(0)


def F(Y, R, lam=LAM):
    y = Y @ R
    v = np.mean(y**2, axis=0)
    return np.sum(v**2) + lam * np.abs(np.mean(y**4, axis=0) - 3 * v**2).sum()


def turned(R, theta):
    return R @ expm(unpack(theta, len(R)).T)


def grid(*values):
    """Exactly independent components: every combination of the values of each, once."""
    Y = np.array(list(itertools.product(*values)), float)
    return Y - Y.mean(0)


def test_tensor_is_the_fourth_cumulant_of_all_components():
    Y = dependent(500, 5)
    C = Y.T @ Y / len(Y)
    full = np.einsum("na,nb,nc,nd->abcd", Y, Y, Y, Y) / len(Y)
    full -= np.einsum("ab,cd->abcd", C, C) + np.einsum("ac,bd->abcd", C, C) + np.einsum("ad,bc->abcd", C, C)
    a, b = np.triu_indices(5)
    np.testing.assert_allclose(Fourth.of(Y).K, full[a, b][:, a, b], atol=1e-12 * np.abs(full).max())


@pytest.mark.parametrize("view", [Fourth, Streamed])
def test_gradient_and_hessian_are_the_derivatives_of_f(view):
    """Against F of the rows, by differences, at a rotation that maximises nothing, on dependent components."""
    Y, R = dependent(), orthogonal(6, 3)
    equations = ascent.system(view.of(Y), view.of(Y).at(R), LAM)
    steps = 1e-5 * np.eye(15)
    slope = np.array([F(Y, turned(R, e)) - F(Y, turned(R, -e)) for e in steps]) / 2e-5
    np.testing.assert_allclose(-equations.S, slope, rtol=1e-6, atol=1e-7 * np.abs(slope).max())
    rng = np.random.default_rng(1)
    for _ in range(5):
        theta = rng.normal(size=15)
        far, near, back = (F(Y, turned(R, h * theta)) for h in (1e-4, 0.0, -1e-4))
        assert -theta @ equations.product(theta) == pytest.approx((far - 2 * near + back) / 1e-8, rel=1e-4)


@pytest.mark.parametrize(("i", "j"), every([(0, 1), (0, 2), (1, 3), (2, 4), (3, 5)], [(0, 1)]))
def test_a_pair_is_turned_to_the_greatest_f_of_all_its_angles(i, j):
    """Pairs of two heavy, of two light, and of one heavy and one light component, each rotated by random angles."""
    for seed in range(4):
        Y, R = dependent(1000, seed=seed), orthogonal(6, seed)
        if seed % 2:  # near the sources, where the cumulants of a mixed pair have two signs
            Y = sources("mixed", 1000, 6, 3, seed)
            Y, R = Y - Y.mean(0), expm(0.2 * (orthogonal(6, seed) - orthogonal(6, seed).T))
        theta = contrast.best_angles(Fourth.of(Y), R, np.array([i]), np.array([j]), LAM)[0]
        pair = (Y @ R)[:, [i, j]]

        def f(t, pair=pair):
            c, s = np.cos(t), np.sin(t)
            return F(pair, np.array([[c, -s], [s, c]]))

        best = max(f(t) for t in np.linspace(-np.pi / 4, np.pi / 4, 501))
        assert f(theta) >= best - 1e-12 * abs(best)
        assert abs(theta) <= np.pi / 4


@pytest.mark.parametrize("view", [Fourth, Streamed])
def test_f_never_falls_and_is_that_of_the_rows(view):
    """From random starts, on dependent rows, where sweeps and Newton's steps have to be taken."""
    Y, history = dependent(), []
    R, end = ascent.climb(view.of(Y), orthogonal(6, 7), LAM, 1e-8, 200, history)
    values = np.array([value for _, _, value, _ in history])
    assert end.converged and {kind for kind, *_ in history} == {"sweep", "newton"}
    assert np.all(np.diff(values) >= 0) and values[-1] > F(Y, orthogonal(6, 7))
    assert values[-1] == pytest.approx(F(Y, R), rel=1e-12)


def test_one_component_has_one_answer():
    found = maximise(np.random.default_rng(0).normal(size=(100, 1)), starts=3)
    assert found.converged and found.agreeing == 3 and abs(found.R[0, 0]) == 1


@pytest.mark.parametrize("lam", every([0.01, 0.1, 1 / 3, 10.0], [0.1]))
def test_theorem_f_is_greatest_at_independent_sources(lam):
    """docs/concepts.md: on exactly independent components no rotation has a greater F, and few have as great a one."""
    heavy, light, gauss = [-3.0, 0, 0, 0, 0, 0, 0, 3], [-1.0, 1], [-np.sqrt(3), 0, 0, 0, 0, np.sqrt(3)]
    Y = grid(heavy, light, gauss)  # variances 2.25, 1, 1; cumulants above, below and equal to 0
    assert np.mean(np.array(gauss) ** 4) == pytest.approx(3 * np.mean(np.array(gauss) ** 2) ** 2)
    top = F(Y, np.eye(3), lam)
    rng = np.random.default_rng(0)
    for _ in range(500):
        R = turned(np.eye(3), rng.normal(size=3) * rng.choice([0.01, 0.1, 1]))
        away = np.abs(np.abs(R).max(0) - 1).max()
        assert F(Y, R, lam) < top - 1e-3 * min(lam, 1) * away
    # unique but for a pair of equal variance without cumulants
    Y = grid(gauss, gauss, heavy)
    R = turned(np.eye(3), np.array([0.4, 0, 0]))
    assert F(Y, R, lam) == pytest.approx(F(Y, np.eye(3), lam), rel=1e-12)


def test_theorem_needs_independence():
    """The bound is about independent components: dependent ones have rotations with a greater F than their own."""
    Y = dependent()
    assert max(F(Y, orthogonal(6, seed)) for seed in range(20)) > F(Y, np.eye(6))


@pytest.mark.parametrize("kind", every(["laplace", "uniform", "mixed"], ["mixed"]))
def test_sources_of_equal_variance_are_found_without_a_choice(kind):
    """One λ for heavy tails, light tails and both; the same answer from random starts; PCA fails."""
    Y, truth = components(sources(kind, 40_000, 12, 3), p=64)
    result = maximise(Y.astype(np.float32))
    assert result.converged and result.angle <= 1e-5 and result.notes == []
    assert matched(result.R, truth) > 0.9995
    assert matched(np.eye(12), truth) < 0.97
    for seed in range(3):
        again = maximise(Y.astype(np.float32), start=orthogonal(12, seed))
        assert again.converged and matched(again.R, result.R) > 0.999999


def test_many_components_without_the_tensor_give_the_same_answer():
    Y, truth = components(sources("mixed", 20_000, 16, 4), p=24)
    held = maximise(Y)
    streamed = maximise(Y, tensor=0)
    assert held.converged and streamed.converged
    assert matched(held.R, streamed.R) > 1 - 1e-9
    assert streamed.value == pytest.approx(held.value, rel=1e-9)
    assert matched(streamed.R, truth) > 0.998


@pytest.mark.parametrize(
    ("unit", "dtype"), every(itertools.product([1e-9, 1e9], [np.float32, np.float64]), [(1e-9, np.float32)])
)
def test_filters_and_errors_do_not_depend_on_the_units(unit, dtype):
    Y, _ = components(sources("mixed", 20_000, 8, 4), p=20)
    one, other = maximise(Y.astype(dtype)), maximise((Y * unit).astype(dtype))
    assert one.converged and other.converged
    np.testing.assert_allclose(other.R, one.R, atol=1e-5)
    np.testing.assert_allclose(other.sigma, one.sigma * unit, rtol=1e-5)
    np.testing.assert_allclose(other.error, one.error, rtol=1e-2, atol=1e-5)
    assert other.value == pytest.approx(one.value, rel=1e-5)


def test_the_answer_does_not_depend_on_the_basis():
    Y, _ = components(sources("mixed", 20_000, 6, 3))
    Q = orthogonal(6, 5)
    one, other = maximise(Y, tol=1e-9), maximise(Y @ Q, tol=1e-9, start=Q.T)
    np.testing.assert_allclose(np.abs(Q @ other.R), np.abs(one.R), atol=1e-8)


def test_equal_calls_give_equal_bits_on_any_number_of_threads():
    Y = components(sources("laplace", 120_000, 6, 3))[0].astype(np.float32)
    first, second = maximise(Y, threads=1), maximise(Y, threads=2)
    assert np.array_equal(first.R, second.R) and np.array_equal(first.error, second.error)


def gaussian(n, sigma, seed):
    """Gaussian components on their own principal axes."""
    Y = np.random.default_rng(seed).normal(size=(n, len(sigma))) * sigma
    return (Y - Y.mean(0)) @ np.linalg.eigh(np.cov(Y.T, bias=True))[1][:, ::-1]


def test_gaussian_components_of_distinct_variance_stay_principal():
    result = maximise(gaussian(50_000, [4, 2, 1, 0.5], 4))
    assert result.converged and result.fixed.all() and result.notes == []
    assert matched(result.R, np.eye(4)) > 0.9999


def test_gaussian_pairs_of_equal_variance_are_not_called_identified():
    """At the level of 5 %, in any of the pairs; heavy and light tails on the same rows are called identified."""
    wrong = 0
    for seed in range(30):
        result = maximise(gaussian(3000, [2, 2, 2, 1], seed))
        wrong += result.fixed[:3, :3].sum() > 3
        assert result.filter_error[:3].max() > 1 or result.fixed[:3, :3].sum() > 3
    assert wrong <= 5  # 30 × 0.05 = 1.5, and 5 are exceeded once in 250 times
    assert np.argwhere(np.triu(~maximise(gaussian(3000, [2, 2, 1], 1)).fixed)).tolist() == [[0, 1]]
    Y = sources("mixed", 20_000, 4, 2)
    assert maximise(Y - Y.mean(0)).fixed.all()


def test_curvature_of_a_pair_is_the_diagonal_of_the_hessian():
    Y, R = dependent(20_000), orthogonal(6, 3)
    point = Fourth.of(Y).at(R)
    groups = influence.group_moments(Y, point)
    found, error = influence.pair_curvature(groups, point, LAM)
    diagonal = np.diag(ascent.system(Fourth.of(Y), point, LAM).J)
    upper = np.triu_indices(6, 1)
    spread = np.einsum("gjj->gj", groups.C)
    bias = (
        4
        * groups.error(spread[:, None, :] - spread[:, :, None] - np.diag(point.C) + np.diag(point.C)[:, None])
        ** 2
    )
    np.testing.assert_allclose((found + bias)[upper], diagonal, rtol=1e-9)
    assert np.all(error[upper] > 0)


@pytest.mark.full
def test_the_error_of_the_curvature_is_its_spread_over_samples():
    """At fixed axes, on 200 samples of dependent components."""
    A, seen, stated = np.random.default_rng(0).normal(size=(4, 4)), [], []
    for seed in range(200):
        Y = sources("mixed", 2000, 4, 2, seed) @ A
        Y -= Y.mean(0)
        point = Fourth.of(Y).at(orthogonal(4, 1))
        found, error = influence.pair_curvature(influence.group_moments(Y, point), point, LAM)
        seen.append(found)
        stated.append(error)
    upper = np.triu_indices(4, 1)
    np.testing.assert_allclose(np.mean(stated, 0)[upper], np.std(seen, 0)[upper], rtol=0.25)


def test_a_saddle_is_named_and_left():
    """Two signs, turned by 45°: F is stationary there, and least. Not an answer, and not where the climb ends."""
    Y = grid([-1.0, 1], [-1.0, 1], [-2.0, 2])
    R = turned(np.eye(3), np.array([np.pi / 4, 0, 0]))
    for tensor in (64, 0):
        stuck = maximise(Y, start=R, max_iter=0, tensor=tensor)
        assert stuck.saddle and not stuck.converged and stuck.angle < 1e-6
        assert "saddle" in stuck.notes[0]
        left = maximise(Y, start=R, tensor=tensor)
        assert left.converged and not left.saddle
        np.testing.assert_allclose(np.abs(left.R).max(0), 1, atol=1e-6)
    there = maximise(Y, start=np.eye(3), max_iter=0)
    assert there.converged and not there.saddle


def test_too_few_steps_are_not_called_converged():
    Y = dependent()
    result = maximise(Y, start=orthogonal(6, 2), max_iter=2)
    assert not result.converged and result.iterations == 2 and result.angle > 1e-5
    assert "not converged: after 2 steps the next step is" in result.notes[0]


@pytest.mark.full
def test_standard_errors_are_the_spread_over_samples():
    """Angles of 150 samples against the median of the stated errors: within 20 %, for each pair."""
    k, n, angles, stated = 4, 3000, [], []
    for seed in range(150):
        Y = sources("mixed", n, k, 2, seed)
        Y -= Y.mean(0)
        result = maximise(Y, 0.1, start=np.eye(k))
        order = np.abs(result.R).argmax(0)
        R = np.empty((k, k))
        R[:, order] = result.R * np.sign(result.R[order, np.arange(k)])
        angles.append((R - R.T) / 2)
        error = np.empty((k, k))
        error[np.ix_(order, order)] = result.error
        stated.append(error)
    seen, said = np.std(angles, axis=0), np.median(stated, axis=0)
    upper = np.triu_indices(k, 1)
    np.testing.assert_allclose(said[upper], seen[upper], rtol=0.2)


def test_a_row_that_owns_a_component_is_named():
    Y = sources("laplace", 20_000, 6, 3)
    assert maximise(Y).notes == []
    Y[1234] *= 1e4
    spoiled = maximise((Y - Y.mean(0)) @ np.linalg.eigh(np.cov(Y.T))[1][:, ::-1])
    assert any("component 1 depends on few rows" in note and "row 1235 " in note for note in spoiled.notes)
    assert spoiled.carrying[0] < 1.01


def test_several_starts_keep_the_highest_and_say_what_they_found():
    """Few rows, many components: F has several maxima, and the starts say so; planted data have one."""
    Y = gaussian(40, np.ones(10), 3)
    one, many = maximise(Y), maximise(Y, starts=12)
    assert many.value >= one.value and many.agreeing < 12
    assert [
        note for note in many.notes if f"{12 - many.agreeing} of 12 starts ended in another answer" in note
    ]
    planted = maximise(components(sources("mixed", 20_000, 8, 4), p=20)[0], starts=5)
    assert planted.agreeing == 5 and planted.notes == []


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf])
def test_lam_must_be_a_positive_number(lam):
    with pytest.raises(InputError, match="lam"):
        maximise(dependent(), lam)


def test_unusable_rows_are_refused():
    with pytest.raises(InputError, match="more rows than components"):
        maximise(np.ones((3, 5)))
    with pytest.raises(InputError, match="NaN"):
        maximise(np.full((30, 3), np.nan))

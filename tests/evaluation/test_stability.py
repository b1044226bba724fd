"""Components planted as stable are found stable, and the free ones are not."""

import numpy as np
import pytest
from mechanisms import every

from sigmapca_cli.evaluation.stability import stability
from sigmapca_cli.system.errors import InputError


def orthonormal(p, k, generator):
    return np.linalg.qr(generator.standard_normal((p, k)))[0]


def runs_with_two_free_axes(runs=10, seed=0):
    """Five filters in every run, in any order and sign; two more that span one plane at a random angle."""
    generator = np.random.default_rng(seed)
    E = orthonormal(40, 7, generator)
    out = []
    for _ in range(runs):
        W = E.copy()
        W[:, 5:] = W[:, 5:] @ orthonormal(2, 2, generator)
        W += 0.01 * generator.standard_normal(W.shape)
        out.append(
            W[:, generator.permutation(7)] * generator.choice([-1, 1], 7) * generator.uniform(0.1, 9, 7)
        )
    return E, out


def test_fixed_axes_are_reproducible_and_a_free_plane_is_not():
    E, runs = runs_with_two_free_axes()
    found = stability(runs)
    assert found.reproducible.sum() == 5
    cosine = np.abs(E[:, :5].T @ found.centrotype[:, found.reproducible])
    assert cosine.max(axis=1).min() > 0.99
    assert found.index[:5].min() > 0.95 > 0.9 > found.index[5:].max()
    assert found.size.sum() == 70
    np.testing.assert_allclose(found.runs[:5], 1)


def test_sign_order_and_scale_change_nothing():
    _, runs = runs_with_two_free_axes()
    moved = [W[:, ::-1] * np.linspace(-2, 3, 7) for W in runs]
    np.testing.assert_allclose(stability(runs).index, stability(moved).index, rtol=1e-9)


def test_labels_and_the_source_of_the_centrotype_point_back_at_the_runs():
    _, runs = runs_with_two_free_axes()
    found = stability(runs)
    for cluster, (run, component) in enumerate(found.source):
        assert found.labels[run][component] == cluster
        w = runs[run][:, component]
        assert abs(w @ found.centrotype[:, cluster]) == pytest.approx(np.linalg.norm(w))


def test_random_runs_have_no_reproducible_component():
    generator = np.random.default_rng(1)
    assert not stability([orthonormal(30, 4, generator) for _ in range(8)]).reproducible.any()


def test_one_run_is_refused():
    with pytest.raises(InputError, match="two or more runs"):
        stability([np.eye(3)])


@pytest.mark.parametrize("count", every([2, 3, 4, 5, 8], [3]))
def test_axes_that_turn_freely_are_called_reproducible_in_5_percent_of_cases_at_most(count):
    """The null: two Gaussian components of equal variance, among eight that every run finds."""
    generator = np.random.default_rng(count)
    false = []
    for _ in range(200):
        E = orthonormal(20, 10, generator)
        runs = []
        for _ in range(count):
            W = E + 0.01 * generator.standard_normal(E.shape)
            W[:, :2] = W[:, :2] @ orthonormal(2, 2, generator)
            runs.append(W)
        found = stability(runs)
        free = np.abs(E[:, :2].T @ found.centrotype).max(0) > 0.5
        false += list(found.reproducible[free])
        assert found.index[~free].min() > 0.97, "what all runs find is alike"
        assert found.reproducible[~free].all() == (count > 2), "two runs are too few to tell even that"
    assert np.mean(false) <= 0.05


def test_two_runs_that_look_alike_are_too_few_to_tell():
    generator = np.random.default_rng(0)
    E = orthonormal(20, 5, generator)
    found = stability([E, E + 0.02 * generator.standard_normal(E.shape)])
    assert found.undecided.all() and not found.reproducible.any() and found.chance > 0.998


def test_an_estimate_does_not_count_as_agreeing_with_itself():
    a, b = np.eye(4)[:, :1], np.array([[np.cos(0.6)], [np.sin(0.6)], [0.0], [0.0]])
    assert stability([a, b]).index[0] == pytest.approx(np.cos(0.6))

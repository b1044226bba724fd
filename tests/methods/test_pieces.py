"""Constraints, the Solution, the checks on combinations, masks and the automatic a."""

import numpy as np
import pytest
import torch
from methods_helpers import composed, planted, start

from sigmapca_cli.methods import automatic, constraints
from sigmapca_cli.methods.config import ModelConfig, NonlinearityConfig, OrderingConfig, SigmaConfig
from sigmapca_cli.methods.method import make_method
from sigmapca_cli.methods.ordering import nested_mask
from sigmapca_cli.methods.solution import finalise
from sigmapca_cli.system.errors import InputError

# ---- constraints ----


def filters(kind):
    """Filters that are hard on a constraint: random, nearly parallel, unequal in size, square."""
    W = start(9, 5, 1) @ torch.diag(torch.tensor([1.0, 3, 0.2, 1, 1], dtype=torch.float64))
    if kind == "random":
        return torch.randn(9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    if kind == "nearly parallel":
        return torch.ones(9, 5, dtype=torch.float64) + 0.05 * start(9, 5, 2)
    return W if kind == "unequal" else start(5, 5, 3)


KINDS = ("random", "nearly parallel", "unequal", "square")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["symmetric", "gram_schmidt"])
def test_orthogonal_constraints_give_orthonormal_columns_of_the_same_span(name, kind):
    W = filters(kind)
    Q = constraints.REGISTRY[name](W)
    torch.testing.assert_close(Q.T @ Q, torch.eye(5, dtype=torch.float64), atol=1e-10, rtol=0)
    torch.testing.assert_close(Q @ Q.T @ W, W, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_symmetric_is_the_polar_factor_of_the_normalised_filters(kind):
    """Also where unit columns have singular values above √3, from where the printed iteration alone diverges."""
    W = constraints.unit_norm(filters(kind))
    U, _, Vh = torch.linalg.svd(W, full_matrices=False)
    torch.testing.assert_close(constraints.symmetric(W), U @ Vh, atol=1e-9, rtol=0)


def test_gram_schmidt_keeps_the_first_direction():
    W = filters("random")
    torch.testing.assert_close(constraints.gram_schmidt(W)[:, 0], W[:, 0] / W[:, 0].norm())


@pytest.mark.parametrize("name", constraints.REGISTRY)
def test_a_projection_is_idempotent_and_works_on_a_stack(name):
    fn = constraints.REGISTRY[name]
    stack = torch.stack([filters("random"), filters("unequal")])
    once = fn(stack)
    torch.testing.assert_close(fn(once), once, atol=1e-10, rtol=0)
    torch.testing.assert_close(once[1], fn(stack[1]), atol=1e-10, rtol=0)


def test_unit_norm_leaves_a_zero_column_at_zero():
    assert (constraints.unit_norm(torch.zeros(3, 2)) == 0).all()


# ---- the Solution ----


@pytest.fixture
def problem():
    x = planted(6, 4, 1, "uniform", 300)[0].numpy()
    return x, x.T @ x / len(x), start(6, 4, 1).numpy()


def test_permuted_and_flipped_filters_give_the_same_solution(problem):
    _, C, W = problem
    first, second = finalise(W, C), finalise(W[:, [2, 0, 3, 1]] * [1, -1, -1, 1], C)
    for name in ("W", "sigma", "encoder", "decoder"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=1e-12)


def test_components_have_exactly_unit_variance_whatever_the_scale(problem):
    """Biased variance of the components on the training data is 1, for tiny data too."""
    x, C, W = problem
    for scale in (1.0, 1e-8, 1e8):
        solution = finalise(W, C * scale**2)
        np.testing.assert_allclose((x * scale @ solution.encoder).var(0), 1, rtol=1e-9)
        np.testing.assert_allclose(solution.decoder @ solution.encoder, np.eye(4), atol=1e-9)


def test_a_component_without_variance_is_zero_not_nan(problem):
    _, C, W = problem
    solution = finalise(W, np.zeros_like(C))
    assert np.isfinite(solution.encoder).all() and (solution.encoder == 0).all()


def test_equal_largest_entries_do_not_flip_the_sign():
    W = np.array([[-0.5, 0.5], [0.5, 0.5]])
    nudged = W + np.array([[0, 0], [1e-9, -1e-9]])
    np.testing.assert_allclose(finalise(W, np.eye(2)).W, finalise(nudged, np.eye(2)).W, atol=1e-8)


def test_a_rotation_moves_with_its_filters(problem):
    """B = WΣ⁻¹V before and after ordering and signs, up to order and signs of its own columns."""
    x, C, W = problem
    V = start(4, 4, 5).numpy()
    B = W / np.sqrt(np.diag(W.T @ C @ W)) @ V
    solution = finalise(W, C, V)
    rebuilt = solution.W / solution.sigma @ solution.rotation
    cosines = np.abs((B / np.linalg.norm(B, axis=0)).T @ (rebuilt / np.linalg.norm(rebuilt, axis=0)))
    np.testing.assert_allclose(np.sort(cosines.max(0)), 1, atol=1e-9)
    np.testing.assert_allclose((x @ solution.encoder).var(0), 1, rtol=1e-9)


def test_a_number_of_each_component_is_sorted_with_the_components(problem):
    _, C, W = problem
    numbers = np.arange(4.0)
    solution = finalise(W, C, each={"a": numbers})
    by_hand = finalise(W[:, solution.order], C, order=False)
    np.testing.assert_allclose(solution.encoder, by_hand.encoder)
    assert (solution.extra["a"] == numbers[solution.order]).all()
    V = start(4, 4, 5).numpy()
    rotated = finalise(W, C, V, each={"a": numbers})
    B = W / np.sqrt(np.diag(W.T @ C @ W)) @ V
    correlation = (rotated.encoder.T @ C @ B) / np.sqrt(np.diag(B.T @ C @ B))
    assert (np.abs(correlation).argmax(1) == rotated.extra["a"]).all()


# ---- combinations ----

REFUSED = [
    ("linear_ae", ["nonlinearity=tanh"], "uses no nonlinearity"),
    ("linear_ae", ["sigma=trainable"], "does not use σ"),
    ("linear_ae", ["ordering=deflation"], "not defined for objective linear_ae"),
    ("linear_ae", ["ordering=triangular"], "no σ"),
    ("nlpca", ["nonlinearity=sign"], "derivative is 0"),
    ("nlpca", ["nonlinearity=tanh", "a=auto"], "no a to choose"),
    ("nlpca_trainable_a", ["a=auto"], "no a to choose"),
    ("skew_symmetric", ["nonlinearity=trainable_scaled_tanh"], "gives a no gradient"),
    ("bigradient", ["sigma=trainable"], "holds σ constant"),
    ("lica", ["sigma=unit"], "unit variance"),
    ("rica", ["model.centring=noncentred"], "not defined for objective rica"),
    ("nlpca", ["regularisers=[symetric]"], "did you mean symmetric"),
    ("nlpca", ["regularisers={symmetric: .nan}"], "finite"),
    ("pca_svd", ["regularisers=[symmetric]"], "no training loop"),
    ("fastica", ["ordering=deflation"], "by variance already"),
    ("nlpca", ["model.objective=maine"], "did you mean main"),
]


@pytest.mark.parametrize(("model", "overrides", "why"), REFUSED)
def test_a_combination_without_sense_is_refused_in_one_line(model, overrides, why):
    with pytest.raises(InputError) as caught:
        make_method(composed(model, *overrides))
    assert why in str(caught.value) and "\n" not in str(caught.value)


SWAPS = [
    ("nlpca", ["nonlinearity=hard_tanh", "sigma=trainable", "constraint=gram_schmidt", "ordering=deflation"]),
    ("nlpca", ["regularisers=[symmetric]", "constraint=weight_norm"]),
    ("nlpca", ["nonlinearity=sign", "nonlinearity.derivative=one"]),
    ("nlpca", ["model.centring=noncentred_mean", "sigma=batch"]),
    ("nlpca", ["model.objective=main_scaled_decoder"]),
    ("nlpca", ["ordering=triangular", "ordering.form=hs_h"]),
    ("nlpca_trainable", ["sigma.l2=1e-3", "ordering=weighted_latent"]),
    ("linear_ae", ["regularisers={weighted_variance: 1.0}", "ordering=nested_dropout"]),
    ("subspace", ["ordering=triangular"]),
    ("bigradient", ["nonlinearity=scaled_tanh", "regularisers=[asymmetric_sigma]"]),
]


@pytest.mark.parametrize(("model", "overrides"), SWAPS)
def test_every_piece_can_be_swapped(model, overrides):
    method = make_method(composed(model, *overrides))
    x = planted(6, 3, 1, "laplace", 50)[0]
    state = method.init_state(start(6, 3, 1), torch.ones(3, dtype=torch.float64))
    method.begin_epoch(state, x.T @ x / 50)
    _, gradients = method.gradient(state, x, torch.Generator().manual_seed(0))
    assert all(torch.isfinite(g).all() and g.abs().max() > 0 for g in gradients.values())


def test_a_list_of_regularisers_has_weight_one():
    assert make_method(composed("nlpca", "regularisers=[symmetric,l1]")).terms == {
        "symmetric": 1.0,
        "l1": 1.0,
    }


def test_regularisers_of_a_model_are_replaced_not_merged():
    given = {
        "regularisers=null": {},
        "regularisers={l1: 2}": {"l1": 2.0},
        "regularisers=l1": {"l1": 1.0},
    }
    assert make_method(composed("bigradient")).terms == {"symmetric": 125.0}
    for override, expected in given.items():
        assert make_method(composed("bigradient", override)).terms == expected


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: NonlinearityConfig(a=-1.0), "> 0, or auto"),
        (lambda: NonlinearityConfig(a=float("nan")), "> 0, or auto"),
        (lambda: NonlinearityConfig(name="tahn"), "did you mean tanh"),
        (lambda: SigmaConfig(momentum=1.5), "≥ 0 and ≤ 1"),
        (lambda: SigmaConfig(l2=float("inf")), "finite number ≥ 0"),
        (lambda: OrderingConfig(rho=1.0), "between 0 and 1"),
        (lambda: ModelConfig(lambda_min=0.0), "≥ 1e-06 and ≤ 1"),
        (lambda: ModelConfig(beta="input_nrm"), "finite"),
    ],
)
def test_ranges_are_checked_with_one_line(make, why):
    with pytest.raises(InputError, match=why):
        make()


# ---- masks, automatic a ----


def test_masks_are_nested_geometric_and_keep_the_first_component():
    like = torch.ones(1, dtype=torch.float64)
    mask = nested_mask(40_000, 5, 0.7, like, torch.Generator().manual_seed(0))
    assert (mask[:, 0] == 1).all() and (mask[:, 1:] <= mask[:, :-1]).all()
    np.testing.assert_allclose(mask.mean(0), 0.7 ** np.arange(5), atol=0.01)


def test_the_statistic_of_a_has_its_known_values():
    """E|z|: √(2/π) for a Gaussian, 1/√2 for Laplace, √3/2 for uniform; a follows the side."""
    random = np.random.default_rng(0)
    n = 20_000
    z = np.stack([random.laplace(size=n), random.uniform(-1, 1, n), random.standard_t(2.1, n)], 1)
    state = automatic.start(torch.ones(3, dtype=torch.float64))
    automatic.advance_(state, torch.from_numpy(z), momentum=0.0)
    np.testing.assert_allclose(state["abs_z"][:2], [1 / np.sqrt(2), np.sqrt(3) / 2], atol=0.01)
    assert state["a"].tolist() == pytest.approx([3.0, 0.8, 3.0])

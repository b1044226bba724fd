"""One battery over the whole catalogue: every file in conf/model is a method that builds, steps and separates."""

import numpy as np
import pytest
import torch
from mechanisms import METHODS, every
from methods_helpers import composed, fit, matched, planted, rows_of, start

from sigmapca_cli.methods.catalogue import CATALOGUE
from sigmapca_cli.methods.method import make_method
from sigmapca_cli.methods.registry import OBJECTIVES
from sigmapca_cli.settings.conf_files import choices_of
from sigmapca_cli.training import optimizers

NAMES = list(choices_of("model"))
DIRECT = {"pca_svd", "ppca", "fastica", "picard", "factor_analysis"}
TRAINED = [name for name in NAMES if name not in DIRECT]
P, K = 8, 4


def test_catalogue_and_configuration_name_the_same_methods():
    assert set(NAMES) == set(CATALOGUE)


@pytest.mark.parametrize("name", every(NAMES, ["nlpca", "ppca"]))
def test_a_method_builds_under_its_own_name(name):
    cfg = composed(name)
    method = make_method(cfg)
    assert (method.name, method.kind) == (name, "direct" if name in DIRECT else "trained")
    assert CATALOGUE[name].equation and CATALOGUE[name].source and CATALOGUE[name].identifies


def state_of(method, W, C, seed=0):
    generator = torch.Generator().manual_seed(seed)
    sigma = ((C @ W) * W).sum(-2).sqrt()
    state = method.init_state(W, sigma, generator)
    method.begin_epoch(state, C)
    return state, generator


def steps_of(method, W, x, count=3):
    """A few plain gradient steps; the losses, gradients and states of the last one."""
    C = x.T @ x / len(x)
    state, generator = state_of(method, W, C)
    for _ in range(count):
        loss, gradients = method.gradient(state, x, generator)
        for name in method.parameters:
            state[name].sub_(0.01 * gradients[name])
        method.constrain(state)
    return loss, gradients, state


@pytest.mark.parametrize(
    "name", every(TRAINED, ["nlpca", "nlpca_trainable", "nested_dropout", "gha", "lica"])
)
def test_leading_dimensions_equal_separate_runs(name):
    x = planted(P, K, 2, "laplace", 40)[0]
    method = make_method(composed(name))
    W = torch.stack([start(P, K, seed) for seed in (1, 2, 3)])
    # One V for all: a rotation is drawn from the generator for every run of a sweep.
    together, separate = state_of(method, W, x.T @ x / 40)[0], []
    for r in range(3):
        state = {n: v[r].clone() for n, v in together.items()}
        loss, gradients = method.gradient(state, x, torch.Generator().manual_seed(7))
        separate.append((loss, gradients, state))
    loss, gradients = method.gradient(together, x, torch.Generator().manual_seed(7))
    for r, (loss_r, gradients_r, state_r) in enumerate(separate):
        torch.testing.assert_close(loss[r], loss_r, equal_nan=True)
        for n in method.parameters:
            torch.testing.assert_close(gradients[n][r], gradients_r[n])
        for n in state_r:
            torch.testing.assert_close(together[n][r], state_r[n])


@pytest.mark.parametrize("name", every(TRAINED, ["nlpca", "nested_dropout"]))
def test_same_seed_same_bits(name):
    x = planted(P, K, 2, "laplace", 30)[0]
    method = make_method(composed(name))
    first, second = (steps_of(method, start(P, K, 1), x)[2] for _ in range(2))
    assert all(torch.equal(first[n], second[n]) for n in first)


@pytest.mark.parametrize("name", every(TRAINED, METHODS))
def test_every_parameter_gets_a_gradient_and_the_state_stays_finite(name):
    x = planted(P, K, 2, "laplace", 200)[0]
    method = make_method(composed(name))
    loss, gradients, state = steps_of(method, start(P, K, 1), x)
    assert set(gradients) == set(method.parameters)
    assert all(gradients[n].shape == state[n].shape and gradients[n].abs().max() > 0 for n in gradients)
    assert bool(torch.isnan(loss)) == (method.objective.kind == "update")
    assert all(torch.isfinite(v).all() for v in state.values())


@pytest.mark.parametrize("name", every(TRAINED, METHODS))
def test_the_solution_is_ordered_signed_and_of_unit_variance(name):
    x = planted(P, K, 2, "laplace", 300)[0]
    C = x.T @ x / len(x)
    method = make_method(composed(name))
    state = steps_of(method, start(P, K, 5), x)[2]
    # A moving average of three steps is far from the data's σ, which the encoder uses.
    state["sigma"].copy_(((C @ state["W"]) * state["W"]).sum(-2).sqrt())
    solution = method.result(state, C.numpy())
    assert (np.diff(solution.sigma) <= 1e-12).all()
    largest = solution.W[np.abs(solution.W).argmax(0), np.arange(K)]
    assert (largest > 0).all()
    np.testing.assert_allclose(np.diag(solution.encoder.T @ C.numpy() @ solution.encoder), 1, rtol=1e-9)
    np.testing.assert_allclose(solution.encoder.T @ solution.decoder.T, np.eye(K), atol=1e-9)
    found = method.directions(state).numpy()
    assert matched(found, solution.encoder / np.linalg.norm(solution.encoder, axis=0)) > 0.999
    if "W" in method.tangent_parameters:
        np.testing.assert_allclose(np.linalg.norm(solution.W, axis=0), 1, rtol=1e-9)


# ---- linear PCA: covariance with distinct eigenvalues, full batches ----

LINEAR_STEPS = 700


@pytest.fixture(scope="module")
def linear():
    """Rows of exact covariance, its leading eigenvectors (P, K), and many rows for the masks."""
    x = planted(P, P, 1, "uniform", 4000, noise=0.0)[0]
    C = x.T @ x / len(x)
    return rows_of(C), torch.linalg.eigh(C)[1].flip(-1)[:, :K].numpy(), x


def aligned(W, E):
    """|cos| of filter i to eigenvector i: the order in training, not after sorting."""
    return np.abs((W / np.linalg.norm(W, axis=0) * E).sum(0))


def trained_linear(name, x, *overrides, batch=None, steps=LINEAR_STEPS):
    cfg = composed(name, "optimizer=sgd", *overrides)
    if "lam" in OBJECTIVES[cfg.model.objective].needs:
        cfg.model.lambda_min = 0.25
    return fit(cfg, x, K, steps, 0.02, batch=batch, seed=1).state["W"].numpy()


@pytest.mark.parametrize("name", every(["linear_ae", "subspace"], ["linear_ae"]))
def test_subspace_methods_span_the_leading_subspace_with_arbitrary_axes(name, linear):
    rows, E, _ = linear
    W = trained_linear(name, rows)
    np.testing.assert_allclose(W @ W.T, E @ E.T, atol=1e-6)
    assert aligned(W, E).max() < 0.95 and matched(W, E) < 0.9


LAMBDA = np.linspace(1, 0.25, K)
NORMS = {
    "wsla_1": np.sqrt(LAMBDA),
    "wsla_2": np.sqrt(LAMBDA),
    "wsla_3": np.ones(K),
    "gha": np.ones(K),
    "gha_encoder": np.ones(K),
    "gha_subspace": np.ones(K),
    "reconstruction_gha": np.ones(K),
    "weighted_variance": np.sqrt(1 + LAMBDA / 2),
}


@pytest.mark.parametrize("name", every(NORMS, ["gha"]))
def test_ordered_linear_methods_find_eigenvector_i_at_index_i_and_its_norm(name, linear):
    rows, E, _ = linear
    W = trained_linear(name, rows)
    np.testing.assert_allclose(aligned(W, E), 1, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), NORMS[name], atol=1e-3)


@pytest.mark.full
def test_weighted_subspace_loss_keeps_unit_norm(linear):
    rows, E, _ = linear
    W = trained_linear("wsla_unit_norm", rows, "sigma=batch", "sigma.epsilon=0")
    np.testing.assert_allclose(aligned(W, E), 1, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1, atol=1e-3)


@pytest.mark.full
def test_negative_weighted_variance_shrinks_the_columns_and_aligns_the_axes(linear):
    rows, E, _ = linear
    W = trained_linear("weighted_variance", rows, "model.alpha=-1", steps=2000)
    assert matched(W, E) > 0.999
    np.testing.assert_allclose(W.T @ W, np.diag(1 - LAMBDA / 2), atol=2e-3)


@pytest.mark.parametrize("name", every(["nested_dropout", "variance_dropout"], ["nested_dropout"]))
def test_dropout_methods_align_the_axes(name, linear):
    _, E, rows = linear
    W = trained_linear(name, rows, "ordering.rho=0.7", batch=200, steps=1200)
    np.testing.assert_allclose(aligned(W, E), 1, atol=5e-3)


@pytest.mark.full
def test_bigradient_spans_the_subspace_and_its_hierarchic_form_orders_it(linear):
    rows, E, _ = linear
    cfg = composed("bigradient", "regularisers={symmetric: 25}")
    Q = np.linalg.qr(fit(cfg, rows, K, 1500, 0.005, seed=1).state["W"].numpy())[0]
    np.testing.assert_allclose(Q @ Q.T, E @ E.T, atol=1e-3)
    W = fit(composed("bigradient_hierarchic"), rows, K, 1500, 0.005, seed=1).state["W"].numpy()
    np.testing.assert_allclose(aligned(W, E), 1, atol=1e-3)


@pytest.mark.parametrize("name", every(["nlpca", "nlpca_conventional", "nlpca_latent_linear"], ["nlpca"]))
def test_a_linear_h_cannot_resolve_a_group_of_equal_variance(name):
    """With h = z the reconstruction is linear PCA's: from a mixed start nothing leads to the sources."""
    x, E = planted(P, K, 2, "laplace", 4000)
    cfg = composed(name, "nonlinearity=identity", "sigma=ema")
    assert matched(fit(cfg, x, K, 300, 0.01, batch=128).state["W"].numpy(), E) < 0.95


# ---- nonlinear PCA: groups of equal variance ----

STEPS, BATCH, LR = 600, 128, 0.02
SEPARATES_LAPLACE = {
    "nlpca": [],
    "nlpca_trainable": ["steps=1500", "sigma.start=data"],
    "nlpca_latent_linear": ["steps=1500", "sigma.start=data"],
    "nlpca_latent_symmetric": ["steps=1500", "sigma.start=data"],
    "nlpca_latent_asymmetric": ["steps=1500", "sigma.start=data"],
    "nlpca_latent_wtw": ["steps=1500", "sigma.start=data"],
    "nlpca_modified_derivative": [],
    "nlpca_hard_tanh": [],
    "nlpca_asymmetric_adaptive": [],
    "nlpca_asymmetric": [],
    "nlpca_ema_latent_wtw": [],
    "nlpca_trainable_a": [],
    "nlpca_deflation": [],
    "nlpca_nested_dropout": [],
    "nlpca_tanh_linear": [],
    "nlpca_triangular": ["steps=1500"],
    "rica": ["model.beta_0=0.14"],
    "rica_logcosh": ["model.beta_0=0.14"],
    "skew_symmetric": [],
    "symmetric_off_diagonal": [],
    "symmetric_off_diagonal_sigma": [],
    "lica_two_step": [],
    "lica": ["a=3", "model.second=main"],
    "easi": [],
}
SEPARATES_UNIFORM = {
    "nlpca": ["a=0.8"],
    "nlpca_tanh": [],
    "lica": [],
    "lica_two_step": ["a=0.8"],
    "nlpca_whitened": [],
    "easi": ["model.alpha=-1"],
}
# With the a at which the main loss succeeds: what fails is the loss, not the choice of a.
CONTROLS = {
    "nlpca_conventional": ["nonlinearity=scaled_tanh", "a=3"],
    "nlpca_trainable_no_sg": ["nonlinearity=scaled_tanh", "a=3"],
    "nlpca_whitened": ["nonlinearity=scaled_tanh", "a=3"],
    "nlpca_tanh": [],
    "linear_ae": [],
}


@pytest.fixture(scope="module")
def groups():
    """Two groups of two equal variances; a PCA start, as the default has it."""
    made = {}
    for kind in ("laplace", "uniform", "mixed"):
        x, E = planted(P, K, 2, kind, 10_000)
        made[kind] = x, E, torch.linalg.eigh(x.T @ x)[1].flip(-1)[:, :K]
    return made


def recovered(name, kind, groups, *overrides):
    x, E, W0 = groups[kind]
    cfg = composed(name, *overrides)
    run = fit(cfg, x, K, cfg.steps or STEPS, LR, batch=BATCH, seed=1, W0=W0)
    return matched(run.solution.encoder, E), run


def test_the_start_is_mixed(groups):
    assert all(matched(W0.numpy(), E) < 0.95 for x, E, W0 in groups.values())


@pytest.mark.parametrize("name", every(SEPARATES_LAPLACE, ["nlpca", "easi"]))
def test_super_gaussian_sources_of_equal_variance_are_found(name, groups):
    assert recovered(name, "laplace", groups, *SEPARATES_LAPLACE[name])[0] > 0.99


@pytest.mark.parametrize("name", every(SEPARATES_UNIFORM, ["nlpca"]))
def test_sub_gaussian_sources_of_equal_variance_are_found(name, groups):
    assert recovered(name, "uniform", groups, *SEPARATES_UNIFORM[name])[0] > 0.99


@pytest.mark.parametrize("name", every(CONTROLS, ["linear_ae"]))
def test_negative_controls_leave_super_gaussian_sources_mixed(name, groups):
    assert recovered(name, "laplace", groups, *CONTROLS[name])[0] < 0.97


@pytest.mark.parametrize("optimizer", every(["adam", "sgd"], ["adam"]))
def test_automatic_a_separates_mixed_sources(optimizer, groups):
    found, run = recovered("nlpca", "mixed", groups, "a=auto", f"optimizer={optimizer}")
    assert found > 0.99
    assert sorted(run.state["a"].tolist()) == pytest.approx([0.8, 0.8, 3.0, 3.0])


def test_automatic_a_is_reported_in_the_order_of_the_components():
    x = planted(6, 4, 1, "mixed", 4000)[0]
    run = fit(composed("nlpca", "a=auto", "optimizer=sgd"), x, 4, 1200, 0.01, batch=128, seed=1)
    kurtosis = ((x.numpy() @ run.solution.encoder) ** 4).mean(0) - 3
    assert run.solution.order.tolist() != [0, 1, 2, 3], "the start was in order already"
    assert run.solution.extra["a"].tolist() == pytest.approx(np.where(kurtosis > 0, 3.0, 0.8).tolist())


def test_automatic_a_of_two_layers_follows_the_components_of_the_second():
    s, E = planted(2, 2, 2, "mixed", 4000, noise=0.0)
    method = make_method(composed("lica", "a=auto", "model.second=main"))
    state, _ = state_of(method, torch.from_numpy(E), torch.eye(2, dtype=torch.float64))
    state["V"].copy_(torch.eye(2).flip(0))
    for _ in range(300):
        method.gradient(state, s)
    assert state["a"].tolist() == pytest.approx([3.0, 0.8])
    assert state["V.a"].tolist() == pytest.approx([0.8, 3.0])


@pytest.mark.full
def test_no_single_a_separates_mixed_sources(groups):
    assert max(recovered("nlpca", "mixed", groups, f"a={a}")[0] for a in (0.8, 1.5, 3)) < 0.97


# ---- ordered by index, from a random start ----

ORDERED = [
    ("nlpca_deflation", []),
    (
        "nlpca_latent_wtw",
        ["ordering=triangular", "sigma=ema", "nonlinearity=scaled_tanh", "regularisers=null"],
    ),
    ("nlpca_triangular", ["ordering.form=h_hs"]),
    ("nlpca", ["ordering=gram_schmidt_regulariser", "ordering.weight=10"]),
    ("nlpca", ["constraint=gram_schmidt"]),
]


@pytest.mark.parametrize(("name", "overrides"), every(ORDERED, ORDERED[:1]))
def test_ordered_nonlinear_methods_put_the_largest_variance_first(name, overrides):
    x, E = planted(P, K, 1, "laplace", 10_000)
    W = fit(composed(name, *overrides), x, K, 1200, LR, batch=BATCH, seed=2).state["W"].numpy()
    np.testing.assert_allclose(aligned(W, E), 1, atol=0.01)


def test_without_an_ordering_the_index_says_nothing():
    x, E = planted(P, K, 1, "laplace", 10_000)
    W = fit(composed("nlpca"), x, K, 1000, LR, batch=BATCH, seed=2).state["W"].numpy()
    assert matched(W, E) > 0.99 and aligned(W, E).min() < 0.5


# ---- stationary points and σ ----


def test_rica_norm_is_one_minus_a_quarter_of_beta():
    """One component: n²·(1 − …): with w = n·u, 4n³σ² − 4nσ² + βE|xu| = 0 (errata 11; the published loss has no ½)."""
    x = planted(3, 1, 1, "laplace", 2000, noise=0.0)[0]
    cfg = composed("rica", "constraint=none", "optimizer=sgd", "model.beta=0.8")
    W = fit(cfg, x, 1, 600, 0.01, seed=1).state["W"].numpy()[:, 0]
    y = x.numpy() @ W
    expected = 1 - 0.8 / 4 * np.abs(y).mean() / (y**2).mean()
    assert pytest.approx(expected, rel=1e-3) == W @ W


def test_the_moving_average_weighs_the_past_and_starts_at_one():
    """Variance 9 after a start at 1, momentum 0.99: 1.08 (biased variance), ε inside the root."""
    x = torch.tensor([[-3.0], [3.0]], dtype=torch.float64)
    method = make_method(composed("nlpca", "sigma.start=one", "sigma.relative=false"))
    state, _ = state_of(method, torch.ones(1, 1).double(), torch.full((1, 1), 9.0).double())
    method.gradient(state, x)
    assert float(state["variance"]) == pytest.approx(1.08)
    assert float(state["sigma"]) == pytest.approx(np.sqrt(1.08 + 1e-3))


def test_sigma_data_is_exact_and_refreshed_at_an_epoch():
    x = planted(P, K, 2, "uniform", 500)[0]
    method, W = make_method(composed("nlpca", "sigma=data")), start(P, K, 3)
    state, _ = state_of(method, W, x.T @ x / len(x))
    torch.testing.assert_close(state["sigma"], (x @ W).square().mean(0).sqrt())
    state["W"].mul_(2)
    method.begin_epoch(state, x.T @ x / len(x))
    torch.testing.assert_close(state["sigma"], 2 * (x @ W).square().mean(0).sqrt())


def test_trained_sigma_stays_positive_under_steps_that_would_cross_zero():
    method = make_method(composed("nlpca_trainable"))
    state, _ = state_of(method, start(P, K, 1), torch.eye(P, dtype=torch.float64))
    state["sigma"].sub_(5)
    method.constrain(state)
    assert (state["sigma"] > 0).all()


def test_trained_sigma_grows_and_an_l2_term_bounds_it(groups):
    """The gradient of σ stays negative (σ grows) at any σ without the term, and turns positive with it."""
    x, _, W0 = groups["laplace"]

    def slope(scale, *overrides):
        method = make_method(composed("nlpca_trainable", *overrides))
        state, _ = state_of(method, W0, x.T @ x / len(x))
        state["sigma"].fill_(scale)
        return method.gradient(state, x)[1]["sigma"]

    for scale in (3.0, 10.0, 30.0, 100.0):
        assert (slope(scale) < 0).all()
    assert (slope(100.0, "sigma.l2=1e-3") > 0).all()


def test_weight_norm_trains_the_direction_only():
    """The gradient of ŵ = w/‖w‖ is orthogonal to w, and equals autograd through the division."""
    x = planted(P, K, 2, "laplace", 100)[0]
    method = make_method(composed("nlpca", "constraint=weight_norm", "sigma=unit", "sigma.start=one"))
    W = 1.7 * start(P, K, 2)
    state, _ = state_of(method, W, x.T @ x / len(x))
    grad = method.gradient(state, x)[1]["W"]
    assert float((grad * W).sum(0).abs().max()) < 1e-12
    leaf = W.clone().requires_grad_()
    unit = leaf / leaf.norm(dim=0)
    centred = x - x.mean(0)
    h = 4 * torch.tanh(centred @ unit / 4)
    (centred - h @ unit.detach().T).square().sum(1).mean().backward()
    torch.testing.assert_close(grad, leaf.grad)


@pytest.mark.full
def test_tangent_descent_does_not_leave_the_solution_where_adam_does(groups):
    """Started at the true filters, plain Adam drifts away; on tangent gradients it stays."""
    x, E, _ = groups["laplace"]
    settings = {"batch": BATCH, "seed": 1, "W0": torch.from_numpy(E), "schedule": "constant"}

    def kept(tangent):
        run = fit(composed("nlpca", f"optimizer.tangent={tangent}"), x, K, 1000, 0.01, **settings)
        return matched(run.state["W"].numpy(), E)

    assert kept("true") > 0.999 > kept("false")


def test_tangent_removes_the_radial_part():
    W, G = start(P, K, 1), start(P, K, 2)
    assert float((optimizers.tangent(G, W) * W).sum(0).abs().max()) < 1e-14

"""Every objective and regulariser against its equation written out sample by sample, and finite differences of it."""

import numpy as np
import pytest
import torch
from methods_helpers import composed
from methods_references import Reference, finite_difference, triangle

from sigmapca_cli.methods import composition, nonlinearities, objectives, regularisers, updates
from sigmapca_cli.methods.check import OBJECTIVES
from sigmapca_cli.methods.closed_form import main_gradient
from sigmapca_cli.methods.method import make_method
from sigmapca_cli.methods.notation import batch_mean
from sigmapca_cli.methods.objectives import main, ordering_triangle

B, P, K = 7, 5, 3


@pytest.fixture
def batch():
    """Rows, filters that are neither orthogonal nor of unit norm, and all that an objective may need."""
    random = np.random.default_rng(3)
    x, W = random.normal(size=(B, P)) + 0.2, random.normal(size=(P, K)) * 0.6
    sigma, lam = np.array([1.3, 0.7, 2.0]), np.array([1.0, 0.6, 0.2])
    mask = np.tril(np.ones((B, K)))
    return x, W, sigma, lam, mask


def given(sigma, lam, mask, h, dtype=torch.float64):
    numbers = {"sigma": sigma[None], "lam": lam, "mask": mask}
    return {
        **{n: torch.tensor(v, dtype=dtype) for n, v in numbers.items()},
        "alpha": -1.0,
        "beta": 0.7,
        "h": h,
        "mean": batch_mean,
        "inner": lambda v: v,
        "outer": torch.detach,
        "linear": objectives.tied,
        "norm": composition.NORMS["spectral"],
    }


LINEAR = [name for name, row in OBJECTIVES.items() if "linear" in row.needs]


def test_the_losses_with_a_linear_part_are_known():
    rows = {"rica", "rica_logcosh", "reconstruction_gha", "skew_symmetric", "symmetric_off_diagonal"}
    assert rows | {
        "linear_ae",
        "symmetric_off_diagonal_sigma",
        "weighted_variance",
        "variance_dropout",
    } == set(LINEAR)


@pytest.mark.parametrize("name", LINEAR)
def test_the_encoder_of_the_linear_part_can_be_held(name, batch):
    """model.reconstruction=subspace, E‖x − x[W]sgWᵀ‖²: the paper's second form of RICA, log cosh, GHA and skew."""
    test_value_and_gradient_are_those_of_the_written_out_equation(
        name, batch, linear=objectives.subspace_form
    )


@pytest.mark.parametrize(
    "norm, of", [("frobenius", np.linalg.norm), ("nuclear", np.sum), ("spectral", np.max)]
)
def test_the_decoder_is_scaled_by_the_norm_asked_for(norm, of, batch):
    chosen = composition.NORMS[norm]
    test_value_and_gradient_are_those_of_the_written_out_equation(
        "main_scaled_decoder", batch, norm=chosen, of=of
    )


def test_the_subspace_form_is_the_subspace_rule(batch):
    x, W, *_ = (torch.tensor(v) for v in batch)
    found = gradient(lambda V: objectives.subspace_form(x, V, x @ V), W)
    torch.testing.assert_close(found, -2 * updates.subspace(x, W, x @ W))


def test_the_weighted_latent_update_is_not_the_gradient_of_the_loss_printed_with_it(batch):
    """At orthonormal W and h′ = 1 the loss has Λ² where the update has Λ."""
    x, W, sigma, lam, _ = (torch.tensor(v) for v in batch)
    W = torch.linalg.qr(W)[0]
    h = nonlinearities.derivative_one(nonlinearities.tanh)
    pieces = {"h": lambda z: h(z)[0], "sigma": sigma[None], "lam": lam}
    loss = OBJECTIVES["main_weighted_latent"].fn
    found = -gradient(lambda V: loss(x, V, x @ V, **pieces), W)
    update = updates.weighted_latent(x, W, x @ W, **pieces)
    assert (found / 2 - update).abs().max() > 0.05
    torch.testing.assert_close(found / 2, update * lam)


def test_the_second_option_of_the_second_form_is_the_loss_with_unit_norm(batch):
    x, W, _, lam, _ = (torch.tensor(v) for v in batch)
    deviation = (x @ W).square().mean(0).sqrt()[None]
    loss = OBJECTIVES["wsla_unit_norm"].fn
    found = -gradient(lambda V: loss(x, V, x @ V, sigma=deviation, lam=lam), W)
    torch.testing.assert_close(found / 2, updates.wsla_2_diagonal(x, W, x @ W, lam))


def test_weights_from_the_variances_are_held_and_relative_to_the_largest(batch):
    x, W, *_ = batch
    cfg = composed("weighted_variance", "model.weights=variances", "constraint=none", "sigma=batch")
    method = make_method(cfg)
    state = method.init_state(torch.tensor(W), torch.ones(K, dtype=torch.float64))
    x = x - x.mean(0)
    variance = ((x @ W) ** 2).mean(0)
    lam = np.maximum(variance / variance.max(), cfg.model.lambda_min)
    reference = Reference(x, W, None, None, lam, None, cfg.model.alpha, None)
    found = method.gradient(state, torch.tensor(x))[1]["W"]
    np.testing.assert_allclose(found, finite_difference(reference.weighted_variance, W), atol=1e-7)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_value_and_gradient_are_those_of_the_written_out_equation(
    name, batch, linear=None, norm=None, of=np.max
):
    x, W, sigma, lam, mask = batch
    row = OBJECTIVES[name]
    h = lambda z: 2 * torch.tanh(z / 2)  # noqa: E731
    reference = Reference(x, W, lambda z: 2 * np.tanh(z / 2), sigma, lam, mask, -1.0, 0.7)
    leaf = torch.tensor(W, requires_grad=True)
    rows = torch.tensor(x)
    pieces = given(sigma, lam, mask, h)
    pieces["linear"] = linear or pieces["linear"]
    pieces["norm"] = norm or pieces["norm"]
    reference.stopped, reference.norm = linear is not None, of
    value = row.fn(rows, leaf, rows @ leaf, **{n: pieces[n] for n in row.needs})
    if row.kind == "update":
        np.testing.assert_allclose(-value.detach(), reference.update(name), atol=1e-9)
        return
    equation = getattr(reference, name)
    np.testing.assert_allclose(value.item(), equation(W), rtol=1e-12)
    value.backward()
    np.testing.assert_allclose(leaf.grad, finite_difference(equation, W), atol=2e-8)


@pytest.mark.parametrize("flows", ["inner", "both", "none"])
def test_the_mean_that_carries_gradient_is_the_one_asked_for(flows, batch):
    """Against finite differences in which the means that are held are those of the frozen filters."""
    x, W, sigma, *_ = batch
    h = lambda z: 2 * np.tanh(z / 2)  # noqa: E731
    m, frozen = x.mean(0), W.copy()

    def equation(V):
        inner, outer = m @ (frozen if flows == "none" else V), m @ (V if flows == "both" else frozen)
        return np.mean(
            [np.sum((xi - (h((xi @ V - inner) / sigma) * sigma + outer) @ frozen.T) ** 2) for xi in x]
        )

    cfg = composed("nlpca", "a=2", "model.centring=noncentred", f"model.mean_gradient={flows}", "sigma=batch")
    method = make_method(cfg)
    state = method.init_state(torch.tensor(W), torch.tensor(sigma))
    state["W"].copy_(torch.tensor(W))
    sigma = method.root(torch.tensor((x @ W).var(0))).numpy()
    gradient = method.gradient(state, torch.tensor(x))[1]["W"]
    np.testing.assert_allclose(gradient, finite_difference(equation, W), atol=2e-7)


def test_the_two_gradients_of_the_added_mean_agree_where_filters_are_orthonormal_and_h_is_centred():
    random = np.random.default_rng(5)
    x = random.laplace(size=(400, 6)) * np.linspace(3, 1, 6)
    x = torch.tensor(np.concatenate([x, -x]) + np.array([5.0, -2, 1, 0, 3, 1]))
    W = torch.linalg.qr(torch.tensor(random.normal(size=(6, 3))))[0]

    def gradient(flows, W):
        cfg = composed(
            "nlpca", "a=2", "model.centring=noncentred", f"model.mean_gradient={flows}", "sigma=batch"
        )
        method = make_method(cfg)
        state = method.init_state(W, torch.ones(3, dtype=W.dtype))
        state["W"].copy_(W)
        return method.gradient(state, x)[1]["W"]

    torch.testing.assert_close(gradient("inner", W), gradient("both", W))
    assert (gradient("inner", 1.1 * W) - gradient("both", 1.1 * W)).abs().max() > 0.1


REGULARISERS = {
    "symmetric": lambda x, W, F, s: np.sum((np.eye(K) - W.T @ W) ** 2),
    "asymmetric": lambda x, W, F, s: 0.5 * np.sum((triangle((W.T @ F).T) - np.eye(K)) ** 2),
    "asymmetric_off_diagonal": lambda x, W, F, s: 0.5 * np.sum(triangle((W.T @ F).T, diagonal=False) ** 2),
    "asymmetric_sigma": lambda x, W, F, s: 0.5 * np.sum(triangle((W.T @ (F * s)).T, diagonal=False) ** 2),
    "encoder": lambda x, W, F, s: np.mean([np.sum((xi - xi @ W @ F.T) ** 2) for xi in x]),
    "unit_norm": lambda x, W, F, s: 0.5 * sum((1 - np.linalg.norm(w)) ** 2 for w in W.T),
    "l1": lambda x, W, F, s: np.mean([np.sum(np.abs(xi @ W)) for xi in x]),
    "log_cosh": lambda x, W, F, s: np.mean([np.sum(np.log(np.cosh(xi @ W))) for xi in x]),
    "weighted_variance": lambda x, W, F, s: (
        -np.mean([np.sum((xi @ W) ** 2 * np.linspace(1, 0.05, K)) for xi in x])
    ),
}


@pytest.mark.parametrize("name", regularisers.REGISTRY)
def test_a_regulariser_is_its_equation(name, batch):
    x, W, sigma, *_ = batch
    leaf, rows = torch.tensor(W, requires_grad=True), torch.tensor(x)
    value = regularisers.REGISTRY[name](rows, leaf, rows @ leaf, torch.tensor(sigma))
    value.backward()
    equation = lambda V: REGULARISERS[name](x, V, W, sigma)  # noqa: E731
    np.testing.assert_allclose(value.item(), equation(W), rtol=1e-12)
    np.testing.assert_allclose(leaf.grad, finite_difference(equation, W), atol=2e-8)


def test_log_cosh_does_not_overflow():
    y = torch.tensor([[1000.0]])
    assert float(regularisers.log_cosh(y, y, y, y)) == pytest.approx(1000 - np.log(2))


@pytest.mark.parametrize("form", ["hs_h", "h_hs", "h_y", "y_h", "z_y", "y_z"])
def test_the_triangular_term_adds_W_times_the_upper_triangle(form, batch):
    x, W, sigma, *_ = batch
    y = x @ W
    h = np.tanh(y / sigma)
    named = {"hs": h * sigma, "h": h, "y": y, "z": y / sigma}
    left, right = (named[part] for part in form.split("_"))
    leaf = torch.tensor(W, requires_grad=True)
    as_tensor = torch.tensor
    ordering_triangle(leaf, as_tensor(y), as_tensor(h), as_tensor(sigma[None]), form).backward()
    np.testing.assert_allclose(leaf.grad, W @ triangle(left.T @ right / B), atol=1e-12)


def gradient(loss, W):
    leaf = W.clone().requires_grad_()
    loss(leaf).backward()
    return leaf.grad


UPDATES_WITH_A_LOSS = {
    "subspace": lambda x, W, F, lam: 0.5 * (x @ F @ W.T - x).square().sum(1).mean(),
    "wsla_2": lambda x, W, F, lam: (
        0.5 * ((x @ F @ W.T - x).square().sum(1) - ((x @ W).square() * lam).sum(1)).mean()
        + 0.5 * (x @ W).square().sum(1).mean()
    ),
    "gha": lambda x, W, F, lam: (
        -0.5 * (x @ W).square().sum(1).mean() + (W * (F @ (F.T @ x.T @ x @ F / B).triu())).sum()
    ),
}


@pytest.mark.parametrize("name", UPDATES_WITH_A_LOSS)
def test_an_update_is_minus_the_gradient_of_its_loss(name, batch):
    """Paper: subspace learning, weighted subspace (second form) and GHA are all printed as a loss too."""
    x, W, _, lam, _ = (torch.tensor(v) for v in batch)
    row = OBJECTIVES[name]
    delta = row.fn(x, W, x @ W, **({"lam": lam} if row.needs else {}))
    expected = gradient(lambda V: UPDATES_WITH_A_LOSS[name](x, V, W, lam), W)
    torch.testing.assert_close(delta, -expected)


def test_bigradient_with_h_linear_climbs_the_variance(batch):
    x, W, sigma, *_ = (torch.tensor(v) for v in batch)
    delta = updates.bigradient(x, W, x @ W, lambda z: z, sigma[None])
    torch.testing.assert_close(delta, gradient(lambda V: 0.5 * (x @ V).square().sum(1).mean(), W))


@pytest.mark.parametrize("name", ["tanh", "scaled_tanh", "hard_tanh", "asymmetric", "identity"])
@pytest.mark.parametrize("centred", [True, False])
def test_the_closed_form_is_autograd_of_the_main_loss(name, centred, batch):
    x, W, sigma, *_ = (torch.tensor(v) for v in batch)
    fn = nonlinearities.REGISTRY[name]
    used = x if centred else x - x.mean(0)

    def loss(V):
        y = used @ V
        return main(used, V, y, lambda z: fn(z, 1.5, 1.6)[0], sigma[None])

    expected = gradient(loss, W)
    y = used @ W
    h, dh = fn(y / sigma, 1.5, 1.6)
    value, grad = main_gradient(x, W, y, sigma[None], h, dh, centred)
    torch.testing.assert_close(grad, expected)
    torch.testing.assert_close(value, loss(W))


def test_the_printed_gradient_is_per_sample(batch):
    """Errata 4: the product with h′ comes before the outer product with xᵀ."""
    x, W, sigma, *_ = batch
    grad = np.zeros_like(W)
    for xi in x:
        y = xi @ W
        t = np.tanh(y / sigma / 2)
        grad += 2 / B * np.outer(xi, ((2 * t * sigma) @ W.T @ W - y) * (1 - t**2))
    rows = torch.tensor(x)
    h, dh = nonlinearities.scaled_tanh(rows @ W / sigma, 2.0)
    args = (rows, torch.tensor(W), rows @ torch.tensor(W), torch.tensor(sigma[None]), h, dh)
    np.testing.assert_allclose(main_gradient(*args)[1], grad, atol=1e-12)


@pytest.mark.parametrize("name", nonlinearities.REGISTRY)
def test_dh_is_the_derivative_of_h(name):
    z = torch.linspace(-3.03, 3.03, 40, dtype=torch.float64)[:, None]
    fn, step = nonlinearities.REGISTRY[name], 1e-6
    numeric = (fn(z + step, 1.7, 1.6)[0] - fn(z - step, 1.7, 1.6)[0]) / (2 * step)
    torch.testing.assert_close(
        torch.as_tensor(fn(z, 1.7, 1.6)[1]).expand_as(z).to(z), numeric, atol=1e-8, rtol=0
    )


def test_known_standard_deviations_of_tanh():
    """Of tanh of a standard normal 0.6279, of 3·tanh(x/3) 0.9102 (Gauss-Hermite quadrature)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    z, weights = torch.from_numpy(nodes)[:, None], weights / weights.sum()
    for a, expected in ((1.0, 0.6279), (3.0, 0.9102)):
        h = nonlinearities.scaled_tanh(z, a)[0].squeeze().numpy()
        assert np.sqrt(weights @ h**2) == pytest.approx(expected, abs=5e-5)


def test_derivative_one_keeps_the_value_and_passes_the_gradient_through():
    z = torch.linspace(-2, 2, 9, requires_grad=True)
    h = nonlinearities.derivative_one(nonlinearities.tanh)(z)[0]
    torch.testing.assert_close(h, torch.tanh(z))
    h.sum().backward()
    assert (z.grad == 1).all()


def test_derivative_one_leaves_a_trained_a_its_own_gradient():
    z = torch.linspace(-2, 2, 9, dtype=torch.float64)
    a = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    h = nonlinearities.derivative_one(nonlinearities.scaled_tanh)(z, a)[0]
    (gradient,) = torch.autograd.grad((h * z).sum(), a)
    t = torch.tanh(z / 0.8)
    torch.testing.assert_close(gradient, (z * (t - z / 0.8 * (1 - t * t))).sum())


def test_adaptive_asymmetric_has_unit_variance_and_a_constant_scale():
    z = torch.randn(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    h = nonlinearities.asymmetric(z, c=None)[0]
    torch.testing.assert_close(h.detach().var(0, correction=0), torch.ones(2, dtype=torch.float64))
    h.sum().backward()
    scale = 1 / torch.tanh(z.detach()).std(0, correction=0)
    torch.testing.assert_close(z.grad, scale * (1 - torch.tanh(z.detach()) ** 2))

"""The choices inside a method against what they are said to be: means, sweeping, orders of ICA, pPCA's encoder."""

import numpy as np
import pytest
import torch
from mechanisms import every
from methods_helpers import composed, fit, planted, rows_of, start

from sigmapca_cli.composition.compose import compose_job
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.methods.direct import ALGORITHMS
from sigmapca_cli.methods.method import make_method
from sigmapca_cli.methods.ordering import widen
from sigmapca_cli.runner.plan import method_of
from sigmapca_cli.system.errors import InputError

P, K = 8, 4


def state_of(method, W, C):
    state = method.init_state(W, ((C @ W) * W).sum(-2).sqrt(), torch.Generator().manual_seed(0))
    method.begin_epoch(state, C)
    return state


# ---- the moving average of the mean ----


def test_the_mean_follows_the_batches_and_is_what_is_subtracted():
    """Two steps by hand: μ ← 0.99μ + 0.01x̄ from zero, then the gradient about μ."""
    x = planted(P, K, 2, "laplace", 60)[0] + torch.arange(P, dtype=torch.float64)
    W, C = start(P, K, 1), torch.eye(P, dtype=torch.float64)
    method = make_method(composed("nlpca", "model.mean=ema", "sigma=data"))
    state = state_of(method, W, C)
    method.gradient(state, x[:30])
    found = method.gradient(state, x[30:])[1]["W"]
    mean = 0.99 * 0.01 * x[:30].mean(0) + 0.01 * x[30:].mean(0)
    torch.testing.assert_close(state["mean"], mean)
    plain = make_method(composed("nlpca", "model.centring=data", "sigma=data"))
    torch.testing.assert_close(found, plain.gradient(state_of(plain, W, C), x[30:] - mean)[1]["W"])


MEANS = [
    ("model.centring=batch",),
    ("model.mean=ema", "sigma.momentum=0.9"),
    ("model.centring=noncentred",),
    ("model.centring=noncentred", "model.mean_gradient=both"),
    ("model.centring=noncentred", "model.mean_gradient=none"),
    ("model.centring=noncentred_mean",),
]


@pytest.fixture(scope="module")
def off_centre():
    """Groups of two equal variances about means ten times their spread, in the span of the sources or out of it."""
    x, E = planted(P, K, 2, "laplace", 10_000)
    W0 = torch.linalg.eigh(x.T @ x)[1].flip(-1)[:, :K]
    offset = {"inside": E @ [15.0, -9, 20, 10]}
    offset["outside"] = np.linalg.qr(np.c_[E, np.eye(P)])[0][:, K] * 30
    return {where: (x + torch.tensor(mean), E, mean, W0) for where, mean in offset.items()}


def trained_off_centre(data, *overrides):
    x, E, mean, W0 = data
    run = fit(composed("nlpca", "a=4", *overrides), x, K, 1500, 0.01, batch=128, seed=1, W0=W0)
    W = run.state["W"].numpy()
    return np.abs(W.T @ E).max(0).mean(), np.linalg.norm(mean - mean @ W @ W.T) / np.linalg.norm(mean)


@pytest.mark.parametrize(("overrides",), every([(each,) for each in MEANS], [(MEANS[1],)]), ids=str)
def test_every_centring_separates_data_with_a_mean_in_the_span_of_the_sources(overrides, off_centre):
    assert trained_off_centre(off_centre["inside"], *overrides)[0] > 0.98


@pytest.mark.full
def test_the_loss_that_reconstructs_the_mean_spends_a_filter_on_it(off_centre):
    """Where the mean lies out of the span of the k sources, the second loss cannot have both."""
    found, missed = trained_off_centre(off_centre["outside"], "model.centring=noncentred_mean")
    assert missed < 0.1 and found < 0.9
    found, missed = trained_off_centre(off_centre["outside"], "model.centring=noncentred")
    assert missed > 0.9 and found > 0.98


def test_rows_that_nobody_centres_are_not_separated(off_centre):
    assert trained_off_centre(off_centre["inside"], "model.centring=data")[0] < 0.95


# ---- nested dropout that sweeps, and its sum ----


def swept(period, steps):
    cfg = composed("nested_dropout", f"ordering.sweep={period}")
    x = planted(P, K, 1, "laplace", 400)[0]
    return fit(cfg, x, K, steps, 0.01, batch=50, seed=1, schedule="constant").state


def test_swept_columns_are_frozen_one_after_the_other_and_the_next_is_always_kept():
    earlier, later = swept(5, 12), swept(5, 14)
    moved = (later["W"] - earlier["W"]).abs().amax(0)
    assert moved[:2].tolist() == [0, 0] and (moved[2:] > 0).all()
    assert float(earlier["swept"]) == 12
    assert make_method(composed("nested_dropout", "ordering.sweep=5", "optimizer=adam")).sweeps
    mask = widen(torch.tensor([[1.0, 0, 0, 0], [1, 1, 1, 1]]), earlier, 5)
    assert mask.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]


def test_the_last_column_is_never_frozen():
    assert (swept(1, 20)["W"] - swept(1, 21)["W"]).abs().amax(0)[-1] > 0


@pytest.mark.full
def test_the_hierarchical_sum_finds_eigenvector_i_at_index_i():
    x = planted(P, P, 1, "uniform", 4000, noise=0.0)[0]
    C = x.T @ x / len(x)
    E = torch.linalg.eigh(C)[1].flip(-1)[:, :K].numpy()
    cfg = composed("linear_ae", "ordering=hierarchical", "optimizer=sgd")
    W = fit(cfg, rows_of(C), K, 1500, 0.004, seed=1).state["W"].numpy()
    np.testing.assert_allclose(np.abs((W * E).sum(0)), 1, atol=1e-3)


# ---- weight norm with the projective unit norm ----


def test_weight_norm_and_unit_norm_together_are_the_tangent_gradient():
    """At ‖w‖ = 1 the Jacobian of w/‖w‖ is the projection that optimizer.tangent makes: the same run."""
    x = planted(P, K, 2, "laplace", 2000)[0]
    both = composed("nlpca", "constraint=weight_unit_norm", "optimizer.tangent=false")
    tangent = composed("nlpca", "constraint=unit_norm", "optimizer.tangent=true")
    one, other = (fit(cfg, x, K, 200, 0.01, batch=100, seed=1).state["W"] for cfg in (both, tangent))
    torch.testing.assert_close(one, other, atol=1e-8, rtol=0)
    plain = composed("nlpca", "constraint=unit_norm", "optimizer.tangent=false")
    assert (fit(plain, x, K, 200, 0.01, batch=100, seed=1).state["W"] - one).abs().max() > 1e-3


# ---- the order of ICA's components, and pPCA's encoder ----


@pytest.fixture(scope="module")
def mixture():
    """Three sources of different shape, mixed by columns of norms 1, 4 and 2, the last two 20° apart."""
    random = np.random.default_rng(0)
    s = np.c_[random.laplace(size=4000) ** 3, random.uniform(-1, 1, 4000), random.laplace(size=4000)]
    s = (s - s.mean(0)) / s.std(0)
    u, angle = np.linalg.qr(random.normal(size=(6, 3)))[0], np.deg2rad(20)
    A = np.c_[u[:, 0], 4 * u[:, 1], 2 * (np.cos(angle) * u[:, 1] + np.sin(angle) * u[:, 2])]
    return s, s @ A.T


@pytest.mark.parametrize("name", every(["fastica", "picard"], ["fastica"]))
@pytest.mark.parametrize(
    "order, expected", [("filters", [1, 0, 2]), ("mixing", [1, 2, 0]), ("negentropy", [0, 2, 1])]
)
def test_ica_is_ordered_by_what_is_asked_for(name, order, expected, mixture):
    s, x = mixture
    source = MemorySource("array", x.astype(np.float32), Standardisation("none"))
    cfg = composed(name, f"model.order={order}", "k=3")
    solution = make_method(cfg).fit(cfg, source)
    similarity = np.abs(np.corrcoef(x @ solution.encoder, s, rowvar=False)[:3, 3:])
    assert similarity.argmax(1).tolist() == expected and similarity.max(1).min() > 0.95
    largest = np.abs(solution.W).argmax(0)
    assert (solution.W[largest, range(3)] > 0).all()
    np.testing.assert_allclose(
        solution.encoder.T @ np.cov(x.T, bias=True) @ solution.encoder, np.eye(3), atol=1e-3
    )


def test_two_layers_are_ordered_by_the_mixing(mixture):
    """The rotation that unmixes whitened rows, E(zᵀs), put into the state: only the order is the method's."""
    s, x = mixture[0], torch.from_numpy(mixture[1] - mixture[1].mean(0))
    C = x.T @ x / len(x)
    found = {}
    for order in ("filters", "mixing"):
        method = make_method(composed("lica_two_step", "a=4", f"model.order={order}"))
        state = state_of(method, torch.linalg.eigh(C)[1].flip(-1)[:, :3], C)
        z = x @ method.projection(state)
        U, _, Vh = torch.linalg.svd(z.T @ torch.tensor(s))
        state["V"].copy_(U @ Vh)
        solution = method.result(state, C.numpy())
        similarity = np.abs(np.corrcoef(x.numpy() @ solution.encoder, s, rowvar=False)[:3, 3:])
        found[order] = similarity.argmax(1).tolist()
    assert found == {"filters": [1, 0, 2], "mixing": [1, 2, 0]}


def test_the_printed_encoder_of_ppca_is_the_inverse_of_its_loadings():
    x = planted(P, K, 1, "uniform", 3000, noise=0.5)[0].numpy()
    source = MemorySource("array", x.astype(np.float32), Standardisation("none"))
    cfg = composed("ppca", "k=4", "model.ppca_encoder=printed")
    found = ALGORITHMS["ppca"](cfg, source)
    np.testing.assert_allclose(found.extra["loadings"] @ found.encoder, np.eye(K), atol=1e-9)
    values = found.sigma**2
    variance = np.diag(found.encoder.T @ source.covariance()[1] @ found.encoder)
    np.testing.assert_allclose(variance, values / (values - found.extra["noise_variance"]), rtol=1e-9)
    assert (variance > 1).all()


# ---- what makes no sense is refused ----

REFUSED = [
    ("nlpca", ["model.mean=ema", "model.centring=noncentred"], "model.mean=ema"),
    ("nlpca", ["ordering.sweep=10"], "nested dropout"),
    ("nested_dropout", ["ordering.sweep=10", "constraint=symmetric"], "moves the frozen columns"),
    ("lica", ["model.order=negentropy"], "fastica"),
    ("nlpca", ["model.order=mixing"], "linear ICA"),
    ("nlpca", ["model.centring=data", "data.centre=false"], r"data\.centre=false"),
    ("nlpca", ["ordering=hierarchical"], "linear_ae"),
    ("pca_svd", ["model.order=mixing"], "linear ICA"),
]


@pytest.mark.parametrize("model, overrides, why", REFUSED, ids=str)
def test_a_choice_without_sense_is_refused_in_one_line(model, overrides, why):
    with pytest.raises(InputError, match=why) as refusal:
        make_method(composed(model, *overrides))
    assert "\n" not in str(refusal.value)


def test_options_of_the_decoder_differ_and_are_updates():
    x = planted(P, K, 2, "laplace", 200)[0]
    C, W = x.T @ x / len(x), start(P, K, 1)
    gradients = []
    for objective in ("main_scaled_encoder", "main_unscaled_decoder"):
        for derivative in ("true", "one"):
            cfg = composed(
                "nlpca", f"model.objective={objective}", f"nonlinearity.derivative={derivative}", "sigma=data"
            )
            method = make_method(cfg)
            loss, found = method.gradient(state_of(method, W, C), x)
            assert torch.isnan(loss) and not method.has_loss
            gradients.append(found["W"])
    assert all((a - b).abs().max() > 1e-3 for i, a in enumerate(gradients) for b in gradients[:i])


@pytest.mark.parametrize(
    "overrides",
    [
        ("model=nlpca", "model.norm=frobenius"),
        ("model=nlpca_conventional", "model.beta=3"),
        ("model=nlpca_latent_linear", "model.reconstruction=subspace"),
        ("model=pca_svd", "model.alpha=2"),
        ("model=fastica", "model.ppca_encoder=printed"),
        ("model=nlpca", "solver=newton", "model.weights=variances"),
        ("model=nlpca", "solver=moments", "model.mean_gradient=both"),
    ],
    ids=" ".join,
)
def test_a_setting_that_the_model_does_not_read_is_refused(overrides):
    key = overrides[-1].partition("=")[0]
    with pytest.raises(InputError, match=rf"{key}=\S+: .*leave it out"):
        method_of(compose_job(["data=planted", "k=4", *overrides]).cfg)


@pytest.mark.parametrize(
    "overrides",
    [
        ("model=ppca", "model.ppca_encoder=printed"),
        ("model=nlpca", "model.centring=noncentred", "model.mean_gradient=both"),
        ("model=nlpca", "ordering=weighted_latent", "model.weights=variances"),
        ("model=linear_ae", "model.reconstruction=subspace"),
        ("model=rica", "model.beta=2"),
    ],
    ids=" ".join,
)
def test_a_setting_that_the_model_reads_is_taken(overrides):
    method_of(compose_job(["data=planted", "k=4", *overrides]).cfg)

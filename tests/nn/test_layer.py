"""The σ-PCA layer: the command's filters on the same batches, the paper's gradients, and the habits of torch."""

import copy
import io

import numpy as np
import pytest
import torch
from mechanisms import every
from torch import nn

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.data import build
from sigmapca_cli.evaluation.metrics import mcc
from sigmapca_cli.nn import LinearICA, PatchSigmaPCA, SigmaPCA
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.training.batches import Batches

DATA = ("data=planted", "data.n=2000", "data.p=12", "data.k=4", "data.group=2", "k=4")
EXACT = ("steps=100", "dtype=float64", "optimizer.schedule=constant", "rescale=false", "seed=3")


def planted(n=3000, p=10, seed=0):
    """Rows of four Laplace sources, two and two of equal variance, and the directions they stand in."""
    g = np.random.default_rng(seed)
    E = np.linalg.qr(g.standard_normal((p, 4)))[0]
    X = (g.laplace(size=(n, 4)) * [3, 3, 1.5, 1.5]) @ E.T + 0.02 * g.standard_normal((n, p)) + 5
    return torch.tensor(X), E


def fitted(layer, x, epochs=8, **adam):
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01, **adam)
    layer.constrain_after(optimizer)
    for epoch in range(epochs):
        for batch in x[torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))].split(128):
            optimizer.zero_grad()
            layer.loss(batch).backward()
            optimizer.step()
    return layer


def first_batches(cfg, count):
    """The batches of a run's first steps, as its step gets them."""
    batches = Batches(build(cfg.data), cfg.batch_size, cfg.seed)
    step = 0
    for epoch in range(count):
        for batch in batches.epoch(epoch):
            yield torch.tensor(batch.x, dtype=torch.float64)
            step += 1
            if step == count:
                return


SETTINGS = {
    "default": ((), {}),
    "paper": (
        ("sigma.relative=false", "sigma.start=one", "init=pca"),
        {"relative": False, "start": "one"},
    ),
    "batch": (("sigma=batch", "nonlinearity.derivative=one"), {"sigma": "batch", "derivative": "one"}),
    "trained": (("sigma=trainable", "sigma.start=data"), {"sigma": "trained"}),
    "symmetric": (("constraint=symmetric", "a=2"), {"constraint": "symmetric", "a": 2.0}),
    "automatic": (("a=auto", "solver.a_from=sign"), {"a": "auto"}),
}


@pytest.mark.parametrize("name", every(SETTINGS, ["default"]))
def test_filters_equal_those_of_the_command(name, train):
    overrides, settings = SETTINGS[name]
    run = train(*DATA, *EXACT, *overrides)
    cfg = job_of(_composed(*DATA, *EXACT, *overrides)).cfg
    source = build(cfg.data)
    layer = SigmaPCA(12, 4, dtype=torch.float64, **settings)
    layer.init_pca(torch.tensor(source.take(np.arange(source.n)), dtype=torch.float64))
    before = layer.filters.detach().numpy()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01, eps=cfg.optimizer.epsilon)
    layer.constrain_after(optimizer)
    for batch in first_batches(cfg, 100):
        optimizer.zero_grad()
        layer.loss(batch).backward()
        optimizer.step()
    W = layer.filters.detach().numpy()
    cosine = W.T @ run.filters
    match = np.abs(cosine).argmax(axis=1)
    assert sorted(match) == [0, 1, 2, 3]
    signs = np.sign(cosine[np.arange(4), match])
    np.testing.assert_allclose(W * signs, run.filters[:, match], atol=1e-6)
    assert np.abs(W - before).max() > 0.01  # they have moved


def _composed(*overrides):
    from composing import composed

    return composed(*overrides)


def test_gradients_are_the_papers():
    """∂L/∂W = 2E[xᵀ((ŷWᵀW − y) ⊙ h′)] without its radial part; x gets both of its paths; Σ and the decoder get none."""
    x = planted(200)[0].requires_grad_()
    layer = SigmaPCA(10, 4, dtype=torch.float64, momentum=0.9)
    layer.loss(x).backward()
    with torch.no_grad():
        W, xc = layer.weight, x - x.mean(0)
        y = xc @ W
        sigma = layer.sigma
        t = torch.tanh(y / sigma / 4)
        hat, slope = 4 * t * sigma, 1 - t * t
        G = 2 / 200 * ((hat @ W.T @ W - y) * slope)
        by_hand = xc.T @ G
        torch.testing.assert_close(layer.weight.grad, by_hand - W * (W * by_hand).sum(0))
        # x is the target and the input; its mean is subtracted from both.
        direct = 2 / 200 * (xc - hat @ W.T)
        to_x = direct - ((direct @ W) * slope) @ W.T
        torch.testing.assert_close(x.grad, to_x - to_x.mean(0))


def test_the_layer_below_is_reached_unless_it_is_detached():
    below, layer, x = nn.Linear(10, 8), SigmaPCA(8, 3), planted(100)[0].float()
    layer.loss(below(x)).backward()
    assert below.weight.grad.abs().sum() > 0
    below.zero_grad()
    layer.loss(below(x).detach()).backward()
    assert below.weight.grad is None


def test_only_a_trained_sigma_gets_a_gradient():
    x = planted(100)[0].float()
    trained = SigmaPCA(10, 3, sigma="trained").init_pca(x)
    trained.loss(x).backward()
    assert trained.deviation.grad.abs().min() > 0
    assert not any(value.requires_grad for value in SigmaPCA(10, 3).buffers())


def test_finds_planted_axes_that_its_start_does_not():
    x, E = planted()
    start = SigmaPCA(10, 4, dtype=torch.float64).init_pca(x.split(500))
    assert mcc(start.filters.detach().numpy(), E) < 0.97
    layer = fitted(copy.deepcopy(start), x)
    assert mcc(layer.filters.detach().numpy(), E) > 0.995
    torch.testing.assert_close(layer.filters.norm(dim=0), torch.ones(4).double())
    torch.testing.assert_close(layer.weight.norm(dim=0), torch.ones(4).double())
    y = layer.eval()(x)
    torch.testing.assert_close(y.mean(0), torch.zeros(4).double(), atol=0.3, rtol=0)
    torch.testing.assert_close(y.std(0), layer.sigma, rtol=0.1, atol=0)
    assert (layer.reconstruct(y) - x).std() < 0.1
    assert layer.sigma[layer.order].diff().max() <= 0


def test_without_the_hook_the_weight_leaves_its_sphere_but_the_filters_do_not():
    x, _ = planted()
    layer = SigmaPCA(10, 4, dtype=torch.float64).init_pca(x)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    handle = layer.constrain_after(optimizer)
    handle.remove()
    layer.loss(x[:128]).backward()
    optimizer.step()
    assert (layer.weight.norm(dim=0) - 1).abs().max() > 1e-6
    torch.testing.assert_close(layer.filters.norm(dim=0), torch.ones(4).double())


def test_state_goes_round():
    x, _ = planted()
    layer = fitted(SigmaPCA(10, 4, dtype=torch.float64, a="auto").init_pca(x), x, epochs=1)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = SigmaPCA(10, 4, dtype=torch.float64, a="auto")
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(layer.loss(x), other.loss(x))
    assert torch.equal(layer.sigma, other.sigma) and torch.equal(layer(x), other(x))


def test_evaluation_changes_nothing():
    x, _ = planted(100)
    layer = SigmaPCA(10, 4, dtype=torch.float64).init_pca(x).eval()
    before = copy.deepcopy(layer.state_dict())
    layer.loss(x[:1])
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())


def test_two_losses_before_one_backward_pass():
    x, _ = planted(256)
    layer = SigmaPCA(10, 4, a="auto", dtype=torch.float64)
    (layer.loss(x[:128]) + layer.loss(x[128:])).backward()
    assert torch.isfinite(layer.weight.grad).all() and int(layer.batches) == 2


def test_under_autocast_the_loss_keeps_its_precision():
    x, E = planted()
    x = x.float() - 5
    layer = SigmaPCA(10, 4).init_pca(x)
    plain = copy.deepcopy(layer).loss(x[:128])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, loss = layer(x[:128], return_loss=True)
        assert y.dtype == torch.bfloat16 and torch.equal(loss, plain)
        below = nn.Linear(10, 10)
        with torch.no_grad():
            below.weight.copy_(torch.eye(10))
        found = fitted(layer, below(x).detach())  # rows in bfloat16
    assert mcc(found.filters.detach().numpy(), E) > 0.99


@pytest.mark.full
@pytest.mark.parametrize("a", [4.0, "auto"])
def test_compiles_as_one_graph(a):
    x, _ = planted(256)
    plain, traced = (SigmaPCA(10, 4, a=a, dtype=torch.float64).init_pca(x) for _ in range(2))
    compiled = torch.compile(traced, backend="aot_eager", fullgraph=True)
    for batch in x.split(64):
        (_, loss), (_, same) = plain(batch, return_loss=True), compiled(batch, return_loss=True)
        torch.testing.assert_close(loss, same)
        for value in (loss, same):
            value.backward()
    torch.testing.assert_close(plain.weight.grad, traced.weight.grad)
    torch.testing.assert_close(plain.variance, traced.variance)


def test_linear_ica_separates_sources_under_any_mixing():
    g = np.random.default_rng(0)
    A = g.standard_normal((4, 4))
    s = g.laplace(size=(4000, 4)) / np.sqrt(2)
    x = torch.tensor(s @ A)
    torch.manual_seed(0)
    layer = fitted(LinearICA(4, 4, a=3.0, dtype=torch.float64).init_pca(x), x, epochs=12)
    y = layer.eval()(x)
    torch.testing.assert_close(y.std(0), torch.ones(4).double(), atol=0.1, rtol=0)
    assert mcc(layer.encoder.detach().numpy(), np.linalg.inv(A)) > 0.98
    assert mcc(layer.filters.detach().numpy(), np.linalg.inv(A)) < 0.95
    torch.testing.assert_close(layer.reconstruct(y), x, atol=0.3, rtol=0)


def test_ica_filters_equal_those_of_the_command(train):
    from sigmapca_cli.runner.plan import method_of
    from sigmapca_cli.runner.stochastic import make_trainer

    overrides = (*DATA, *EXACT, "model=lica", "a=3", "steps=60")
    run = train(*overrides)
    cfg = job_of(_composed(*overrides)).cfg
    source = build(cfg.data)
    layer = LinearICA(12, 4, a=3.0, dtype=torch.float64)
    layer.init_pca(torch.tensor(source.take(np.arange(source.n)), dtype=torch.float64))
    start = make_trainer(cfg, method_of(cfg), source, "cpu").state
    with torch.no_grad():
        layer.weight.copy_(start["W"])
        layer.rotation.copy_(start["V"])
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01, eps=cfg.optimizer.epsilon)
    layer.constrain_after(optimizer)
    for batch in first_batches(cfg, 60):
        optimizer.zero_grad()
        layer.loss(batch).backward()
        optimizer.step()
    B = layer.encoder.detach().numpy()
    B = B / np.linalg.norm(B, axis=0)
    C = run.encoder / np.linalg.norm(run.encoder, axis=0)
    cosine = B.T @ C
    np.testing.assert_allclose(np.sort(np.abs(cosine).max(axis=0)), 1, atol=1e-6)


def test_patches_are_what_the_convolution_sees():
    torch.manual_seed(0)
    images = torch.randn(6, 3, 12, 10, dtype=torch.float64)
    settings = {"stride": 2, "padding": 1, "dtype": torch.float64}
    layer = PatchSigmaPCA(3, 4, 5, **settings).init_pca(images.split(2))
    rows = layer.windows(images)
    y = layer(images)
    flat = SigmaPCA(48, 5, dtype=torch.float64).init_pca(rows)
    torch.testing.assert_close(y.flatten(2).mT.reshape(-1, 5), flat(rows))
    torch.testing.assert_close(layer.loss(images), flat.loss(rows))
    assert layer.kernels.shape == (5, 3, 4, 4) and y.shape == (6, 5, 6, 5)


def test_a_layer_of_a_run_gives_its_components(train):
    run = train(*DATA, "solver=newton")
    x = build(job_of(_composed(*DATA)).cfg.data).take(np.arange(200)).astype(float)
    raw = torch.tensor(x + run.mean)
    layer = SigmaPCA.from_run(run, dtype=torch.float64).eval()
    y = layer(raw).detach().numpy() / run.sigma
    np.testing.assert_allclose(y, x @ run.encoder, atol=1e-9)
    assert layer.a == 4.0 and torch.isfinite(layer.train().loss(raw))
    for words, overrides in (
        ("divided by", ("data.standardise=feature",)),
        ("linear ICA", ("model=lica", "solver=newton")),
    ):
        with pytest.raises(InputError, match=words):
            SigmaPCA.from_run(train(*DATA, "steps=5", *overrides))
    with pytest.raises(InputError, match="LinearICA"):
        LinearICA.from_run(run)


BAD = {
    "n_components=5 is more than in_features=4": lambda: SigmaPCA(4, 5),
    "in_features=2.5": lambda: SigmaPCA(2.5, 1),
    "sigma='emma'": lambda: SigmaPCA(4, 2, sigma="emma"),
    "nonlinearity='relu'": lambda: SigmaPCA(4, 2, nonlinearity="relu"),
    "a=-1": lambda: SigmaPCA(4, 2, a=-1),
    "momentum=1.5": lambda: SigmaPCA(4, 2, momentum=1.5),
    "at least two rows": lambda: SigmaPCA(4, 2).loss(torch.zeros(1, 4)),
    "rows of 3 features": lambda: SigmaPCA(4, 2).loss(torch.zeros(9, 3)),
    "variance in 1 directions only": lambda: SigmaPCA(4, 2).init_pca(torch.arange(8.0)[:, None].repeat(1, 4)),
    "NaN": lambda: SigmaPCA(4, 2).init_pca(torch.full((9, 4), float("nan"))),
    "no rows": lambda: SigmaPCA(4, 2).init_pca([]),
    "images of shape": lambda: PatchSigmaPCA(1, 2, 2).loss(torch.zeros(2, 3, 8, 8)),
    "stride=0": lambda: PatchSigmaPCA(1, 2, 2, stride=0),
    "LinearICA: give a number": lambda: LinearICA(4, 2, a="auto"),
}


@pytest.mark.parametrize("words", BAD)
def test_what_does_not_fit_is_refused_in_words(words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        BAD[words]()


def test_the_rank_of_a_layer_is_that_of_the_data():
    from sigmapca_cli.data.moments.accumulate import rank_of
    from sigmapca_cli.nn.statistics import leading

    variances = np.array([1.0, 0.5, 0.2, 2.6e-15])  # the last is rounding: less than 8·p·ε of the first
    assert rank_of(variances) == 3
    leading(torch.as_tensor(np.diag(variances)), 3)
    with pytest.raises(ValueError, match="3 directions"):
        leading(torch.as_tensor(np.diag(variances)), 4)


def test_init_pca_takes_what_a_data_loader_gives():
    from torch.utils.data import DataLoader, TensorDataset

    x, _ = planted(200)
    whole = SigmaPCA(10, 4, dtype=torch.float64).init_pca(x)
    labelled = DataLoader(TensorDataset(x, torch.arange(200)), batch_size=64)
    for given in (
        labelled,
        x.numpy(),
        list(x.numpy().reshape(4, 50, 10)),
        [(x[:90], 0), [x[90:]]],
        x.split(50),
    ):
        layer = SigmaPCA(10, 4, dtype=torch.float64).init_pca(given)
        torch.testing.assert_close(layer.weight, whole.weight)
        torch.testing.assert_close(layer.running_mean, whole.running_mean)
    images = np.random.default_rng(0).standard_normal((6, 1, 8, 8))
    patches = PatchSigmaPCA(1, 3, 2).init_pca(images)
    torch.testing.assert_close(patches.weight, PatchSigmaPCA(1, 3, 2).init_pca([(images, 1)]).weight)
    with pytest.raises(ValueError, match="dict"):
        SigmaPCA(10, 4).init_pca([{"x": x}])


@pytest.mark.parametrize("kind", [SigmaPCA, LinearICA])
def test_a_reset_layer_is_a_new_one_also_from_the_meta_device(kind):
    settings = {"a": 3.0} if kind is LinearICA else {"a": "auto", "sigma": "trained"}
    layer = kind(10, 4, device="meta", **settings).to_empty(device="cpu")
    for tensor in layer.state_dict().values():
        tensor.fill_(77)
    torch.manual_seed(5)
    layer.reset_parameters()
    torch.manual_seed(5)
    new = kind(10, 4, **settings)
    assert layer.state_dict().keys() == new.state_dict().keys()
    for name, value in new.state_dict().items():
        assert torch.equal(value, layer.state_dict()[name]), name
    fitted(layer, planted(512)[0].float(), epochs=1)
    layer.reset_parameters()
    assert int(layer.batches) == 0 and torch.equal(layer.running_mean, torch.zeros(10))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_the_averages_keep_theirs(dtype):
    x, E = planted()
    x = x - 5
    made, moved = SigmaPCA(10, 4, dtype=dtype), SigmaPCA(10, 4).to(dtype)
    for layer in (made, moved):
        layer.init_pca(x)
        fitted(layer, x.to(dtype), epochs=4, eps=1e-4)
        assert layer.weight.dtype == dtype and layer(x[:9].to(dtype)).dtype == dtype
        assert {b.dtype for n, b in layer.named_buffers() if n != "batches"} == {torch.float32}
        # The weight itself is rounded to its type; what follows the batches is not.
        y = x @ layer.filters.detach().double()
        torch.testing.assert_close(layer.variance.double(), y.var(0), rtol=0.2, atol=0)
        assert mcc(layer.filters.detach().double().numpy(), E) > 0.95
        assert layer.reconstruct(layer(x[:9].to(dtype))).dtype == dtype
    full = SigmaPCA(10, 4).init_pca(x.float())
    kept = full.variance.clone()
    assert torch.equal(full.bfloat16().variance, kept) and full.double().variance.dtype == torch.float64
    ica = LinearICA(10, 4, a=3.0, dtype=dtype).init_pca(x)
    fitted(ica, x.to(dtype), epochs=1, eps=1e-4)
    assert torch.isfinite(ica(x.to(dtype))).all()


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("a", [4.0, "auto"])
def test_checkpointed_activations_give_the_gradients_of_the_plain_loss(reentrant, a):
    from torch.utils.checkpoint import checkpoint

    x, _ = planted(512)
    layers = [SigmaPCA(10, 4, a=a, momentum=0.5, dtype=torch.float64).init_pca(x) for _ in range(2)]
    for batch in x.split(128):
        rows = [batch.clone().requires_grad_() for _ in layers]
        layers[0].loss(rows[0]).backward()
        checkpoint(layers[1].loss, rows[1], use_reentrant=reentrant).backward()
        torch.testing.assert_close(rows[1].grad, rows[0].grad)
    torch.testing.assert_close(layers[1].weight.grad, layers[0].weight.grad)
    for name, value in layers[0].state_dict().items():
        torch.testing.assert_close(layers[1].state_dict()[name], value)


@pytest.mark.parametrize("constraint", ["unit_norm", "symmetric"])
def test_a_deep_copy_of_layer_and_optimizer_constrains_the_copy(constraint):
    x, _ = planted(512)
    layer = SigmaPCA(10, 4, constraint=constraint, dtype=torch.float64).init_pca(x)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    layer.constrain_after(optimizer)
    pairs = [(layer, optimizer), copy.deepcopy((layer, optimizer))]
    assert pairs[1][1].param_groups[0]["params"][0] is pairs[1][0].weight
    for one, steps in pairs:
        for batch in x.split(128):
            steps.zero_grad()
            one.loss(batch).backward()
            steps.step()
    torch.testing.assert_close(pairs[1][0].filters, layer.filters)
    torch.testing.assert_close(pairs[1][0].weight, layer.weight)


def test_a_batch_with_nan_is_named_and_leaves_the_averages_alone():
    x, _ = planted(128)
    layer = SigmaPCA(10, 4, dtype=torch.float64).init_pca(x)
    before = layer.running_mean.clone()
    x[5, 7] = float("nan")
    with pytest.raises(ValueError, match="row 5, feature 7"):
        layer.loss(x)
    assert torch.equal(layer.running_mean, before)


@pytest.mark.parametrize("kind", [SigmaPCA, LinearICA])
def test_components_of_another_type_are_not_rounded_in_silence(kind):
    with pytest.raises(RuntimeError, match="dtype"):
        kind(6, 3).reconstruct(torch.ones(2, 3, dtype=torch.float64))

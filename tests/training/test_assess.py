"""What `converged` claims: within an angle of a stable point. For every method there is a run to which it says no."""

import numpy as np
import pytest
import torch
from composing import composed
from mechanisms import every
from omegaconf import OmegaConf

from sigmapca_cli.data import build as build_source
from sigmapca_cli.evaluation import metrics
from sigmapca_cli.methods.catalogue import CATALOGUE, CONTROL, SUBSPACE
from sigmapca_cli.runner import stochastic
from sigmapca_cli.runner.plan import method_of
from sigmapca_cli.training import loop, stopping
from sigmapca_cli.training.arrays import as_numpy
from sigmapca_cli.training.assess import assess
from sigmapca_cli.training.ending import ended

DIRECT = {"pca_svd", "ppca", "fastica", "picard", "factor_analysis"}
TRAINED = sorted(set(CATALOGUE) - DIRECT)
LINEAR = {name for name in TRAINED if CATALOGUE[name].family == "linear PCA"} | {"bigradient_hierarchic"}
# Uniform sources for what separates no others; every other method gets Laplace ones.
SUB_GAUSSIAN = {"nlpca_whitened", "nlpca_conventional", "nlpca_tanh", "nlpca_trainable_no_sg"}
DATA = ("data=planted", "data.n=4000", "data.p=8", "data.k=4", "data.group=2", "k=4", "threads=1")
# What the catalogue's own numbers need on these data to come to rest within the steps of a test.
SETTINGS = {
    "bigradient": ("lr=0.001",),
    "bigradient_hierarchic": ("batch_size=1000",),
    "variance_dropout": ("steps=4000",),
    "nlpca_latent_symmetric": ("steps=4000",),
    "nlpca_latent_linear": ("steps=6000",),
    "nlpca_latent_asymmetric": ("steps=6000",),
    "nlpca_triangular": ("steps=6000",),
}


def trained(*overrides):
    """A trainer after its steps, as the command would have trained it, and its data."""
    cfg = OmegaConf.to_object(composed(*overrides))
    source = build_source(cfg.data)
    trainer = stochastic.make_trainer(cfg, method_of(cfg), source, "cpu")
    loop.train([trainer])
    return trainer


def judged(*overrides):
    return stopping.convergence_of(trained(*overrides))


def setting(name):
    kind = "uniform" if name in SUB_GAUSSIAN else "laplace"
    # Linear PCA is held by its variances alone: of equal ones these few rows hold little.
    return (*DATA, f"model={name}", f"data.sources={kind}", f"data.group={1 if name in LINEAR else 2}")


@pytest.mark.parametrize("name", every(TRAINED, ["nlpca", "linear_ae", "lica", "easi", "rica"]))
def test_a_run_that_is_stopped_at_its_start_has_not_converged(name):
    # The principal axes are what linear methods look for: those are stopped at a random start. A triangular term
    # orders by variance, and holds the axes of these few rows by what their variances happen to differ.
    start = "init=orthogonal" if name in LINEAR | {"bigradient", "nlpca_triangular"} else "init=pca"
    assert not judged(*setting(name), start, "steps=2", "lr=1e-9").converged(0.1)


@pytest.mark.parametrize("name", every(TRAINED, ["nlpca", "gha"]))
def test_a_run_that_is_done_has_converged(name):
    found = judged(*setting(name), "steps=1500", *SETTINGS.get(name, ()))
    assert found.converged(0.1)
    # Not because nothing was looked at: pairs are held, where the method is to hold its axes.
    if CATALOGUE[name].identifies != SUBSPACE and not CATALOGUE[name].identifies.startswith(CONTROL):
        assert (found.unheld >= 0).all(axis=1).sum() <= 2 < 6


@pytest.mark.full
@pytest.mark.parametrize(
    "model", ["nlpca", "nlpca_tanh_linear", "nlpca_deflation", "nlpca_modified_derivative"]
)
def test_the_angle_is_what_a_run_still_goes(model):
    """Where training on ends is as far away as was measured, to a third of it."""
    common = (*DATA, f"model={model}", "a=3")
    for steps in range(100, 1500, 100):
        run = trained(*common, f"steps={steps}", "optimizer.schedule=constant")
        found = stopping.convergence_of(run)
        if not len(found.unstable) and found.single_angle.max() < 0.4:
            break
    assert found.single_angle.max() > 0.03, "already there: nothing to compare"
    end = trained(*common, "steps=6000")
    start, stop = (as_numpy(t.method.directions(t.state)).astype(np.float64) for t in (run, end))
    start, stop = (v / np.linalg.norm(v, axis=0) for v in (start, stop))
    moved = np.arccos(np.minimum(np.abs(start.T @ stop).max(1), 1.0))
    np.testing.assert_allclose(found.single_angle, moved, atol=0.03, rtol=0.35)


def test_the_verdict_does_not_go_by_the_rate_the_schedule_or_the_length():
    """Left alone at the principal axes a run has not converged, however long it was left there, and however."""
    for way in ("steps=1", "optimizer.schedule=constant", "epochs=1", "optimizer=sgd"):
        assert not judged(*DATA, "lr=1e-9", way).converged(0.1)


@pytest.mark.parametrize(
    "model",
    every(["nlpca", "nlpca_latent_wtw", "linear_ae", "rica", "skew_symmetric"], ["nlpca"]),
)
def test_the_verdict_has_no_unit(model):
    found = [
        judged(*DATA, f"model={model}", "steps=100", f"data.scale_input={scale}")
        for scale in (1e-9, 1.0, 1e9)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.angle, found[0].angle, rtol=0.05, atol=2e-3)
        np.testing.assert_array_equal(other.unstable, found[0].unstable)


def test_a_saddle_is_named(train, caplog, tmp_path):
    # Half way between two sources of equal variance nothing pulls, and every small turn grows.
    half = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 4)))[0]
    x = np.random.default_rng(1).laplace(size=(8000, 4)) @ half.T
    np.save(tmp_path / "x.npy", x + 0.01 * np.random.default_rng(2).normal(size=x.shape))
    mixed = half.copy()
    mixed[:, 0], mixed[:, 1] = (half[:, 0] + half[:, 1]) / 2**0.5, (half[:, 0] - half[:, 1]) / 2**0.5
    np.save(tmp_path / "start.npy", mixed)
    given = ("data=array", f"data.path={tmp_path / 'x.npy'}", "data.standardise=none", "k=4", "a=4")
    start = ("init=file", f"init_file={tmp_path / 'start.npy'}")
    run = train(*given, *start, "steps=2", "lr=1e-9")
    assert not run.attrs["converged"]
    assert len(run.evaluation["unstable_pairs"]) == 1 and "at a saddle, which components" in caplog.text
    assert train(*given, *start, "steps=3000").attrs["converged"]


def test_filters_of_the_smallest_variances_are_a_saddle_of_linear_methods():
    """They are a stationary point too, and one that no step of a run would find."""
    trainer = trained(*DATA, "model=linear_ae", "steps=1", "lr=1e-9")
    source = trainer.batches.source
    vectors = source.principal_axes()[1]
    trainer.state["W"].copy_(torch.from_numpy(vectors[:, [0, 1, 6, 7]].copy()))
    found = assess(trainer.method, trainer.state, source)
    assert found.gradient.max() < 0.01 and len(found.unstable) and not found.converged(0.1)


def test_gaussian_pairs_of_equal_variance_come_to_rest_on_their_rows_and_are_unheld():
    """These rows have a stationary point, by chance: steps with noise stay off it, full-batch ones reach it."""
    rows = np.random.default_rng(0).normal(size=(20000, 4)) * [2, 2, 1, 1]
    from sigmapca_cli.data.in_memory import MemorySource
    from sigmapca_cli.data.standardisation import Standardisation

    source = MemorySource("rows", rows, Standardisation("none"))
    cfg = OmegaConf.to_object(composed(*DATA, "k=4", "steps=3000", "threads=1"))
    trainer = stochastic.make_trainer(cfg, method_of(cfg), source, "cpu")
    loop.train([trainer])
    assert not stopping.convergence_of(trainer).converged(0.1)
    trainer.state, _ = ended(trainer.method, trainer.state, trainer.batches.source, 0.1)
    trainer.assessed = None
    found = stopping.convergence_of(trainer)
    assert found.converged(0.1) and {tuple(sorted(pair)) for pair in found.unheld} == {(0, 1), (2, 3)}


def test_some_rows_in_the_place_of_all_tell_the_same():
    trainer = trained(*DATA, "steps=150")
    some, all_ = (assess(trainer.method, trainer.state, trainer.batches.source, rows=r) for r in (3000, 4000))
    np.testing.assert_allclose(some.single_angle, all_.single_angle, atol=0.15)


@pytest.mark.full
@pytest.mark.parametrize("model", ["nlpca_latent_symmetric", "nlpca_latent_linear", "nlpca_trainable"])
def test_a_trained_sigma_that_still_grows_is_seen(model):
    """Where σ is small mixtures of Laplace sources are stable; as it grows they are not. No mixture is converged."""
    for steps in (100, 300, 600, 1000):
        run = trained(*DATA, f"model={model}", f"steps={steps}", "nonlinearity=scaled_tanh", "a=1")
        directions = as_numpy(run.method.directions(run.state)).astype(np.float64)
        truth = run.batches.source.truth.filters
        if metrics.mcc(directions, truth) < 0.98:
            assert not stopping.convergence_of(run).converged(0.1), f"{steps} steps"


@pytest.mark.parametrize("n", [300, 1003, 4001])
def test_no_row_is_left_out_where_all_are_looked_at(n):
    """At the principal axes of all rows linear PCA has nothing to go; without the last rows it would have."""
    trainer = trained(*DATA, "model=gha", f"data.n={n}", "data.group=1", "steps=1", "lr=1e-12")
    assert stopping.convergence_of(trainer).single_angle.max() < 1e-3


def test_a_subspace_that_leaves_out_a_leading_axis_is_a_saddle_whatever_its_axes():
    """Axes 1 and 3 mixed, axis 2 left out: each component alone gains nothing, both together do."""
    trainer = trained(*DATA, "model=linear_ae", "data.group=1", "k=2", "steps=1", "lr=1e-12")
    source = trainer.batches.source
    E = source.principal_axes()[1]
    mixed = np.stack([E[:, 0] + E[:, 2], E[:, 0] - E[:, 2]], axis=1) / np.sqrt(2)
    trainer.state["W"].copy_(torch.from_numpy(mixed))
    found = assess(trainer.method, trainer.state, source)
    assert len(found.unstable) and not found.converged(0.1)
    leading = np.stack([E[:, 0] + E[:, 1], E[:, 0] - E[:, 1]], axis=1) / np.sqrt(2)
    trainer.state["W"].copy_(torch.from_numpy(leading))
    assert assess(trainer.method, trainer.state, source).converged(0.1)


def test_sigma_of_a_batch_is_that_of_all_rows_in_the_measure():
    start = (*DATA, "data.n=256", "steps=30")
    batch, data = (judged(*start, rule) for rule in ("sigma=batch", "sigma=data"))
    assert not batch.converged(0.1) and not data.converged(0.1)


@pytest.mark.full
@pytest.mark.parametrize(
    "overrides", [(), ("model.mean=ema", "sigma.momentum=0.9"), ("model.centring=noncentred",)], ids=str
)
def test_data_that_keep_their_mean_are_trained_and_found_to_have_converged(train, tmp_path, overrides):
    """Measured about the mean: about zero every component would seem to have radians to go."""
    random = np.random.default_rng(0)
    E = np.linalg.qr(random.normal(size=(16, 4)))[0]
    s = random.laplace(size=(20_000, 4)) / np.sqrt(2) * [3, 3, 2, 2]
    x = s @ E.T + 0.05 * random.normal(size=(20_000, 16)) + E @ [20, -10, 5, 8]
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    run = train(
        "data=array", f"data.path={tmp_path / 'x.npy'}", "data.centre=false", "k=4", "steps=2000", *overrides
    )
    assert np.abs(run.filters.T @ E).max(0).min() > 0.99
    assert run.evaluation["angle"] < 0.2
    np.testing.assert_array_equal(run.array("mean"), 0)

"""What says that a run has converged, when it stops, and which weights are kept."""

import numpy as np
import pytest
import torch
from composing import composed
from omegaconf import OmegaConf

from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.methods import constraints
from sigmapca_cli.methods.method import make_method
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.training import assess as of_rows
from sigmapca_cli.training.assess import assess
from sigmapca_cli.training.fields import effective_gradient

DATA = ("data=planted", "data.n=5000", "data.p=16", "data.k=4", "data.group=2", "k=4")


def test_relative_gradient_falls_as_training_goes_on(train):
    gradients = [
        train(*DATA, "init=orthogonal", f"steps={steps}").evaluation["relative_gradient"]
        for steps in (20, 200, 2000)
    ]
    assert gradients[0] > gradients[1] > gradients[2] and gradients[2] < 0.02 < gradients[0]


def measured(*overrides, scale=1.0, norm=1.0, W=None, V=None):
    """The convergence of a method at given filters, on 4,000 planted rows in 8 dimensions."""
    random = np.random.default_rng(0)
    x = scale * random.laplace(size=(4000, 8)) * 3 * 0.8 ** np.arange(8)
    source = MemorySource("rows", x, Standardisation("none"))
    method = make_method(OmegaConf.to_object(composed(*overrides)))
    W = torch.from_numpy(np.linalg.qr(random.normal(size=(8, 4)))[0] if W is None else W)
    state = method.init_state(W * norm, torch.ones(4), torch.Generator().manual_seed(0))
    method.begin_epoch(state, source.covariance()[1])
    if V is not None:
        state["V"].copy_(torch.as_tensor(V))
    return assess(method, state, source)


@pytest.mark.parametrize("model", ["lica_two_step", "nlpca_whitened", "easi"])
def test_the_gradient_behind_a_projection_has_no_unit(model):
    np.testing.assert_allclose(
        measured(f"model={model}", scale=10.0).gradient, measured(f"model={model}").gradient, rtol=1e-4
    )


def test_the_gradient_does_not_depend_on_the_norm_that_weight_norm_divides_by():
    unit = measured("constraint=unit_norm", "a=3").gradient
    for norm in (1.0, 10.0):
        found = measured("constraint=weight_norm", "a=3", norm=norm).gradient
        np.testing.assert_allclose(found, unit, rtol=1e-4)


def test_two_layers_have_converged_only_when_the_second_has():
    turned = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1)))[0]
    both, one = (measured("model=lica", "a=3", W=np.eye(8)[:, :4], V=V) for V in (np.eye(4), turned))
    assert both.converged(0.1) and not one.converged(0.1)


@pytest.mark.parametrize("name", ["none", "unit_norm", "symmetric", "gram_schmidt"])
def test_the_effective_gradient_is_what_a_small_step_does_after_the_constraint(name):
    random = np.random.default_rng(0)
    W = torch.from_numpy(np.linalg.qr(random.normal(size=(7, 3)))[0])
    G = torch.from_numpy(random.normal(size=(7, 3)))
    W = constraints.REGISTRY[name](W)
    moved = (W - constraints.REGISTRY[name](W - 1e-6 * G)) / 1e-6
    torch.testing.assert_close(effective_gradient(name, G, W), moved, atol=1e-4, rtol=1e-4)


def test_relative_gradient_of_each_component_is_in_the_order_of_the_filters(train):
    run = train(*DATA, "init=orthogonal", "steps=30", "sigma=data")
    # Started at the stored filters, which are sorted already, and left there.
    again = train(*DATA, "init=file", f"init_file={run.path}", "steps=1", "lr=1e-12", "sigma=data")
    np.testing.assert_allclose(np.abs(np.sum(run.filters * again.filters, 0)), 1, atol=1e-5)
    name = "relative_gradient_per_component"
    np.testing.assert_allclose(run.evaluation[name], again.evaluation[name], rtol=0.02)


def test_stop_tol_ends_early_and_says_converged(train):
    run = train(*DATA, "epochs=60", "stop=tol", "tol=0.05", "optimizer.schedule=constant", "lr=0.002")
    assert run.evaluation["converged"] and run.evaluation["steps"] < 60 * 40


def test_filter_change_is_stored_for_every_epoch(train):
    run = train(*DATA, "epochs=4", "init=orthogonal")
    change = run.metrics["filter_change"]
    assert np.isfinite(change).sum() == 4
    first, *_, last = change[np.isfinite(change)]
    assert first > last >= 0 and run.evaluation["filter_change"] == pytest.approx(last)


def test_keep_best_loss_keeps_the_epoch_with_the_lowest_mean(train):
    # A rate far too high, so that later epochs are no better than earlier ones; 40 steps an epoch.
    common = (*DATA, "lr=0.5", "optimizer.schedule=constant", "init=orthogonal", "log_every=40")
    for seed in range(8):
        run = train(*common, "epochs=5", "keep=best_loss", f"seed={seed}")
        lowest = int(np.argmin(run.metrics["loss"]))
        if lowest < 4:
            break
    assert len(run.metrics["loss"]) == 5 and lowest < 4, "no seed had an early lowest epoch"
    cut = train(*common, f"epochs={lowest + 1}", f"seed={seed}")
    assert np.array_equal(run.filters, cut.filters)
    assert not np.array_equal(run.filters, train(*common, "epochs=5", f"seed={seed}").filters)


@pytest.mark.full
def test_the_loss_does_not_rank_solutions(train, tmp_path):
    # docs/findings.md quotes these two losses: the true axes have the lower one, and training leaves them.
    points = ("experiment=points-uniform", "a=2", "log_every=32", "batch_size=1000")
    angle = np.pi / 4
    np.save(tmp_path / "truth.npy", [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    at_truth = train(*points, "init=file", f"init_file={tmp_path / 'truth.npy'}", "lr=1e-9", "epochs=400")
    converged = train(*points, "epochs=3000")
    assert at_truth.evaluation["mcc"] > 0.999 and converged.evaluation["mcc"] < 0.8
    truth, wrong = at_truth.metrics["loss"][-1], converged.metrics["loss"][-1]
    print(f"loss of the true axes {truth:.4f}, of what training converges to {wrong:.4f}")
    assert truth < wrong


def test_newton_heeds_the_file_to_start_from(train):
    """One iteration looks at the start and at nothing else."""
    given = (*DATA, "a=4", "solver=newton")
    first, cut = train(*given), train(*given, "solver.max_iterations=1")
    again = train(*given, "solver.max_iterations=1", "init=file", f"init_file={first.path}")
    assert first.attrs["converged"] and again.attrs["converged"] and not cut.attrs["converged"]
    assert np.abs((first.filters * again.filters).sum(0)).min() > 0.9999
    with pytest.raises(InputError, match="drop init=file"):
        train(*DATA, "model=lica", "solver=newton", "init=file", f"init_file={first.path}")


def test_features_are_worked_on_in_slices_to_the_same_sums(monkeypatch):
    random = np.random.default_rng(0)
    G, B = random.standard_normal((6, 50, 3)), np.linalg.qr(random.standard_normal((50, 4)))[0]
    inside = B.T @ G
    rest = G - B @ inside
    for sampled in (False, True):
        exact = np.square(rest.mean(0)).sum(0) - sampled * rest.var(0, ddof=1).sum(0) / 6
        for size in (7, 4096):
            monkeypatch.setattr(of_rows, "SLICE", size)
            found = of_rows.squares_outside(G, B, inside, sampled)
            np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-13)

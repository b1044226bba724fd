"""What says that a run has converged, when it stops, and which weights are kept."""

import numpy as np
import pytest

DATA = ("data=planted", "data.n=20000", "data.p=16", "data.k=4", "data.group=2", "k=4")


def test_relative_gradient_falls_as_training_goes_on(train):
    gradients = [
        train(*DATA, "init=orthogonal", f"steps={steps}").evaluation["relative_gradient"]
        for steps in (20, 200, 2000)
    ]
    assert gradients[0] > gradients[1] > gradients[2] and gradients[2] < 0.02 < gradients[0]


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_relative_gradient_has_no_unit(train, scale):
    common = (*DATA, "steps=400", "sigma.epsilon=0", "sigma.start=data", "init=orthogonal")
    plain, scaled = train(*common), train(*common, f"data.scale_input={scale}")
    np.testing.assert_allclose(
        scaled.evaluation["relative_gradient"], plain.evaluation["relative_gradient"], rtol=0.05
    )


def test_stop_tol_ends_early_and_says_converged(train):
    run = train(*DATA, "epochs=60", "stop=tol", "tol=0.05", "optimizer.schedule=constant", "lr=0.002")
    assert run.evaluation["converged"] and run.evaluation["steps"] < 60 * 157


def test_filter_change_is_stored_for_every_epoch(train):
    run = train(*DATA, "epochs=4", "init=orthogonal")
    change = run.metrics["filter_change"]
    assert np.isfinite(change).sum() == 4
    first, *_, last = change[np.isfinite(change)]
    assert first > last >= 0 and run.evaluation["filter_change"] == pytest.approx(last)


def test_keep_best_loss_keeps_the_epoch_with_the_lowest_mean(train):
    # A rate far too high, so that later epochs are no better than earlier ones; 157 steps an epoch.
    common = (*DATA, "lr=0.5", "optimizer.schedule=constant", "init=orthogonal", "log_every=157")
    for seed in range(8):
        run = train(*common, "epochs=5", "keep=best_loss", f"seed={seed}")
        lowest = int(np.argmin(run.metrics["loss"]))
        if lowest < 4:
            break
    assert len(run.metrics["loss"]) == 5 and lowest < 4, "no seed had an early lowest epoch"
    cut = train(*common, f"epochs={lowest + 1}", f"seed={seed}")
    assert np.array_equal(run.filters, cut.filters)
    assert not np.array_equal(run.filters, train(*common, "epochs=5", f"seed={seed}").filters)


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

"""A default run trains for as long as its data need, whatever their number of rows and their unit."""

from types import SimpleNamespace

import numpy as np
import pytest
from mechanisms import every

from sigmapca_cli.training.length import FEWEST_STEPS, MOST_STEPS, stage_of, stages


def cfg(steps=None, epochs=None, max_steps=None):
    return SimpleNamespace(steps=steps, epochs=epochs, max_steps=max_steps)


def test_what_is_asked_for_is_one_stage():
    assert stages(cfg(steps=7), 100) == (7,)
    assert stages(cfg(epochs=2.5), 100) == (250,)


def test_stages_grow_to_a_bound_that_many_rows_reach_in_one():
    assert stages(cfg(), 16) == (FEWEST_STEPS, 3 * FEWEST_STEPS, MOST_STEPS)
    assert stages(cfg(), 4160) == (12480,), "three passes over 532,480 rows, as before"
    assert stages(cfg(max_steps=2000), 16) == (FEWEST_STEPS, 2000)
    assert stages(cfg(max_steps=100), 4160) == (100,)


def test_a_step_belongs_to_the_stage_that_makes_it():
    ends = (10, 30, 50)
    assert [stage_of(ends, step) for step in (0, 9, 10, 29, 30, 50)] == [
        (0, 10), (0, 10), (10, 30), (10, 30), (30, 50), (30, 50),
    ]  # fmt: skip


KINDS = (("laplace", "4"), ("uniform", "0.8"), ("mixed", "auto"))


@pytest.mark.parametrize(
    ("n", "kind", "a"), every(((n, *kind) for n in (300, 2000, 20000) for kind in KINDS), [(2000, *KINDS[0])])
)
def test_a_default_run_is_as_good_as_the_newton_solver_or_says_that_it_is_not(train, n, kind, a):
    data = ("data=planted", f"data.n={n}", "data.p=16", "data.k=6", f"data.sources={kind}", "k=6", f"a={a}")
    run, newton = train(*data), train(*data, "solver=newton")
    good = run.evaluation["mcc"] > newton.evaluation["mcc"] - 0.005
    assert good or not run.attrs["converged"] or len(run.evaluation["unheld_pairs"])
    if n >= 2000:
        assert good and run.attrs["converged"]


def test_a_run_that_does_not_converge_ends_at_the_bound_and_says_so(train, caplog):
    data = ("data=planted", "data.n=2000", "data.p=16", "data.k=6", "k=6")
    run = train(*data, "lr=1e-7", "max_steps=2500", "ending=none")
    assert run.evaluation["steps"] == 2500 and not run.attrs["converged"]
    assert "not converged" in caplog.text and "steps=7500" in caplog.text


def test_recipe_paper_keeps_the_printed_epochs(train):
    data = ("data=planted", "data.n=1280", "data.p=16", "data.k=6", "k=6")
    assert train(*data, "recipe=paper").evaluation["steps"] == 30


UNITLESS = ["nlpca", "nlpca_latent_wtw", "rica", "lica", "gha", "wsla_1", "nlpca_tanh_linear", "easi"]


@pytest.mark.parametrize("model", every(UNITLESS, ["nlpca"]))
def test_the_unit_of_the_data_changes_no_filter(train, model):
    data = ("data=planted", "data.n=2000", "data.p=16", "data.k=6", "k=6", f"model={model}", "steps=400")
    plain = train(*data)
    for scale in (1e-9, 1e9):
        other = train(*data, f"data.scale_input={scale}")
        cosines = np.abs((plain.directions * other.directions).sum(0))
        norms = np.linalg.norm(plain.directions, axis=0) * np.linalg.norm(other.directions, axis=0)
        assert (cosines / norms).min() > 1 - 1e-5
        np.testing.assert_allclose(other.sigma, plain.sigma * scale, rtol=1e-4)
        # What is told in the units of the data: σ that was trained, and the loss, a square.
        if "trained_sigma" in plain.evaluation:
            np.testing.assert_allclose(
                other.evaluation["trained_sigma"], plain.evaluation["trained_sigma"] * scale, rtol=1e-3
            )
        loss, same = (run.metrics["loss"][-1] for run in (plain, other))
        assert np.isnan(loss) or same / scale**2 == pytest.approx(loss, rel=1e-3)


@pytest.mark.parametrize(
    "model",
    every(["pca_svd", "ppca", "fastica", "picard", "factor_analysis", "newton"], ["ppca", "newton"]),
)
def test_nor_does_it_change_what_takes_no_steps(train, model):
    method = ("solver=newton",) if model == "newton" else (f"model={model}",)
    data = ("data=planted", "data.n=2000", "data.p=16", "data.k=6", "k=6", *method)
    plain = train(*data)
    for scale in (1e-9, 1e9):
        other = train(*data, f"data.scale_input={scale}")
        cosines = np.abs((plain.directions * other.directions).sum(0))
        norms = np.linalg.norm(plain.directions, axis=0) * np.linalg.norm(other.directions, axis=0)
        assert (cosines / norms).min() > 1 - 1e-5
        for name in ("explained_variance", "mcc", "amari", "correlation"):
            assert other.evaluation[name] == pytest.approx(plain.evaluation[name], abs=1e-4)


@pytest.mark.full
def test_a_small_component_leaves_linear_pca_too(train, tmp_path):
    """ε is a share of each component's own variance: the absolute 1e-3 hides one of 1/225 of the largest."""
    random = np.random.default_rng(0)
    E = np.linalg.qr(random.normal(size=(8, 8)))[0]
    x = random.laplace(size=(20000, 4)) * [15.0, 15.0, 1.0, 1.0] @ E[:, :4].T
    np.save(tmp_path / "x.npy", x)
    run = train("data=array", f"data.path={tmp_path / 'x.npy'}", "data.standardise=none", "k=4", "a=4")
    cosines = np.abs(E[:, :4].T @ run.filters).max(0)
    assert cosines.min() > 0.99 and run.attrs["converged"]


def test_a_run_stopped_between_two_stages_makes_the_steps_it_would_have_made(train, monkeypatch):
    data = (
        "data=planted",
        "data.n=2000",
        "data.p=16",
        "data.k=6",
        "k=6",
        "lr=2e-4",
        "ending=none",
        "checkpoint.every_steps=1600",
    )
    whole = train(*data, "max_steps=4500")
    assert whole.evaluation["steps"] > FEWEST_STEPS, "the first stage was enough: nothing is tested"
    from sigmapca_cli.runner import checkpoints
    from sigmapca_cli.system.errors import Stopped

    save = checkpoints.Saver.save

    def once(self, trainer, **given):
        save(self, trainer, **given)
        raise Stopped("here", exit_status=75)

    monkeypatch.setattr(checkpoints.Saver, "save", once)
    folder = whole.folder.parent / "again"
    with pytest.raises(Stopped):
        train(*data, "max_steps=4500", f"run_dir={folder}")
    monkeypatch.setattr(checkpoints.Saver, "save", save)
    again = train(*data, "max_steps=4500", f"run_dir={folder}", "if_exists=resume")
    assert np.array_equal(again.filters, whole.filters)

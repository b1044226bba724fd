"""A default run ends at a stable stationary point of its rows, or at least nearer to one than its steps left it."""

import numpy as np
import pytest
from composing import composed

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.runner import stochastic
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.training import stopping
from sigmapca_cli.training.length import FEWEST_STEPS

DATA = ("data=planted", "data.n=1500", "data.p=8", "data.k=4", "data.group=4", "k=4")


def table(path, spread, kind="standard_t"):
    """A file of 600 rows of 6 sources mixed orthogonally, whose variances lie in a geometric row down to 1/spread."""
    random = np.random.default_rng(3)
    s = random.standard_t(5, size=(600, 6)) if kind == "standard_t" else random.normal(size=(600, 6))
    s = s / s.std(0) * spread ** (-np.arange(6) / 10)
    E = np.linalg.qr(random.normal(size=(6, 6)))[0]
    np.save(path, s @ E.T)
    return ("data=array", f"data.path={path}", "data.standardise=none", "k=6", "a=4")


def flow(W, X, a, steps=1500, rate=0.1, momentum=0.95):
    """Where small steps along the exact gradient of the loss over all rows lead, each column in its own time."""
    X = X - X.mean(0)
    C, speed = X.T @ X / len(X), 0.0
    for _ in range(steps):
        sigma = np.sqrt(np.einsum("pk,pq,qk->k", W, C, W))
        y = X @ W
        t = np.tanh(y / (a * sigma))
        G = X.T @ ((y - (a * sigma * t) @ (W.T @ W)) * (1 - t * t)) / len(X) / sigma**2
        speed = momentum * speed + rate * (G - W * (W * G).sum(0))
        W = W + speed
        W = W / np.linalg.norm(W, axis=0)
    return W


def test_a_converged_run_stays_where_it_is_when_the_flow_continues_it(train, tmp_path):
    """Equal variances and few rows: what the sampling error of the residual once hid moved by a tenth and more."""
    run = train(*table(tmp_path / "x.npy", 1.0))
    end = flow(run.filters, np.load(tmp_path / "x.npy"), 4.0)
    assert run.attrs["converged"]
    assert np.arccos(np.minimum(np.abs((run.filters * end).sum(0)), 1)).max() < 0.1


def test_a_run_that_is_left_at_a_saddle_ends_at_the_sources(train):
    start = (*DATA, "max_steps=1", "a=4")
    without, run = train(*start, "ending=none"), train(*start)
    assert not without.attrs["converged"] and len(without.evaluation["unstable_pairs"])
    assert run.attrs["converged"] and run.evaluation["full_batch_steps"] > 0 and run.evaluation["steps"] == 1
    assert run.evaluation["mcc"] > without.evaluation["mcc"] + 0.05


def test_components_of_very_different_size_come_to_rest_together(train, tmp_path):
    run = train(*table(tmp_path / "x.npy", 1e3), "max_steps=100")
    assert run.attrs["converged"] and run.sigma.max() > 20 * run.sigma.min()


def test_a_run_never_ends_farther_than_its_steps_left_it(train, monkeypatch):
    def away(method, state, source, tol):
        return {**state, "W": np.linalg.qr(np.random.default_rng(0).normal(size=state["W"].shape))[0]}, 3

    near = (*DATA, "max_steps=800", "tol=1e-5")
    before = train(*near, "ending=none")
    assert not before.attrs["converged"], "nothing is left to do"
    monkeypatch.setattr(stopping, "ended", away)
    run = train(*near)
    assert np.array_equal(run.filters, before.filters) and run.evaluation["full_batch_steps"] == 0


@pytest.mark.parametrize(
    "length", ["steps=40", "epochs=2", "recipe=paper", "solver=newton", "keep=best_loss"]
)
def test_an_ending_counts_only_where_a_run_trains_until_it_has_converged(length):
    with_it, without = (job_of(composed(*DATA, length, f"ending={word}")) for word in ("full_batch", "none"))
    assert with_it.hash == without.hash and with_it.cfg.ending == "none"
    assert Config().ending == "none", "configurations of older runs have none"
    assert job_of(composed(*DATA)).cfg.ending == "full_batch"


def test_a_run_that_is_stopped_before_its_end_ends_with_the_same_bits(train, monkeypatch):
    from sigmapca_cli.runner import checkpoints
    from sigmapca_cli.system.errors import Stopped

    data = (*DATA, "lr=1e-5", "checkpoint.every_steps=1000")
    whole = train(*data)
    assert whole.evaluation["full_batch_steps"] > 0 and whole.evaluation["steps"] == FEWEST_STEPS
    save = checkpoints.Saver.save
    for trained in (False, True):  # at a step, and after the ending

        def once(self, trainer, *, trained=False, wanted=trained):
            save(self, trainer, trained=trained)
            if trained == wanted:
                raise Stopped("here", exit_status=75)

        monkeypatch.setattr(checkpoints.Saver, "save", once)
        monkeypatch.setattr(stochastic, "LONG_SECONDS", 0.0)
        folder = whole.folder.parent / f"again{trained}"
        with pytest.raises(Stopped):
            train(*data, f"run_dir={folder}")
        monkeypatch.setattr(checkpoints.Saver, "save", save)
        again = train(*data, f"run_dir={folder}", "if_exists=resume")
        assert np.array_equal(again.filters, whole.filters)
        for name in ("angle", "converged", "full_batch_steps"):
            assert again.evaluation[name] == pytest.approx(whole.evaluation[name], rel=1e-6)

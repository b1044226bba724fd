"""The number that a search is led by, of one run: stored with it, and equal to what it says."""

import numpy as np
import pytest
from composing import composed

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.runner.objective import HALVES, measure
from sigmapca_cli.runner.run import run as start
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError

SMALL = (
    "data=planted",
    "data.n=2000",
    "data.p=10",
    "data.k=4",
    "data.group=2",
    "k=4",
    "steps=30",
    "threads=1",
)


def test_stability_is_the_agreement_of_halves_and_unidentified_counts_components(tmp_path):
    job = job_of(
        composed(*SMALL, f"run_dir={tmp_path / 'run'}", "model=pca_svd", "objective=[stability,unidentified]")
    )
    values = measure(job, start(job))
    halves = [StoredRun.open(tmp_path / "run" / HALVES / half) for half in ("even", "odd")]
    assert [run.config["data"]["half"] for run in halves] == ["even", "odd"]
    assert values[0] == agreement(halves[0].filters, halves[1].filters).mean < 0.999
    # Of directions of equal variance linear PCA identifies none: two groups of two.
    assert values[1] == 4
    stored = StoredRun.open(tmp_path / "run").evaluation
    assert [float(stored["stability"]), int(stored["unidentified"])] == values
    before = [run.path.stat().st_mtime_ns for run in halves]
    assert measure(job, tmp_path / "run") == values
    assert [run.path.stat().st_mtime_ns for run in halves] == before  # read, not trained again


def test_loss_and_error_are_those_of_the_run(tmp_path):
    job = job_of(composed(*SMALL, f"run_dir={tmp_path / 'run'}", "objective=[loss,reconstruction_error,mcc]"))
    values = measure(job, start(job))
    run = StoredRun.open(tmp_path / "run")
    assert values == [run.metrics["loss"][-1], run.evaluation["reconstruction_error"], run.evaluation["mcc"]]
    assert np.isfinite(values).all()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("data=array", "data.path=rows.npy", "k=2", "steps=5", "objective=mcc"), "are not known"),
        ((*SMALL, "model=pca_svd", "objective=loss"), "minimises no loss"),
        ((*SMALL, "solver=newton", "objective=loss"), "minimises no loss"),
        ((*SMALL, "data.half=even", "objective=stability"), "two halves"),
        ((*SMALL, "data.n=7", "k=4", "objective=stability"), "half of 7 rows is too few for k=4"),
    ],
)
def test_what_a_run_cannot_have_is_refused_before_it_trains(overrides, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.random.default_rng(0).laplace(size=(200, 3)))
    with pytest.raises(InputError, match=words):
        start(job_of(composed(*overrides, f"run_dir={tmp_path / 'run'}")))
    assert not (tmp_path / "run").exists()


def test_the_objective_is_no_part_of_what_a_run_is():
    plain = {
        job_of(composed(*SMALL, *more)).hash for more in ((), ("objective=mcc",), ("tags=[a]", "note=x"))
    }
    assert len(plain) == 1


def test_the_halves_of_rows_in_time_are_stretches(tmp_path):
    """Every second row of a slow series is the same sample: its axes, which are none, would agree."""
    rng = np.random.default_rng(0)
    x = np.zeros((2000, 5))
    for t in range(1, len(x)):
        x[t] = 0.98 * x[t - 1] + rng.normal(size=5)
    np.save(tmp_path / "x.npy", x)
    common = ("data=array", f"data.path={tmp_path / 'x.npy'}", "k=5", "model=pca_svd", "objective=stability")
    job = job_of(composed(*common, f"run_dir={tmp_path / 'run'}"))
    (value,) = measure(job, start(job))
    assert value < 0.93
    parts = [StoredRun.open(tmp_path / "run" / HALVES / name).config["data"] for name in ("1-of-2", "2-of-2")]
    assert [part["part"] for part in parts] == ["1/2", "2/2"]
    other = job_of(composed(*common, "data.ordered=false", f"run_dir={tmp_path / 'other'}"))
    assert measure(other, start(other))[0] > value

"""What a run that has not converged is told: commands that work, the one that solves these rows first."""

import shlex
from dataclasses import replace

import numpy as np
import pytest
from composing import composed
from sklearn.datasets import load_wine

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.data.n_components import count_for
from sigmapca_cli.evaluation.words import pairs_said
from sigmapca_cli.runner.ending import advice
from sigmapca_cli.runner.execute import load_source
from sigmapca_cli.settings.schema import Config

DATA = ("data=planted", "data.n=1500", "data.p=8", "data.k=4", "data.group=2", "k=4", "seed=1")


def told(*overrides, **facts):
    """The words after `sigmapca train` of each command that a run of these overrides is advised."""
    job = replace(job_of(composed(*overrides)), overrides=list(overrides))
    source = load_source(job.cfg)
    cfg = replace(job.cfg, k=count_for(source, job.cfg.k))
    found = advice(job, cfg, source, {"steps": 40, **facts})
    lines = [shlex.split(line.partition(" (about")[0]) for line in found]
    assert all(line[:2] == ["sigmapca", "train"] for line in lines)
    return [line[2:] for line in lines]


def test_the_first_command_solves_what_steps_did_not(train):
    first, longer = told(*DATA, "a=4", "steps=40", "lr=1e-6")
    assert "solver=newton" in first and "lr=1e-6" not in first and "steps=40" not in first
    assert train(*first).attrs["converged"]
    assert "steps=1500" in longer and train(*longer).evaluation["steps"] == 1500


@pytest.mark.parametrize("standardise", ["none", "feature"])
def test_the_advice_for_a_table_with_all_components_ends_converged(train, tmp_path, standardise):
    """σ from 315 to .09 as they are: the word is true, and the first command takes a second."""
    np.savetxt(tmp_path / "wine.csv", load_wine().data, delimiter=",")
    table = (
        "data=array",
        f"data.path={tmp_path}/wine.csv",
        f"data.standardise={standardise}",
        "k=all",
        "steps=40",
    )
    assert not train(*table).attrs["converged"]
    first = told(*table, full_batch_steps=100)[0]
    assert "solver=newton" in first and train(*first).attrs["converged"]


def test_more_steps_are_not_advised_after_full_batch_ones():
    assert all("solver=newton" in words for words in told(*DATA, full_batch_steps=100))


@pytest.mark.parametrize(
    "way, wanted",
    [
        (("solver=newton", "solver.max_iterations=2"), "solver.max_iterations=6"),
        (("solver=moments", "solver.max_iterations=2"), "solver.max_iterations=6"),
        (("model=fastica", "model.max_iter=2"), "model.max_iter=6"),
        (("model=nlpca_latent_wtw", "steps=40"), "steps=1500"),
    ],
)
def test_other_ways_get_commands_of_their_own(train, way, wanted):
    words = told(*DATA, *way)
    assert any(wanted in line for line in words)
    for line in words:
        assert isinstance(job_of(composed(*line)).cfg, Config)


def test_the_number_of_pairs_is_counted_once_each():
    free = np.zeros((5, 5), bool)
    assert pairs_said(free) == ""
    free[0, 1] = free[1, 0] = free[2, 4] = free[4, 2] = True
    assert "2 of 10 pairs" in pairs_said(free)

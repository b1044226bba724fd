"""Runs of every method side by side against the same runs alone, and which runs may stand side by side."""

import copy

import numpy as np
import pytest
import torch

from sigmapca_cli.job import job_of
from sigmapca_cli.methods import method as methods
from sigmapca_cli.methods.catalogue import CATALOGUE
from sigmapca_cli.runner import choose, stochastic
from sigmapca_cli.runner.grouped import group_key
from sigmapca_cli.sources import build
from sigmapca_cli.training import stacked_step
from sigmapca_cli.training.schedule import rate_factor

from .conftest import composed

DATA = (
    "data=planted",
    "data.n=1500",
    "data.p=12",
    "data.k=4",
    "data.group=2",
    "k=4",
    "dtype=float64",
    "device=cpu",
)
DIRECT = ("pca_svd", "ppca", "fastica", "picard", "factor_analysis")
TRAINED = sorted(set(CATALOGUE) - set(DIRECT))
NUMBERS = [
    ("model=variance_dropout", ("model.alpha=0.5",), ("model.alpha=2",)),
    ("model=rica", ("model.beta=0.5",), ("model.beta=2",)),
    ("model=nlpca_conventional", ("regularisers={symmetric: 0.1}",), ("regularisers={symmetric: 1}",)),
    ("ordering=nested_dropout", ("ordering.rho=0.5",), ("ordering.rho=0.9",)),
    ("ordering=triangular", ("ordering.weight=0.5",), ("ordering.weight=2",)),
    ("sigma=batch", ("optimizer.schedule=cosine",), ("optimizer.schedule=constant",)),
]


def job(*overrides):
    return job_of(composed(*DATA, "steps=40", *overrides))


def trainers(*jobs):
    source = build(jobs[0].cfg.data)
    return [stochastic.make_trainer(j.cfg, choose.method_of(j.cfg), source, "cpu") for j in jobs]


def factor(trainer, step):
    return rate_factor(trainer.cfg.optimizer.schedule, step, trainer.total)


def compare(step, alone, together, steps):
    for trainer in alone:
        trainer.choose_step()
        trainer.batches.centre = trainer.fused is not None
    batches = alone[0].batches
    for trainer in (*alone, *together):
        trainer.begin_epoch()
    for count, batch in zip(range(steps), batches.epoch(0), strict=False):
        losses = step.losses(copy.deepcopy(batch), count + 1, [factor(t, count) for t in together])
        for trainer, loss in zip(alone, losses, strict=True):
            trainer.advance(batch)
            np.testing.assert_allclose(float(loss), float(trainer.losses[-1]), rtol=1e-6, equal_nan=True)


def same(jobs, steps=25):
    """That steps side by side are steps alone: losses, states and optimizer."""
    assert len({group_key(j, choose.method_of(j.cfg)) for j in jobs}) == 1
    alone, together = trainers(*jobs), trainers(*jobs)
    with stacked_step.side_by_side(together) as step:
        compare(step, alone, together, steps)
    for one, other in zip(alone, together, strict=True):
        assert set(one.state) == set(other.state) and set(one.slots) == set(other.slots)
        for group in ("state", "slots"):
            for name, value in getattr(one, group).items():
                np.testing.assert_allclose(getattr(other, group)[name], value, rtol=1e-5, atol=1e-8)
    assert not np.allclose(alone[0].state["W"], alone[-1].state["W"]) or "V" in alone[0].state


@pytest.mark.parametrize("name", TRAINED)
def test_every_method_side_by_side_is_the_method_alone(name):
    jobs = [job(f"model={name}", "lr=0.01", "a=2"), job(f"model={name}", "lr=0.003", "a=5")]
    same(jobs)


def test_parts_on_several_cores_are_the_runs_alone(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    jobs = [job(f"a={a}", f"lr={lr}") for a in (2, 3, 5, 8, 10) for lr in (0.01, 0.003)]
    with stacked_step.side_by_side(trainers(*jobs)) as step:
        assert isinstance(step, stacked_step.Threads) and [part.runs for part in step.parts] == [4, 3, 3]
    same(jobs)


@pytest.mark.parametrize("model, first, second", NUMBERS, ids=[f"{m} {f[0]}" for m, f, _ in NUMBERS])
def test_numbers_of_a_method_may_differ(model, first, second):
    same([job(model, *first), job(model, *second)])


@pytest.mark.parametrize(
    "first, second",
    [
        ((), ("seed=1",)),
        ((), ("sigma=batch",)),
        (("sigma=batch",), ("sigma=batch", "a=auto")),
        (("model=nlpca_conventional",), ("model=nlpca_conventional", "regularisers={symmetric: 0.1}")),
        (("sigma=batch",), ("sigma=batch", "sigma.epsilon=1e-2")),
        ((), ("batch_size=64",)),
        ((), ("optimizer=sgd",)),
    ],
    ids=str,
)
def test_what_changes_the_equation_or_the_batches_stands_apart(first, second):
    keys = [group_key(j, choose.method_of(j.cfg)) for j in (job(*first), job(*second))]
    assert keys[0] is not None and keys[0] != keys[1]


def test_a_checkpoint_of_a_member_is_that_of_a_run_alone():
    """After steps side by side the generator of every member stands where it would alone."""
    jobs = [job("ordering=nested_dropout", f"lr={lr}") for lr in (0.01, 0.003)]
    alone, together = trainers(jobs[0]), trainers(*jobs)
    assert isinstance(alone[0].method, methods.Method)
    alone[0].choose_step()
    with stacked_step.side_by_side(together) as step:
        for count, batch in zip(range(5), alone[0].batches.epoch(0), strict=False):
            step.losses(batch, count + 1, [1.0, 1.0])
            alone[0].advance(batch)
    state = alone[0].generator.get_state()
    assert all(torch.equal(t.generator.get_state(), state) for t in together)


@pytest.mark.parametrize("model", ["rica", "lica", "nlpca_nested_dropout"])
def test_a_run_alone_in_its_group_has_the_bits_of_a_run_alone(model):
    """A sweep over methods makes groups of one."""
    alone, grouped = trainers(job(f"model={model}")) + trainers(job(f"model={model}"))
    alone.choose_step()
    with stacked_step.side_by_side([grouped]) as step:
        for count, batch in zip(range(10), alone.batches.epoch(0), strict=False):
            step.losses(batch, count + 1, [factor(grouped, count)])
            alone.advance(batch)
    for group in ("state", "slots"):
        for name, value in getattr(alone, group).items():
            assert torch.equal(value, getattr(grouped, group)[name]), name

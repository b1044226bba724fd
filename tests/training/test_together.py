"""Runs of every method side by side against the same runs alone, and which runs may stand side by side."""

import contextlib
import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from composing import composed
from mechanisms import every

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.data import build
from sigmapca_cli.methods import method as methods
from sigmapca_cli.methods.catalogue import CATALOGUE
from sigmapca_cli.runner import stochastic
from sigmapca_cli.runner.grouped import group_key
from sigmapca_cli.runner.plan import method_of
from sigmapca_cli.system.errors import RunFailed
from sigmapca_cli.training import loop, stopping
from sigmapca_cli.training.length import rate_factor
from sigmapca_cli.training.stacked_step import ThreadedStep, stacked_step

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
    ("model=rica", ("model.beta_0=0.5",), ("model.beta_0=2",)),
    ("model=nlpca_conventional", ("regularisers={symmetric: 0.1}",), ("regularisers={symmetric: 1}",)),
    ("ordering=nested_dropout", ("ordering.rho=0.5",), ("ordering.rho=0.9",)),
    ("ordering=triangular", ("ordering.weight=0.5",), ("ordering.weight=2",)),
    ("sigma=batch", ("optimizer.schedule=cosine",), ("optimizer.schedule=constant",)),
]


def job(*overrides):
    return job_of(composed(*DATA, "steps=40", *overrides))


def trainers(*jobs):
    source = build(jobs[0].cfg.data)
    return [stochastic.make_trainer(j.cfg, method_of(j.cfg), source, "cpu") for j in jobs]


def factor(trainer, step):
    return rate_factor(trainer.cfg.optimizer.schedule, step, trainer.total)


def compare(step, alone, together, steps):
    with contextlib.ExitStack() as stack:
        single = [stack.enter_context(stacked_step([trainer])) for trainer in alone]
        batches = alone[0].batches
        batches.prepare(step.wants_centred)
        for trainer in (*alone, *together):
            trainer.begin_epoch()
        for count, batch in zip(range(steps), batches.epoch(0), strict=False):
            losses = step.advance(copy.deepcopy(batch), count + 1, [factor(t, count) for t in together])
            for trainer, own, loss in zip(alone, single, losses, strict=True):
                expected = own.advance(batch, count + 1, [factor(trainer, count)])
                np.testing.assert_allclose(float(loss), float(expected), rtol=1e-6, equal_nan=True)


def same(jobs, steps=25):
    """That steps side by side are steps alone: losses, states and optimizer."""
    assert len({group_key(j, method_of(j.cfg)) for j in jobs}) == 1
    alone, together = trainers(*jobs), trainers(*jobs)
    with stacked_step(together) as step:
        compare(step, alone, together, steps)
    for one, other in zip(alone, together, strict=True):
        assert set(one.state) == set(other.state) and set(one.opt_state) == set(other.opt_state)
        for group in ("state", "opt_state"):
            for name, value in getattr(one, group).items():
                np.testing.assert_allclose(getattr(other, group)[name], value, rtol=1e-5, atol=1e-8)
    assert not np.allclose(alone[0].state["W"], alone[-1].state["W"]) or "V" in alone[0].state


@pytest.mark.parametrize(
    "name", every(TRAINED, ["nlpca", "nlpca_trainable", "linear_ae", "gha", "lica", "easi"])
)
def test_every_method_side_by_side_is_the_method_alone(name):
    jobs = [job(f"model={name}", "lr=0.01", "a=2"), job(f"model={name}", "lr=0.003", "a=5")]
    same(jobs)


def test_parts_on_several_cores_are_the_runs_alone(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    jobs = [job(f"a={a}", f"lr={lr}") for a in (2, 3, 5, 8, 10) for lr in (0.01, 0.003)]
    with stacked_step(trainers(*jobs)) as step:
        assert isinstance(step, ThreadedStep) and [part.runs for part in step.parts] == [4, 3, 3]
    same(jobs)


@pytest.mark.parametrize("model, first, second", every(NUMBERS, [NUMBERS[1], NUMBERS[4]]), ids=str)
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
    keys = [group_key(j, method_of(j.cfg)) for j in (job(*first), job(*second))]
    assert keys[0] is not None and keys[0] != keys[1]


SEEDED = (
    "linear_ae",
    "gha",
    "rica",
    "nlpca_trainable",
    "nlpca_latent_wtw",
    "nlpca_trainable_a",
    "lica",
    "easi",
)


@pytest.mark.parametrize("name", every(SEEDED, ["linear_ae", "lica"]))
def test_runs_of_several_seeds_side_by_side_are_the_runs_alone(name):
    """Each has its own start and its own batches."""
    jobs = [job(f"model={name}", f"seed={seed}") for seed in (0, 1, 2)]
    assert len({group_key(j, method_of(j.cfg), across_seeds=True) for j in jobs}) == 1
    alone, stacked = trainers(*jobs), trainers(*jobs)
    for run in alone:
        loop.train([run])
    loop.train(stacked)
    first, second = (run.state[run.method.trained] for run in alone[:2])
    assert not np.array_equal(first, second)
    for one, other in zip(alone, stacked, strict=True):
        for key, value in one.state.items():
            np.testing.assert_allclose(other.state[key], value, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("overrides", [(), ("model=nested_dropout",), ("ordering=nested_dropout",)], ids=str)
def test_seeds_stand_apart_where_steps_draw_or_are_made_by_hand(overrides):
    jobs = [job(*overrides, f"seed={seed}") for seed in (0, 1)]
    assert len({group_key(j, method_of(j.cfg), across_seeds=True) for j in jobs}) == 2


def test_a_checkpoint_of_a_member_is_that_of_a_run_alone():
    """After steps side by side the generator of every member stands where it would alone."""
    jobs = [job("ordering=nested_dropout", f"lr={lr}") for lr in (0.01, 0.003)]
    alone, together = trainers(jobs[0]), trainers(*jobs)
    assert isinstance(alone[0].method, methods.Method)
    with stacked_step(together) as step, stacked_step(alone) as single:
        for count, batch in zip(range(5), alone[0].batches.epoch(0), strict=False):
            step.advance(batch, count + 1, [1.0, 1.0])
            single.advance(batch, count + 1, [1.0])
    state = alone[0].generator.get_state()
    assert all(torch.equal(t.generator.get_state(), state) for t in together)


def test_runs_that_converge_earlier_leave_the_group_with_the_bits_of_runs_alone():
    """With stop=tol one run ends before the other; each is what it is alone."""
    jobs = [
        job("data.group=1", f"a={a}", "stop=tol", "steps=1000", "init=orthogonal", f"lr={lr}")
        for a, lr in ((3, 0.01), (5, 1e-4))
    ]
    assert len({group_key(j, method_of(j.cfg)) for j in jobs}) == 1
    alone, together = trainers(*jobs), trainers(*jobs)
    for run in (*alone, *together):
        run.hooks.finished = stopping.finished
    for run in alone:
        loop.train([run])
    loop.train(together)
    assert alone[0].step < alone[1].step
    for one, other in zip(alone, together, strict=True):
        assert other.done and other.step == one.step
        np.testing.assert_array_equal(one.state["W"], other.state["W"])


def test_a_run_that_fails_leaves_the_group():
    """The others go on as if it had never been there; its error is raised where its hook does not contain it."""
    jobs = [job(f"a={a}") for a in (3, 5, 8)]
    alone, together = trainers(jobs[0], jobs[2]), trainers(*jobs)
    for run in alone:
        loop.train([run])
    together[1].hooks.measure = broken

    @contextlib.contextmanager
    def contained():
        try:
            yield
        except RunFailed:
            together[1].failed = True

    together[1].hooks.contained = contained
    loop.train(together)
    assert together[1].failed and not together[1].done and together[1].step < 40
    for one, other in zip(alone, together[::2], strict=True):
        np.testing.assert_array_equal(one.state["W"], other.state["W"])
    with pytest.raises(RunFailed, match="on purpose"):
        run = trainers(jobs[1])[0]
        run.hooks.measure = broken
        loop.train([run])


def broken(state):
    raise RunFailed("on purpose")


def test_runs_at_different_steps_join_where_they_meet():
    """As after a kill between the checkpoints of a group's runs."""
    jobs = [job(f"a={a}") for a in (3, 5)]
    alone, together = trainers(*jobs), trainers(*jobs)
    for run in alone:
        loop.train([run])
    sizes = []
    ahead = together[1]
    ahead.hooks.finished = lambda run: (
        run.step == 30
    )  # stands in for a run that was saved later than the other
    ahead.cfg = replace(ahead.cfg, log_every=30)
    loop.train([ahead])
    assert ahead.step == 30
    ahead.done, ahead.hooks.finished = False, lambda run: False
    loop.train(together, loop.LoopHooks(begun=lambda group: sizes.append((group[0].step, len(group)))))
    assert sizes == [(0, 1), (30, 2)]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.state["W"], other.state["W"])

"""The step by hand against the composed one, in float64: every composition that it says it covers."""

import copy

import numpy as np
import pytest
import torch
from composing import composed
from mechanisms import every

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.data import build
from sigmapca_cli.methods import method as methods
from sigmapca_cli.methods.numpy_main import NumpyMain, fast_path_applies
from sigmapca_cli.runner import stochastic
from sigmapca_cli.runner.plan import method_of
from sigmapca_cli.training import loop
from sigmapca_cli.training.assess import assess
from sigmapca_cli.training.autograd_step import AutogradStep
from sigmapca_cli.training.fused_step import FusedStep
from sigmapca_cli.training.stacked_step import stacked_step

BASE = ("data=planted", "data.n=2000", "data.p=16", "data.k=4", "data.group=2", "k=4", "dtype=float64")
CASES = [
    (),
    ("optimizer=sgd",),
    ("optimizer.tangent=false",),
    ("recipe=paper",),
    ("nonlinearity.derivative=one",),
    ("nonlinearity=tanh",),
    ("sigma=data",),
    ("sigma=unit",),
    ("a=0.8", "batch_size=30"),
    ("optimizer=sgd", "optimizer.tangent=false", "optimizer.schedule=constant"),
]


def trainer(*overrides, host=True):
    cfg = job_of(composed(*BASE, "steps=60", "log_every=5", "device=cpu", *overrides)).cfg
    source = build(cfg.data)
    method = method_of(cfg) if host else methods.make_method(cfg)
    made = stochastic.make_trainer(cfg, method, source, torch.device("cpu"))
    rows: list[float] = []
    made.hooks.log = lambda step, figures: rows.append(figures["loss"])
    return made, rows


def same(first, second):
    """The state and the convergence of two trainers, of whatever kind."""
    # Rows are float32: centring them first or last differs in the last bits of that.
    for name in ("W", "sigma"):
        np.testing.assert_allclose(first.state[name], second.state[name], rtol=1e-4, atol=1e-6)
    gradients = [assess(t.method, t.state, t.batches.source).gradient for t in (first, second)]
    np.testing.assert_allclose(*gradients, rtol=1e-3, atol=1e-7)
    one, other = (t.method.result(t.state, t.batches.source.covariance()[1]) for t in (first, second))
    for name in ("W", "sigma", "encoder", "decoder"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("overrides", every(map(list, CASES), [[], *map(list, CASES[-2:])]), ids=" ".join)
def test_equals_the_composed_step(overrides):
    fused, fused_loss = trainer(*overrides)
    assert isinstance(fused.method, NumpyMain) and fast_path_applies(fused.cfg)
    loop.train([fused])
    plain, plain_loss = trainer(*overrides, host=False)
    with stacked_step([plain]) as step:
        assert isinstance(step, AutogradStep)
    loop.train([plain])
    same(fused, plain)
    np.testing.assert_allclose(np.array(fused_loss), np.array(plain_loss), rtol=1e-4)


@pytest.mark.parametrize(
    "overrides", [(), ("optimizer=sgd",), ("nonlinearity.derivative=one",)], ids=" ".join
)
def test_runs_side_by_side_equal_runs_alone(overrides):
    knobs = [("a=2", "lr=0.01"), ("a=4", "lr=0.003"), ("a=8", "lr=0.02")]
    alone = [trainer(*overrides, *knob)[0] for knob in knobs]
    state = {n: np.stack([t.state[n] for t in alone]) for n in alone[0].state}
    opt_state = {n: np.stack([t.opt_state[n] for t in alone]) for n in alone[0].opt_state}
    together = FusedStep([t.cfg for t in alone], state, opt_state)
    batches = copy.copy(alone[0].batches)
    batches.centre = True
    losses = []
    for count, batch in zip(range(1, 16), batches.epoch(0), strict=False):
        losses.append(together.advance(batch, count, [0.7] * 3))
    for r, t in enumerate(alone):
        single = FusedStep([t.cfg], t.state, t.opt_state)
        for count, batch in zip(range(1, 16), batches.epoch(0), strict=False):
            loss = single.advance(batch, count, [0.7])
        assert float(losses[-1][r]) == pytest.approx(float(loss), rel=1e-9)
        np.testing.assert_allclose(state["W"][r], t.state["W"], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "overrides",
    every(
        [["model=linear_ae"], ["nonlinearity=hard_tanh"], ["constraint=symmetric"], ["ordering=deflation"]],
        [["ordering=deflation"]],
    ),
    ids=" ".join,
)
def test_leaves_other_compositions_alone(overrides):
    made, _ = trainer(*overrides)
    assert not fast_path_applies(made.cfg) and not isinstance(made.method, NumpyMain)

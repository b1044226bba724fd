"""The step by hand against the composed one, in float64: every composition that it says it covers."""

import copy

import numpy as np
import pytest
import torch

from sigmapca_cli.job import job_of
from sigmapca_cli.methods import method as methods
from sigmapca_cli.sources import build
from sigmapca_cli.training import fit
from sigmapca_cli.training.fused import FusedStep, covers

from .conftest import composed

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


def trainer(*overrides):
    cfg = job_of(composed(*BASE, "steps=60", "log_every=5", *overrides)).cfg
    source = build(cfg.data)
    made = fit.make_trainer(cfg, methods.build(cfg), source, torch.device("cpu"))
    rows: list[np.ndarray] = []
    made.hooks.log = lambda steps, values: rows.append(values["loss"])
    return made, rows


@pytest.mark.parametrize("overrides", CASES, ids=" ".join)
def test_equals_the_composed_step(overrides, monkeypatch):
    fused, fused_loss = trainer(*overrides)
    assert covers(fused.cfg, fused.method)
    fused.run()
    plain, plain_loss = trainer(*overrides)
    monkeypatch.setattr("sigmapca_cli.training.loop.covers", lambda cfg, method: False)
    plain.run()
    # Rows are float32: centring them first or last differs in the last bits of that.
    torch.testing.assert_close(fused.state["W"], plain.state["W"], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(fused.state["sigma"], plain.state["sigma"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.array(fused_loss), np.array(plain_loss), rtol=1e-4)


@pytest.mark.parametrize(
    "overrides", [(), ("optimizer=sgd",), ("nonlinearity.derivative=one",)], ids=" ".join
)
def test_runs_side_by_side_equal_runs_alone(overrides):
    knobs = [("a=2", "lr=0.01"), ("a=4", "lr=0.003"), ("a=8", "lr=0.02")]
    alone = [trainer(*overrides, *knob)[0] for knob in knobs]
    state = {n: torch.stack([t.state[n] for t in alone]) for n in alone[0].state}
    slots = {n: torch.stack([t.slots[n] for t in alone]) for n in alone[0].slots}
    together = FusedStep([t.cfg for t in alone], state, slots)
    batches = copy.copy(alone[0].batches)
    batches.centre = True
    losses = []
    for count, batch in zip(range(1, 16), batches.epoch(0), strict=False):
        losses.append(together.step(*together.taken(batch), count, 0.7))
    for r, t in enumerate(alone):
        single = FusedStep([t.cfg], t.state, t.slots)
        for count, batch in zip(range(1, 16), batches.epoch(0), strict=False):
            loss = single.step(*single.taken(batch), count, 0.7)
        assert float(losses[-1][r]) == pytest.approx(float(loss), rel=1e-9)
        torch.testing.assert_close(state["W"][r], t.state["W"], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "overrides",
    [("model=linear_ae",), ("nonlinearity=hard_tanh",), ("constraint=symmetric",), ("ordering=deflation",)],
    ids=" ".join,
)
def test_leaves_other_compositions_alone(overrides):
    made, _ = trainer(*overrides)
    assert not covers(made.cfg, made.method)

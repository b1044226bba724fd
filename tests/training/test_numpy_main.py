"""The main method without torch: when it is taken, and that its checkpoints are those of the method with torch."""

import dataclasses
import itertools

import numpy as np
import pytest
from composing import composed
from mechanisms import every

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.methods import method as methods
from sigmapca_cli.methods.numpy_main import (
    NONLINEARITIES,
    REQUIRED,
    SIGMAS,
    NumpyMain,
    fast_path_applies,
    known,
    settings,
)
from sigmapca_cli.runner import plan
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system import processes

DATA = ("data=planted", "data.n=4000", "data.p=16", "data.k=4", "data.group=2", "k=4", "steps=300")


@pytest.mark.parametrize(
    "nonlinearity, sigma",
    every(itertools.product(NONLINEARITIES, SIGMAS), list(zip(NONLINEARITIES, SIGMAS, strict=False))),
)
def test_what_is_covered_is_what_the_catalogue_would_build(nonlinearity, sigma):
    cfg = job_of(composed(*DATA, f"nonlinearity={nonlinearity}", f"sigma={sigma}", "device=cpu")).cfg
    method = methods.make_method(cfg)
    assert fast_path_applies(cfg) and method.closed and method.trained == "W"
    ours = plan.method_of(cfg)
    assert isinstance(ours, NumpyMain) and ours.parameters == method.parameters == method.tangent_parameters


@pytest.mark.parametrize(
    "overrides",
    [
        ("a=auto", "solver.a_from=sign"),
        ("sigma=batch",),
        ("sigma=trainable",),
        ("model=lica",),
        ("regularisers={symmetric: 0.1}",),
    ],
)
def test_the_rest_is_left_to_the_catalogue(overrides):
    assert not fast_path_applies(job_of(composed(*DATA, *overrides)).cfg)


def test_every_setting_of_the_schema_is_known_to_the_fast_path():
    """A new setting belongs into one of the three lists: until then no run takes the fast path."""
    cfg = job_of(composed(*DATA)).cfg
    assert [key for key, _ in settings(cfg) if key not in REQUIRED and not known(key)] == []


@pytest.mark.parametrize("value", [0.0, 5.0])
@pytest.mark.parametrize("group", [None, "optimizer", "sigma", "nonlinearity", "model"])
def test_a_setting_that_the_fast_path_has_never_heard_of_is_refused(group, value):
    """Whatever its value: at its default, too, only the composed step can know what it means."""
    cfg = job_of(composed(*DATA)).cfg
    assert fast_path_applies(cfg)
    if group is None:
        other = with_field(cfg, "weight_decay", value)
    else:
        other = dataclasses.replace(cfg, **{group: with_field(getattr(cfg, group), "weight_decay", value)})
    assert not fast_path_applies(other)


def with_field(record, name, value):
    """The same record with one more field."""
    given = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    wider = dataclasses.make_dataclass("Wider", [(name, float, value)], bases=(type(record),))
    return wider(**given)


def test_automatic_device_asks_torch_where_there_may_be_a_gpu(monkeypatch):
    cfg = job_of(composed(*DATA)).cfg
    for gpu in (True, False):
        monkeypatch.setattr(plan, "may_have_gpu", lambda gpu=gpu: gpu)
        assert plan.needs_torch(cfg) is gpu
    monkeypatch.setattr(plan, "may_have_gpu", lambda: True)
    assert not plan.needs_torch(job_of(composed(*DATA, "device=cpu")).cfg)
    assert plan.needs_torch(job_of(composed(*DATA, "device=cuda")).cfg)


@pytest.mark.parametrize(
    "nodes, expected", [(["null", "nvme0"], False), (["nvidiactl"], True), (["dxg"], True)]
)
def test_a_gpu_shows_in_its_device_node(nodes, expected, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.listdir", lambda folder: nodes)
    assert processes.may_have_gpu() is expected
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert processes.may_have_gpu() is False


def test_with_and_without_torch_the_same_run(train, monkeypatch):
    """Where device=auto looks for a GPU and finds none."""
    alone = train(*DATA, "device=cpu")
    monkeypatch.setattr(plan, "may_have_gpu", lambda: True)
    asked = train(*DATA)
    assert isinstance(asked, StoredRun)
    np.testing.assert_array_equal(asked.filters, alone.filters)
    np.testing.assert_array_equal(asked.metrics["loss"], alone.metrics["loss"])


@pytest.mark.parametrize("precision", every(["highest", "high", "medium"], ["medium"]))
def test_precision_is_what_torch_multiplies_with_during_the_run(train, precision, monkeypatch):
    import torch

    seen, setting = [], torch.set_float32_matmul_precision
    monkeypatch.setattr(
        torch, "set_float32_matmul_precision", lambda word: (seen.append(word), setting(word))
    )
    train(*DATA, "sigma=batch", "steps=5", f"precision={precision}")  # a run that torch computes
    assert seen[0] == precision and torch.get_float32_matmul_precision() == "highest"

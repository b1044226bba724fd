"""Steps in compiled loops: the arithmetic of NumPy's steps to rounding, and when they are taken.

Almost all is in float64: compiling for one more type takes seconds where numba's cache is empty.
"""

import contextlib
import sys

import numpy as np
import pytest
import torch
from composing import composed

from sigmapca_cli.cli.rerun import rerun
from sigmapca_cli.errors import InputError, Stopped
from sigmapca_cli.job import job_of
from sigmapca_cli.methods import method as methods
from sigmapca_cli.runner import checkpoints, choose, stochastic
from sigmapca_cli.runs.read import Run
from sigmapca_cli.sources import build
from sigmapca_cli.training import compiled_step, loop
from sigmapca_cli.training.compiled_step import CompiledStep, is_installed
from sigmapca_cli.training.fused_step import FusedStep
from sigmapca_cli.training.stacked_step import ThreadedStep, stacked_step

pytestmark = pytest.mark.skipif(not is_installed(), reason="skipped: numba is not installed")

# 2,000 rows in batches of 128: the last batch of an epoch has 80.
BASE = ("data=planted", "data.n=2000", "data.p=16", "data.k=4", "data.group=2", "device=cpu", "threads=1")
CASES = [
    (),
    ("optimizer=sgd",),
    ("optimizer.tangent=false",),
    ("optimizer=sgd", "optimizer.tangent=false", "optimizer.schedule=constant"),
    ("recipe=paper",),
    ("nonlinearity.derivative=one",),
    ("nonlinearity=tanh",),
    ("sigma=data",),
    ("sigma=unit",),
    ("sigma.relative=true", "rescale=true"),
    ("a=0.8", "batch_size=30"),
    ("k=1",),
    ("k=7",),
]


def trainer(*overrides, backend="numba", tensors=False):
    """A trainer in float64 with k = 4, unless the overrides say otherwise, and the losses that it logs."""
    settings = {"k": "4", "dtype": "float64", "steps": "200", "log_every": "5"}
    given = {override.partition("=")[0] for override in overrides}
    defaults = [f"{key}={value}" for key, value in settings.items() if key not in given]
    cfg = job_of(composed(*BASE, *defaults, *overrides)).cfg
    source = build(cfg.data)
    method = methods.build(cfg) if tensors else choose.method_of(cfg)
    made = stochastic.make_trainer(cfg, method, source, torch.device("cpu"))
    made.backend = backend
    rows: list[float] = []
    made.hooks.log = lambda step, figures: rows.append(figures["loss"])
    return made, rows


def trained(*overrides, **given):
    """A trainer at its last step, and its losses."""
    made, rows = trainer(*overrides, **given)
    loop.train([made])
    return made, np.array(rows)


def difference(one, other):
    """The largest difference of two trainers' state and optimizer state, relative to the largest entry of each."""
    pairs = [
        (a[name], b[name])
        for a, b in ((one.state, other.state), (one.opt_state, other.opt_state))
        for name in a
    ]
    values = [(np.asarray(x), np.asarray(y)) for x, y in pairs]
    return max(float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30)) for x, y in values)


@pytest.mark.parametrize("overrides", CASES, ids=" ".join)
def test_equals_the_step_of_numpy(overrides):
    compiled, loss = trained(*overrides)
    plain, plain_loss = trained(*overrides, backend="numpy")
    assert difference(compiled, plain) < 1e-7
    np.testing.assert_allclose(loss, plain_loss, rtol=1e-9)
    with stacked_step([compiled]) as one, stacked_step([plain]) as other:
        assert isinstance(one, CompiledStep) and isinstance(other, FusedStep)


def test_equals_it_in_single_precision():
    compiled, loss = trained("dtype=float32")
    plain, plain_loss = trained("dtype=float32", backend="numpy")
    assert compiled.state["W"].dtype == np.float32 and difference(compiled, plain) < 1e-3
    np.testing.assert_allclose(loss, plain_loss, rtol=1e-4)


def test_steps_tensors_on_a_cpu_with_the_same_bits():
    """As where device=auto looked for a GPU and found none."""
    arrays, loss = trained()
    tensors, same_loss = trained(tensors=True)
    assert isinstance(tensors.state["W"], torch.Tensor) and difference(tensors, arrays) == 0
    np.testing.assert_array_equal(loss, same_loss)


def test_runs_of_a_group_have_the_bits_of_runs_alone(monkeypatch):
    """Also where the group is spread over cores."""
    knobs = [(f"a={a}", f"lr={lr}", "k=3", "steps=60") for a in (2, 4, 8) for lr in (0.01, 0.003)]
    alone = [trained(*knob)[0] for knob in knobs]
    for cores, kind in (("1", CompiledStep), ("2", ThreadedStep)):
        monkeypatch.setenv("OMP_NUM_THREADS", cores)
        together = [trainer(*knob)[0] for knob in knobs]
        with stacked_step(together) as step:
            assert isinstance(step, kind)
        loop.train(together)
        assert [difference(a, b) for a, b in zip(together, alone, strict=True)] == [0] * len(knobs)


def test_runs_of_two_backends_train_apart():
    """As after a sweep was interrupted, and some of its runs were begun again."""
    knobs = [("a=2", "numba"), ("a=3", "numpy"), ("a=4", "numba")]
    alone = [trained(a, "steps=40", backend=backend)[0] for a, backend in knobs]
    together = [trainer(a, "steps=40", backend=backend)[0] for a, backend in knobs]
    sizes = []
    loop.train(together, loop.LoopHooks(begun=lambda group: sizes.append(len(group))))
    assert sizes == [2, 1]
    assert [difference(a, b) for a, b in zip(together, alone, strict=True)] == [0, 0, 0]


def test_shards_of_a_batch_are_stepped_by_numpy():
    """A rank needs the sums over the other ranks between the loops."""

    class Alone:
        def average_(self, shard_mean):
            pass

        def combine(self, loss, gradients):
            return loss, gradients

    with stacked_step([trainer()[0]], reducer=Alone()) as step:
        assert isinstance(step, FusedStep)


# Whole runs: which step they take, and that they keep it.

RUN = (*BASE, "k=4", "dtype=float64", "steps=60", "log_every=10", "checkpoint.every_steps=25")


@pytest.fixture
def stopped(train, tmp_path, monkeypatch):
    """Train until the first checkpoint, and return the overrides that resume the run."""

    def call(name, *overrides):
        save = checkpoints.Saver.save

        def once(self, trainer, **given):
            save(self, trainer, **given)
            raise Stopped("here", exit_status=75)

        place = (*RUN, *overrides, f"run_dir={tmp_path / name}")
        with monkeypatch.context() as patch, pytest.raises(Stopped):
            patch.setattr(checkpoints.Saver, "save", once)
            train(*place)
        return (*place, "if_exists=resume")

    return call


@contextlib.contextmanager
def without_numba(monkeypatch):
    """Let every import of numba fail, as where it is not installed."""
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "numba", None)
        yield


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_a_resumed_run_has_the_bits_of_the_uninterrupted_one(backend, train, stopped, monkeypatch):
    """It keeps the step with which it began, even if a run that begins now would take the other one."""
    whole = train(*RUN, f"backend={backend}")
    resuming = stopped("resumed", f"backend={backend}")
    monkeypatch.setattr(compiled_step, "LEAST_GAIN", 0.0 if backend == "numpy" else 1e9)
    again = train(*[word for word in resuming if not word.startswith("backend=")])
    assert again.attrs["backend"] == whole.attrs["backend"] == backend
    for name in ("filters", "sigma"):
        np.testing.assert_array_equal(again.array(name), whole.array(name))
    np.testing.assert_array_equal(again.metrics["loss"], whole.metrics["loss"])
    other = train(*RUN, f"backend={'numpy' if backend == 'numba' else 'numba'}")
    assert other.attrs["config_hash"] == whole.attrs["config_hash"]
    assert not np.array_equal(other.filters, whole.filters), "both steps round alike: nothing is tested"
    np.testing.assert_allclose(other.filters, whole.filters, atol=1e-7)


def test_a_rerun_takes_the_step_of_the_run(train, tmp_path, capsys):
    for backend in ("numba", "numpy"):
        folder = train(*RUN, f"backend={backend}").folder
        rerun(str(folder), [f"outputs={tmp_path / 'again'}"])
        assert "identical, bit for bit" in capsys.readouterr().out


def test_long_runs_alone_take_it():
    def chosen(*overrides, before=None, device="cpu"):
        cfg = job_of(composed(*BASE, "k=4", *overrides)).cfg
        return choose.backend_of(cfg, device, build(cfg.data), before)

    assert chosen("steps=1000") == "numpy" and chosen("steps=1000000") == "numba"
    assert chosen("epochs=3", "steps=null") == "numpy" and chosen("epochs=20000", "steps=null") == "numba"
    assert chosen("steps=1000", "backend=numba") == "numba"
    assert chosen("steps=1000000", "backend=numpy") == "numpy"
    # A run of before this version, and one whose file is damaged.
    assert chosen("steps=1000000", before={"threads": 1}) == "numpy"
    assert chosen("steps=1000000", before={}) == "numba"
    for other in ({"device": "cuda"}, {"model": "lica"}, {"solver": "newton"}):
        device = other.pop("device", "cpu")
        words = [f"{key}={value}" for key, value in other.items()]
        assert chosen("steps=1000000", *words, device=device) == ""
        with pytest.raises(InputError, match="backend=numba: makes the steps of"):
            chosen("backend=numba", *words, device=device)


def test_without_numba_numpy_makes_the_steps(train, stopped, monkeypatch, caplog):
    plain = train(*RUN)
    resuming = stopped("begun", "backend=numba")
    with without_numba(monkeypatch):
        monkeypatch.setattr(compiled_step, "LEAST_GAIN", 0.0)
        assert train(*RUN).attrs["backend"] == "numpy"
        with pytest.raises(InputError, match="numba is not installed; pip install numba"):
            train(*RUN, "backend=numba")
        run = train(*resuming)
        assert "began with numba, which is not installed here" in caplog.text
        assert run.attrs["backend"] == "numpy" and run.status == "finished"
        np.testing.assert_allclose(run.filters, plain.filters, atol=1e-7)


def test_a_rerun_without_numba_says_why_it_differs(train, monkeypatch, tmp_path, capsys):
    from sigmapca_cli.errors import RunFailed

    folder = train(*RUN, "backend=numba").folder
    with without_numba(monkeypatch), pytest.raises(RunFailed, match="not identical"):
        rerun(str(folder), [f"outputs={tmp_path / 'again'}"])
    printed = capsys.readouterr().out
    assert "numba, which is not installed here" in printed and "backend: numba then" in printed


def test_numba_that_cannot_compile_is_replaced(train, monkeypatch, caplog):
    import numba

    compiled_step._load.cache_clear()
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    run = train(*RUN, "backend=numba")
    compiled_step._load.cache_clear()
    assert "NumPy makes the steps: NUMBA_DISABLE_JIT is set" in caplog.text
    assert run.attrs["backend"] == "numpy" and run.attrs["numba_version"] == ""
    assert Run.open(run.folder).filters.tobytes() == train(*RUN, "backend=numpy").filters.tobytes()

"""The step of the main method with compiled loops: the arithmetic of `fused_step`, in the layout that BLAS prefers.

NumPy starts some 40 operations in a step, and each reads and writes its arrays again. Here NumPy makes the four matrix
products and the tanh, and three compiled functions (`kernels`) do the rest in one or two passes. No operation needs the
scale of a component as a contiguous row. So the components are columns, W (p, k) and y (b, k): for the default size the
products are faster so with all kernels of OpenBLAS that were measured (docs/performance.md).

numba, which compiles, is an extra of the installation. Loading it takes half a second and 150 MB, so only long runs
use it. The rounding differs from that of `fused_step`; a run keeps the step with which it began.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from sigmapca_cli.config import Config
from sigmapca_cli.training.arrays import Array, contiguous, is_numpy
from sigmapca_cli.training.batches import Batch
from sigmapca_cli.training.optimizers import STATE_NAMES
from sigmapca_cli.training.protocols import State

log = logging.getLogger("sigmapca")

LANES = 128  # fewest numbers of a piece: `kernels`
LEAST_GAIN = (
    2.0  # seconds that a run has to save: numba takes half a second and 150 MB, and compiling once six
)
GAIN, GAIN_PER_WEIGHT = 15e-6, 3.5e-9  # seconds that a step saves, and more for each of p·k weights

loading = threading.Lock()


def is_installed() -> bool:
    """Return whether numba is installed; nothing is imported."""
    return importlib.util.find_spec("numba") is not None


def is_worth_loading(steps: int, p: int, k: int) -> bool:
    """Return whether so many steps on W (p, k) save more time than numba takes to load.

    It depends on the configuration and the shape of the data only: the same command always takes the same step.
    """
    return steps * (GAIN + GAIN_PER_WEIGHT * p * k) >= LEAST_GAIN


def load(dtype: str, optimizer: str) -> Any | None:
    """Return the module `kernels`, compiled for this type, or None where that is not possible; a warning says why.

    The compiled functions are read from numba's cache. If they are not there, they are compiled, which takes seconds.
    """
    with loading:
        return _load(dtype, optimizer)


@functools.cache
def _load(dtype: str, optimizer: str) -> Any | None:
    try:
        if importlib.import_module("numba").config.DISABLE_JIT:
            raise RuntimeError("NUMBA_DISABLE_JIT is set")
        kernels = importlib.import_module("sigmapca_cli.training.kernels")
        call_each(kernels, optimizer, np.dtype(dtype).type)
    except Exception as problem:  # of the compiler, its cache folder, its version of NumPy …
        reason = " ".join(str(problem).split())[:120] or type(problem).__name__
        hint = "; set NUMBA_CACHE_DIR to a folder that can be written" if "cache" in reason else ""
        log.warning("numba cannot compile here, NumPy makes the steps: %s%s", reason, hint)
        return None
    return kernels


def call_each(kernels: Any, optimizer: str, kind: type[np.floating[Any]]) -> None:
    """Compile the functions of a step by calling them on one row of one feature."""
    one, lanes = np.ones((1, 1, 1), kind), np.ones((3, LANES), kind)
    column, columns = np.ones((1, 1), kind), np.ones((6, 1, 1), kind)
    kernels.activate(one, one.copy(), one.copy(), column, column.copy(), columns, lanes, True)
    kernels.differentiate(one, one, one.copy(), columns, lanes, np.ones(1, kind), np.ones(2, kind), False)
    if optimizer == "adam":
        kernels.adam(one, one, one.copy(), one.copy(), columns, lanes, np.ones((1, 6), kind), True)
    else:
        kernels.momentum(one, one, one.copy(), columns, lanes, np.ones((1, 2), kind), True)


class CompiledStep:
    """Steps of R runs on the same batches; see `FusedStep`, whose equations and whose state these are.

    Replaces the arrays in `state` and `opt_state` by contiguous ones, of which it keeps views.
    """

    wants_centred = True
    uses_numpy = True

    def __init__(self, cfgs: Sequence[Config], state: State, opt_state: State, kernels: Any) -> None:
        self.cfg, self.runs, self.kernels = cfgs[0], len(cfgs), kernels
        self.W = self.stacked(state, "W")
        self.p, self.k = self.W.shape[1:]
        self.kind = self.W.dtype.type
        self.ema = self.cfg.sigma.name == "ema"
        self.sigma = self.column(state, "sigma")
        self.variance = self.column(state, "variance") if self.ema else self.sigma
        self.columns = self.columns_of(cfgs)
        self.one = self.cfg.nonlinearity.derivative == "one"
        self.g = np.zeros_like(self.W)
        self.gram = np.zeros((self.runs, self.k, self.k), self.kind)
        self.lanes = np.zeros((3, self.k * -(-LANES // self.k)), self.kind)
        self.loss = np.zeros(self.runs, self.kind)
        self.buffers: dict[int, tuple[np.ndarray, ...]] = {}
        self.is_adam = self.cfg.optimizer.name == "adam"
        self.slots = [self.stacked(opt_state, f"{n}.W") for n in STATE_NAMES[self.cfg.optimizer.name]]
        self.rates = [float(cfg.lr) for cfg in cfgs]
        self.numbers = self.numbers_of(cfgs)

    def stacked(self, store: State, name: str) -> np.ndarray:
        """Return (p, k) or (R, p, k) as contiguous (R, p, k), sharing memory with the store."""
        value = self.shared(store, name)
        return value.reshape(self.runs, *value.shape[-2:])

    def column(self, store: State, name: str) -> np.ndarray:
        """Return (k,) or (R, k) as contiguous (R, k), sharing memory with the store."""
        return self.shared(store, name).reshape(self.runs, self.k)

    @staticmethod
    def shared(store: State, name: str) -> np.ndarray:
        """Make an array of the store contiguous, and return it as one of NumPy's with the same memory."""
        store[name] = contiguous(store[name])
        value: np.ndarray = store[name] if is_numpy(store[name]) else store[name].numpy()
        return value

    def columns_of(self, cfgs: Sequence[Config]) -> np.ndarray:
        """Return the numbers of the runs as columns (6, R, k); see `kernels.activate`."""
        rows = []
        for cfg in cfgs:
            a = 1.0 if cfg.nonlinearity.name == "tanh" else float(cfg.nonlinearity.a)
            rows.append([a, 1 - cfg.sigma.momentum, *cfg.sigma.grown, 0.0, 0.0])
        with np.errstate(over="ignore"):
            columns = np.array(rows).T[:, :, None].astype(self.kind)
        return np.repeat(columns, self.k, axis=2)

    def numbers_of(self, cfgs: Sequence[Config]) -> np.ndarray:
        """Return the numbers of the optimizer of each run; the last are set at each step. See `kernels`."""
        own = self.cfg.optimizer
        if not self.is_adam:
            return np.array([[cfg.optimizer.momentum, 0] for cfg in cfgs], self.kind)
        row = [own.beta1, 1 - own.beta1, own.beta2, 1 - own.beta2, 0, 0]
        return np.array([row] * self.runs, self.kind)

    def buffer(self, b: int) -> tuple[np.ndarray, ...]:
        """Return y, t, G (R, b, k) and (2/b, 1/b) for batches of b rows."""
        if b not in self.buffers:
            arrays = (np.zeros((self.runs, b, self.k), self.kind) for _ in range(3))
            self.buffers[b] = (*arrays, np.array([2 / b, 1 / b], self.kind))
        return self.buffers[b]

    def advance(self, batch: Batch, count: int, factors: Sequence[float]) -> Array:
        """Make one step of every run; see `protocols.Step`."""
        x = batch.x if batch.x.dtype == self.kind else batch.x.astype(self.kind)
        y, t, G, scales = self.buffer(len(x))
        W, kernels, columns, lanes = self.W, self.kernels, self.columns, self.lanes
        np.matmul(x, W, out=y)
        np.matmul(W.swapaxes(1, 2), W, out=self.gram)
        kernels.activate(y, t, self.gram, self.variance, self.sigma, columns, lanes, self.ema)
        np.tanh(t, out=t)
        np.matmul(t, self.gram, out=G)
        kernels.differentiate(y, t, G, columns, lanes, self.loss, scales, self.one)
        np.matmul(x.T, G, out=self.g)
        self.set_rates(count, factors)
        optimizer = kernels.adam if self.is_adam else kernels.momentum
        optimizer(W, self.g, *self.slots, columns, lanes, self.numbers, self.cfg.optimizer.tangent)
        return batch.power + self.loss if self.runs > 1 else batch.power + self.loss[0]

    def set_rates(self, count: int, factors: Sequence[float]) -> None:
        """Set the rates of step number `count`, from 1, rounded once."""
        scale, own, numbers = 1.0, self.cfg.optimizer, self.numbers
        if self.is_adam:
            root = (1 - own.beta2**count) ** 0.5
            scale = root / (1 - own.beta1**count)
            numbers[:, 4] = own.epsilon * root
        for r, (rate, factor) in enumerate(zip(self.rates, factors, strict=True)):
            numbers[r, -1] = rate * factor * scale

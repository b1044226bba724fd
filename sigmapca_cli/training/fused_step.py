"""The step of the main method by hand: gradient, tangent projection, optimizer and unit norm in reused buffers.

It computes what `Method.gradient`, `optimizers` and `constraints.unit_norm` compute, for the composition that runs
for hours: the main loss with a tanh, σ by EMA or constant, unit norm, Adam or SGD. R runs on the same batches are
stacked as the rows of one (R·k, p) matrix, so that a sweep starts as many operations as one run does; only
products are made run by run, which gives each run the bits that it has alone.

The arrays are NumPy's on a CPU and torch's on a GPU: the functions used here have the same names in both. At these
sizes the time goes into starting operations, and NumPy starts one in a third of torch's time. Components are rows: what
is scaled by one number a component is then contiguous, and a reduction is a product with a column of constants.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sigmapca_cli.config import Config
from sigmapca_cli.training.arrays import Array, contiguous, is_numpy
from sigmapca_cli.training.batches import Batch
from sigmapca_cli.training.fused_optimizers import FusedOptimizer, fused_optimizer
from sigmapca_cli.training.protocols import Reducer, State


class FusedStep:
    """Steps of R runs on the same batches.

    Replaces the arrays in `state` and `opt_state` by views into its own buffers, so that they follow every step.
    `uses_numpy`: compute with NumPy; tensors on a CPU are then seen as arrays of the same memory. `reducer`: averages
    over the ranks that hold shards of a batch; None where this process holds whole batches.
    """

    wants_centred = True

    def __init__(
        self,
        cfgs: Sequence[Config],
        state: State,
        opt_state: State,
        *,
        uses_numpy: bool | None = None,
        reducer: Reducer | None = None,
    ) -> None:
        cfg, W = cfgs[0], state["W"]
        self.cfg, self.runs, self.reducer = cfg, len(cfgs), reducer
        self.p, self.k = W.shape[-2:]
        self.uses_numpy = (is_numpy(W) or W.device.type == "cpu") if uses_numpy is None else uses_numpy
        self.xp: Any = np
        if not self.uses_numpy:
            import torch

            self.xp = torch
        self.W = self.as_rows(state, "W")
        self.g, self.tmp = (self.xp.zeros_like(self.W) for _ in range(2))
        self.variance = self.column(state, "variance" if cfg.sigma.name == "ema" else "sigma")
        self.sigma = self.column(state, "sigma")
        self.numbers(cfgs)
        self.one = cfg.nonlinearity.derivative == "one"
        self.buffers: dict[int, dict[str, Array]] = {}
        self.ones_p = self.full(1, self.p, 1)
        self.gram = self.full(0, *((self.runs, self.k, self.k) if self.runs > 1 else (self.k, self.k)))
        self.norm = self.full(0, len(self.W), 1)
        self.optimizer: FusedOptimizer = fused_optimizer(cfgs, self, opt_state)

    def numbers(self, cfgs: Sequence[Config]) -> None:
        """Set what may differ between the runs, as numbers or columns."""
        names = [c.nonlinearity.name for c in cfgs]
        self.a = self.number(
            [1.0 if n == "tanh" else c.nonlinearity.a for n, c in zip(names, cfgs, strict=True)]
        )
        grown = [c.sigma.grown for c in cfgs]
        self.relative = self.cfg.sigma.relative
        self.growth, self.epsilon = (self.number(values) for values in zip(*grown, strict=True))
        self.forget = self.number([1 - c.sigma.momentum for c in cfgs])

    def array(self, value: Array) -> Array:
        """Return the same memory as an array of the kind that is computed with."""
        return value.numpy() if self.uses_numpy and not is_numpy(value) else value

    def full(self, value: float, *shape: int) -> Array:
        """Return a new array of this value."""
        if self.uses_numpy:
            with np.errstate(over="ignore"):
                return np.full(shape, value, self.W.dtype)
        return self.W.new_full(shape, value)

    def as_rows(self, store: State, name: str) -> Array:
        """Return (p, k) or (R, p, k) as one contiguous (R·k, p); the store keeps a view of it in its own shape."""
        rows = contiguous(store[name].swapaxes(-1, -2))
        store[name] = rows.swapaxes(-1, -2)
        return self.array(rows.reshape(-1, self.p))

    def column(self, store: State, name: str) -> Array:
        """Return (R, k) as one column (R·k, 1), sharing memory."""
        store[name] = contiguous(store[name])
        return self.array(store[name].reshape(-1, 1))

    def number(self, values: Sequence[float]) -> Array:
        """Return () where all runs agree, else one number for each component, (R·k, 1).

        Made once: a Python number costs more to convert than the operation itself.
        """
        if len(set(values)) == 1:
            return self.full(float(values[0]))
        return self.xp.concatenate([self.full(float(v), self.k, 1) for v in values])

    def buffer(self, b: int) -> dict[str, Array]:
        """Return the buffers for batches of b rows."""
        if b not in self.buffers:
            made = {n: self.full(0, len(self.W), b) for n in ("y", "t", "h", "G", "q")}
            made |= {n: self.full(0, len(self.W), 1) for n in ("r", "s")}
            made |= {n: self.full(0, self.runs, 1, 1) for n in ("hG", "hy")}
            made |= {"mean": self.full(1 / b, b, 1), "sum": self.full(1, b, 1)}
            self.buffers[b] = made | {"1/b": self.full(1 / b), "2/b": self.full(2 / b)}
        return self.buffers[b]

    def to_device(self, batch: Batch) -> tuple[Array, Array]:
        """Return rows and power of a batch as `step` takes them."""
        if self.uses_numpy:
            x = batch.x if batch.x.dtype == self.W.dtype else batch.x.astype(self.W.dtype)
            return x, batch.power
        from_numpy, as_tensor = self.xp.from_numpy, self.xp.as_tensor
        return from_numpy(batch.x).to(self.W), as_tensor(batch.power).to(self.W)

    def step(self, x: Array, power: Array, count: int, factor: float | Sequence[float]) -> Array:
        """Make one step on centred rows x (b, p) of mean square `power`, (). Return the loss of each run, (R,) or ().

        σ = √(EMA var + ε), t = tanh(y/(aσ)), ŷ = aσt, G = 2/b·(ŷWᵀW − y) ⊙ h′; the gradient is xᵀG. `factor`
        multiplies the learning rate: one number, or one for each run. W, y and G are kept transposed.
        """
        xp, f = self.xp, self.buffer(x.shape[0])
        y, t, h, G, q = f["y"], f["t"], f["h"], f["G"], f["q"]
        r, s = f["r"], f["s"]
        self.product(self.W, x.T, y)
        if self.cfg.sigma.name == "ema":
            xp.multiply(y, y, out=q)
            self.product(q, f["mean"], r)
            if self.reducer is not None:
                self.reducer.average_(r)
            self.update_ema(r)
        xp.multiply(self.sigma, self.a, out=s)
        xp.divide(y, s, out=t)
        xp.tanh(t, out=t)
        xp.multiply(t, s, out=h)
        self.times_gram(h, G)
        xp.subtract(G, y, out=G)
        loss = power + self.loss_terms(h, G, y, f)
        if not self.one:
            xp.multiply(t, t, out=t)
            xp.multiply(t, G, out=t)
            xp.subtract(G, t, out=G)
        xp.multiply(G, f["2/b"], out=G)
        self.product(G, x, self.g)
        if self.cfg.optimizer.tangent:
            # wᵀg of a component is yᵀG: a product over (k, b) in place of one over (k, p).
            xp.multiply(y, G, out=q)
            self.product(q, f["sum"], r)
            xp.multiply(self.W, r, out=self.tmp)
            xp.subtract(self.g, self.tmp, out=self.g)
        if self.reducer is not None:
            # The projection is linear in the gradient, so that the ranks' projected gradients may be summed.
            loss, whole = self.reducer.combine(loss, {"W": self.g})
            self.g[...] = whole["W"]
        self.optimizer.step(count, factor)
        self.unit_norm()
        return loss

    def advance(self, batch: Batch, count: int, factors: Sequence[float]) -> Array:
        """Make one step of every run; see `Step`."""
        return self.step(*self.to_device(batch), count, factors)

    def unit_norm(self) -> None:
        """Set w_j ← w_j/‖w_j‖. A filter that is zero becomes NaN, which `Trainer.check` reports."""
        xp, norm = self.xp, self.norm
        xp.multiply(self.W, self.W, out=self.tmp)
        self.product(self.tmp, self.ones_p, norm)
        xp.sqrt(norm, out=norm)
        xp.divide(self.W, norm, out=self.W)

    def update_ema(self, r: Array) -> None:
        """Update the EMA of the variance by the batch's, r (R·k, 1), and σ = √(EMA + ε), or √(EMA(1 + ε))."""
        xp = self.xp
        xp.subtract(r, self.variance, out=r)
        xp.multiply(r, self.forget, out=r)
        xp.add(self.variance, r, out=self.variance)
        if self.relative:
            xp.multiply(self.variance, self.growth, out=self.sigma)
            xp.add(self.sigma, self.epsilon, out=self.sigma)
        else:
            xp.add(self.variance, self.epsilon, out=self.sigma)
        xp.sqrt(self.sigma, out=self.sigma)

    def product(self, left: Array, right: Array, out: Array) -> None:
        """Write left·right into out, run by run: a product of more rows may end in other last bits."""
        if self.runs > 1:
            left, out = self.by_run(left), self.by_run(out)
        self.xp.matmul(left, right, out=out)

    def times_gram(self, h: Array, G: Array) -> None:
        """Set Gᵀ = ŷWᵀW, each run with its own Gram matrix (k, k)."""
        xp = self.xp
        if self.runs == 1:
            xp.matmul(self.W, self.W.T, out=self.gram)
            xp.matmul(self.gram, h, out=G)
            return
        W, h, G = (self.by_run(v) for v in (self.W, h, G))
        xp.matmul(W, W.swapaxes(1, 2), out=self.gram)
        xp.matmul(self.gram, h, out=G)

    def by_run(self, rows: Array) -> Array:
        """Return (R·k, m) as (R, k, m), the same memory."""
        return rows.reshape(self.runs, self.k, -1)

    def loss_terms(self, h: Array, d: Array, y: Array, f: dict[str, Array]) -> Array:
        """Return E⟨ŷWᵀW, ŷ⟩ − 2E⟨ŷ, y⟩ of each run, () or (R,), from d = ŷWᵀW − y: ⟨ŷ, d⟩ − ⟨ŷ, y⟩."""
        xp = self.xp
        h = h.reshape(self.runs, 1, -1)
        xp.matmul(h, d.reshape(self.runs, -1, 1), out=f["hG"])
        xp.matmul(h, y.reshape(self.runs, -1, 1), out=f["hy"])
        each = ((f["hG"] - f["hy"]) * f["1/b"]).reshape(-1)
        return each if self.runs > 1 else each[0]

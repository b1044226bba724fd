"""The step of the main method by hand: gradient, tangent projection, optimizer and unit norm in reused buffers.

It computes what `Method.gradient`, `optimizers` and `constraints.unit_norm` compute, for the composition that runs
for hours: the main loss with a tanh, σ by EMA or constant, unit norm, Adam or SGD. R runs on the same batches are
stacked as the rows of one (R·k, p) matrix, so that a sweep starts as many operations as one run does; only
products are made run by run, which gives each run the bits that it has alone.

At these sizes the time goes into starting operations, and NumPy starts one in a third of torch's time. Components are
rows: what is scaled by one number a component is then contiguous, and a reduction is a product with a column of
constants.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sigmapca_cli.settings.schema import Config
from sigmapca_cli.training.arrays import as_rows
from sigmapca_cli.training.batches import Batch
from sigmapca_cli.training.optimizers import STATE_NAMES
from sigmapca_cli.training.protocols import State


class FusedStep:
    """Steps of R runs on the same batches.

    Replaces the arrays in `state` and `opt_state` by views into its own buffers, so that they follow every step.
    """

    wants_centred = True

    def __init__(self, cfgs: Sequence[Config], state: State, opt_state: State) -> None:
        cfg = cfgs[0]
        self.cfg, self.runs, self.rates = cfg, len(cfgs), [float(c.lr) for c in cfgs]
        self.p, self.k = state["W"].shape[-2:]
        self.W = as_rows(state, "W")
        self.g, self.tmp = (np.zeros_like(self.W) for _ in range(2))
        self.variance = self.column(state, "variance" if cfg.sigma.name == "ema" else "sigma")
        self.sigma = self.column(state, "sigma")
        self.numbers(cfgs, state)
        self.one = cfg.nonlinearity.derivative == "one"
        self.buffers: dict[int, dict[str, np.ndarray]] = {}
        self.ones_p = self.full(1, self.p, 1)
        self.gram = self.full(0, *((self.runs, self.k, self.k) if self.runs > 1 else (self.k, self.k)))
        self.norm = self.full(0, len(self.W), 1)
        kind = FusedAdam if cfg.optimizer.name == "adam" else FusedSGD
        self.optimizer = kind(cfgs, self, opt_state)

    def numbers(self, cfgs: Sequence[Config], state: State) -> None:
        """Set what may differ between the runs, as numbers or columns."""
        if "a" in state:
            self.a = self.column(state, "a")
        else:
            pieces = [c.nonlinearity for c in cfgs]
            self.a = self.number([1.0 if h.name == "tanh" else h.a for h in pieces])
        grown = [c.sigma.grown for c in cfgs]
        self.relative = self.cfg.sigma.relative
        self.growth, self.epsilon = (self.number(values) for values in zip(*grown, strict=True))
        self.forget = self.number([1 - c.sigma.momentum for c in cfgs])

    def full(self, value: float, *shape: int) -> np.ndarray:
        """Return a new array of this value."""
        with np.errstate(over="ignore"):
            return np.full(shape, value, self.W.dtype)

    def column(self, store: State, name: str) -> np.ndarray:
        """Return (R, k) as one column (R·k, 1), sharing memory."""
        store[name] = np.ascontiguousarray(store[name])
        return store[name].reshape(-1, 1)

    def number(self, values: Sequence[float]) -> np.ndarray:
        """Return () where all runs agree, else one number for each component, (R·k, 1).

        Made once: a Python number costs more to convert than the operation itself.
        """
        if len(set(values)) == 1:
            return self.full(float(values[0]))
        return np.concatenate([self.full(float(v), self.k, 1) for v in values])

    def rate(self, factors: Sequence[float], scale: float = 1.0) -> float | np.ndarray:
        """Return lr · factor · scale, rounded once: a number where all runs agree, else (R·k, 1)."""
        rates = [lr * f * scale for lr, f in zip(self.rates, factors, strict=True)]
        return rates[0] if len(set(rates)) == 1 else self.number(rates)

    def buffer(self, b: int) -> dict[str, np.ndarray]:
        """Return the buffers for batches of b rows."""
        if b not in self.buffers:
            made = {n: self.full(0, len(self.W), b) for n in ("y", "t", "h", "G", "q")}
            made |= {n: self.full(0, len(self.W), 1) for n in ("r", "s")}
            made |= {n: self.full(0, self.runs, 1, 1) for n in ("hG", "hy")}
            made |= {"mean": self.full(1 / b, b, 1), "sum": self.full(1, b, 1)}
            self.buffers[b] = made | {"1/b": self.full(1 / b), "2/b": self.full(2 / b)}
        return self.buffers[b]

    def advance(self, batch: Batch, count: int, factors: Sequence[float]) -> np.ndarray:
        """Make one step of every run on rows x (b, p) that are centred; see `Step`.

        σ = √(EMA var + ε), t = tanh(y/(aσ)), ŷ = aσt, G = 2/b·(ŷWᵀW − y) ⊙ h′; the gradient is xᵀG. W, y and G are
        kept transposed.
        """
        x = batch.x if batch.x.dtype == self.W.dtype else batch.x.astype(self.W.dtype)
        f = self.buffer(x.shape[0])
        y, t, h, G, q = f["y"], f["t"], f["h"], f["G"], f["q"]
        r, s = f["r"], f["s"]
        self.product(self.W, x.T, y)
        if self.cfg.sigma.name == "ema":
            np.multiply(y, y, out=q)
            self.product(q, f["mean"], r)
            self.update_ema(r)
        np.multiply(self.sigma, self.a, out=s)
        np.divide(y, s, out=t)
        np.tanh(t, out=t)
        np.multiply(t, s, out=h)
        self.times_gram(h, G)
        np.subtract(G, y, out=G)
        loss = batch.power + self.loss_terms(h, G, y, f)
        if not self.one:
            np.multiply(t, t, out=t)
            np.multiply(t, G, out=t)
            np.subtract(G, t, out=G)
        np.multiply(G, f["2/b"], out=G)
        self.product(G, x, self.g)
        if self.cfg.optimizer.tangent:
            # wᵀg of a component is yᵀG: a product over (k, b) in place of one over (k, p).
            np.multiply(y, G, out=q)
            self.product(q, f["sum"], r)
            np.multiply(self.W, r, out=self.tmp)
            np.subtract(self.g, self.tmp, out=self.g)
        self.optimizer.step(count, factors)
        self.unit_norm()
        return loss

    def unit_norm(self) -> None:
        """Set w_j ← w_j/‖w_j‖. A filter that is zero becomes NaN, which `Trainer.check` reports."""
        norm = self.norm
        np.multiply(self.W, self.W, out=self.tmp)
        self.product(self.tmp, self.ones_p, norm)
        np.sqrt(norm, out=norm)
        np.divide(self.W, norm, out=self.W)

    def update_ema(self, r: np.ndarray) -> None:
        """Update the EMA of the variance by the batch's, r (R·k, 1), and σ = √(EMA + ε), or √(EMA(1 + ε))."""
        np.subtract(r, self.variance, out=r)
        np.multiply(r, self.forget, out=r)
        np.add(self.variance, r, out=self.variance)
        if self.relative:
            np.multiply(self.variance, self.growth, out=self.sigma)
            np.add(self.sigma, self.epsilon, out=self.sigma)
        else:
            np.add(self.variance, self.epsilon, out=self.sigma)
        np.sqrt(self.sigma, out=self.sigma)

    def product(self, left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
        """Write left·right into out, run by run: a product of more rows may end in other last bits."""
        if self.runs > 1:
            left, out = self.by_run(left), self.by_run(out)
        np.matmul(left, right, out=out)

    def times_gram(self, h: np.ndarray, G: np.ndarray) -> None:
        """Set Gᵀ = ŷWᵀW, each run with its own Gram matrix (k, k)."""
        if self.runs == 1:
            np.matmul(self.W, self.W.T, out=self.gram)
            np.matmul(self.gram, h, out=G)
            return
        W, h, G = (self.by_run(v) for v in (self.W, h, G))
        np.matmul(W, W.swapaxes(1, 2), out=self.gram)
        np.matmul(self.gram, h, out=G)

    def by_run(self, rows: np.ndarray) -> np.ndarray:
        """Return (R·k, m) as (R, k, m), the same memory."""
        return rows.reshape(self.runs, self.k, -1)

    def loss_terms(self, h: np.ndarray, d: np.ndarray, y: np.ndarray, f: dict[str, np.ndarray]) -> np.ndarray:
        """Return E⟨ŷWᵀW, ŷ⟩ − 2E⟨ŷ, y⟩ of each run, () or (R,), from d = ŷWᵀW − y: ⟨ŷ, d⟩ − ⟨ŷ, y⟩."""
        h = h.reshape(self.runs, 1, -1)
        np.matmul(h, d.reshape(self.runs, -1, 1), out=f["hG"])
        np.matmul(h, y.reshape(self.runs, -1, 1), out=f["hy"])
        each = ((f["hG"] - f["hy"]) * f["1/b"]).reshape(-1)
        return each if self.runs > 1 else each[0]


class FusedSGD:
    """Heavy-ball momentum: b ← μ·b + g; w ← w − lr·b."""

    def __init__(self, cfgs: Sequence[Config], buffers: FusedStep, opt_state: State) -> None:
        self.buffers = buffers
        self.velocity = as_rows(opt_state, "b.W")
        self.momentum = buffers.number([cfg.optimizer.momentum for cfg in cfgs])

    def step(self, count: int, factors: Sequence[float]) -> None:
        """Make one step."""
        buffers, velocity = self.buffers, self.velocity
        rate = buffers.rate(factors)
        np.multiply(velocity, self.momentum, out=velocity)
        np.add(velocity, buffers.g, out=velocity)
        np.multiply(velocity, rate, out=buffers.tmp)
        np.subtract(buffers.W, buffers.tmp, out=buffers.W)


class FusedAdam:
    """Adam: m̂/(√v̂ + ε) = m·√c₂/c₁ / (√v + ε·√c₂), c = 1 − βᵗ."""

    def __init__(self, cfgs: Sequence[Config], buffers: FusedStep, opt_state: State) -> None:
        self.buffers, self.cfg = buffers, cfgs[0].optimizer
        self.m, self.v = (as_rows(opt_state, f"{name}.W") for name in STATE_NAMES["adam"])
        number, beta1, beta2 = buffers.number, self.cfg.beta1, self.cfg.beta2
        self.keep1, self.take1 = number([beta1]), number([1 - beta1])
        self.keep2, self.take2 = number([beta2]), number([1 - beta2])
        self.epsilon, self.scale = buffers.full(0), buffers.full(0)

    def step(self, count: int, factors: Sequence[float]) -> None:
        """Make step number `count`, from 1."""
        buffers = self.buffers
        g, tmp, m, v = buffers.g, buffers.tmp, self.m, self.v
        root = (1 - self.cfg.beta2**count) ** 0.5
        rate = buffers.rate(factors, root / (1 - self.cfg.beta1**count))
        self.epsilon[...] = self.cfg.epsilon * root
        if isinstance(rate, float):
            self.scale[...] = rate
            rate = self.scale
        np.multiply(m, self.keep1, out=m)
        np.multiply(g, self.take1, out=tmp)
        np.add(m, tmp, out=m)
        np.multiply(g, g, out=g)
        np.multiply(g, self.take2, out=g)
        np.multiply(v, self.keep2, out=v)
        np.add(v, g, out=v)
        np.sqrt(v, out=tmp)
        np.add(tmp, self.epsilon, out=tmp)
        np.divide(m, tmp, out=tmp)
        np.multiply(tmp, rate, out=tmp)
        np.subtract(buffers.W, tmp, out=buffers.W)

"""The step of the main method by hand: gradient, tangent projection, optimizer and unit norm in reused buffers.

It computes what `Method.gradient`, `optimizers` and `constraints.unit_norm` compute, for the composition that runs
for hours: the main loss with a tanh, σ by EMA or constant, unit norm, Adam or SGD. R runs on the same batches stand
below each other as the rows of one (R·k, p) matrix, so that a sweep starts as many operations as one run does; only
products are made run by run, which gives each run the bits that it has alone.

The arrays are NumPy's on a CPU and torch's on a GPU: the functions used here have the same names in both. At these
sizes the time goes into starting operations, and NumPy starts one in a third of torch's time. Components are rows: what
is scaled by one number a component is then contiguous, and a reduction is a product with a column of constants.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sigmapca_cli.training.arrays import Array, contiguous, on_host
from sigmapca_cli.training.batches import Batch

SLOTS = {"adam": ("m", "v"), "sgd": ("b",)}
"""What an optimizer remembers of each parameter: `m.W` and so on among a run's slots."""
MOMENTS = tuple(name for names in SLOTS.values() for name in names)


class FusedStep:
    """Steps of R runs that see the same batches; `state` and `slots` afterwards hold views of what is stepped.

    `host`: compute with NumPy. Tensors on a CPU are then seen as arrays of the same memory.
    """

    def __init__(
        self,
        cfgs: Sequence[Any],
        state: dict[str, Array],
        slots: dict[str, Array],
        *,
        host: bool | None = None,
    ) -> None:
        cfg, W = cfgs[0], state["W"]
        self.cfg, self.runs = cfg, len(cfgs)
        self.p, self.k = W.shape[-2:]
        self.host = (on_host(W) or W.device.type == "cpu") if host is None else host
        self.xp: Any = np
        if not self.host:
            import torch

            self.xp = torch
        self.W = self.below(state, "W")
        self.adam = cfg.optimizer.name == "adam"
        self.moments = [self.below(slots, f"{name}.W") for name in SLOTS[cfg.optimizer.name]]
        self.g, self.tmp = (self.xp.zeros_like(self.W) for _ in range(2))
        self.variance = self.column(state, "variance" if cfg.sigma.name == "ema" else "sigma")
        self.sigma = self.column(state, "sigma")
        self.numbers(cfgs)
        self.one = cfg.nonlinearity.derivative == "one"
        self.buffers: dict[int, dict[str, Array]] = {}
        self.ones_p = self.full(1, self.p, 1)
        self.gram = self.full(0, *((self.runs, self.k, self.k) if self.runs > 1 else (self.k, self.k)))
        self.norm = self.full(0, len(self.W), 1)
        self.now = [self.full(0), self.full(0)]  # Adam's ε and rate at this step

    def numbers(self, cfgs: Sequence[Any]) -> None:
        """What may differ between the runs, as numbers or columns."""
        names = [c.nonlinearity.name for c in cfgs]
        self.a = self.number(
            [1.0 if n == "tanh" else c.nonlinearity.a for n, c in zip(names, cfgs, strict=True)]
        )
        grown = [c.sigma.grown for c in cfgs]
        self.relative = self.cfg.sigma.relative
        self.growth, self.epsilon = (self.number(values) for values in zip(*grown, strict=True))
        self.forget = self.number([1 - c.sigma.momentum for c in cfgs])
        self.rates = [float(c.lr) for c in cfgs]
        optimizer = self.cfg.optimizer
        if self.adam:
            self.keep1, self.take1 = self.number([optimizer.beta1]), self.number([1 - optimizer.beta1])
            self.keep2, self.take2 = self.number([optimizer.beta2]), self.number([1 - optimizer.beta2])
        else:
            self.momentum = self.number([c.optimizer.momentum for c in cfgs])

    def array(self, value: Array) -> Array:
        """The same memory as an array of the kind that is computed with."""
        return value.numpy() if self.host and not on_host(value) else value

    def full(self, value: float, *shape: int) -> Array:
        if self.host:
            with np.errstate(over="ignore"):
                return np.full(shape, value, self.W.dtype)
        return self.W.new_full(shape, value)

    def below(self, store: dict[str, Array], name: str) -> Array:
        """(p, k) or (R, p, k) as one contiguous (R·k, p); the store keeps a view of it in its own shape."""
        rows = contiguous(store[name].swapaxes(-1, -2))
        store[name] = rows.swapaxes(-1, -2)
        return self.array(rows.reshape(-1, self.p))

    def column(self, store: dict[str, Array], name: str) -> Array:
        """(R, k) as one column (R·k, 1), sharing memory."""
        store[name] = contiguous(store[name])
        return self.array(store[name].reshape(-1, 1))

    def number(self, values: Sequence[float]) -> Array:
        """() where all runs agree, else one for each component, (R·k, 1).

        Made once: a Python number costs more to convert than the operation itself.
        """
        if len(set(values)) == 1:
            return self.full(float(values[0]))
        return self.xp.concatenate([self.full(float(v), self.k, 1) for v in values])

    def buffer(self, b: int) -> dict[str, Array]:
        """Buffers for batches of b rows."""
        if b not in self.buffers:
            made = {n: self.full(0, len(self.W), b) for n in ("y", "t", "h", "G", "q")}
            made |= {n: self.full(0, len(self.W), 1) for n in ("r", "s")}
            made |= {n: self.full(0, self.runs, 1, 1) for n in ("hG", "hy")}
            made |= {"mean": self.full(1 / b, b, 1), "sum": self.full(1, b, 1)}
            self.buffers[b] = made | {"1/b": self.full(1 / b), "2/b": self.full(2 / b)}
        return self.buffers[b]

    def taken(self, batch: Batch) -> tuple[Array, Array]:
        """Rows and power of a batch as `step` wants them."""
        if self.host:
            x = batch.x if batch.x.dtype == self.W.dtype else batch.x.astype(self.W.dtype)
            return x, batch.power
        from_numpy, as_tensor = self.xp.from_numpy, self.xp.as_tensor
        return from_numpy(batch.x).to(self.W), as_tensor(batch.power).to(self.W)

    def step(self, x: Array, power: Array, count: int, factor: float | Sequence[float]) -> Array:
        """One step on centred rows x (b, p) of mean square `power`, (); the loss of each run, (R,) or ().

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
            self.follow(r)
        xp.multiply(self.sigma, self.a, out=s)
        xp.divide(y, s, out=t)
        xp.tanh(t, out=t)
        xp.multiply(t, s, out=h)
        self.times_gram(h, G)
        xp.subtract(G, y, out=G)
        loss = power + self.total(h, G, y, f)
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
        self.move(count, factor)
        self.unit_norm()
        return loss

    def losses(self, batch: Batch, count: int, factors: Sequence[float]) -> Array:
        """One step of every run, (R,) or (); `factors` multiply their learning rates."""
        return self.step(*self.taken(batch), count, factors)

    def unit_norm(self) -> None:
        """w_j ← w_j/‖w_j‖; a filter that is zero becomes NaN, and is reported."""
        xp, norm = self.xp, self.norm
        xp.multiply(self.W, self.W, out=self.tmp)
        self.product(self.tmp, self.ones_p, norm)
        xp.sqrt(norm, out=norm)
        xp.divide(self.W, norm, out=self.W)

    def follow(self, r: Array) -> None:
        """The EMA of the variance takes in the batch's, r (R·k, 1); σ = √(EMA + ε), or √(EMA(1 + ε))."""
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
        """left·right, run by run: a product of more rows may take another route, and end in other last bits."""
        if self.runs > 1:
            left, out = self.by_run(left), self.by_run(out)
        self.xp.matmul(left, right, out=out)

    def times_gram(self, h: Array, G: Array) -> None:
        """Gᵀ = ŷWᵀW, each run with its own Gram matrix (k, k)."""
        xp = self.xp
        if self.runs == 1:
            xp.matmul(self.W, self.W.T, out=self.gram)
            xp.matmul(self.gram, h, out=G)
            return
        W, h, G = (self.by_run(v) for v in (self.W, h, G))
        xp.matmul(W, W.swapaxes(1, 2), out=self.gram)
        xp.matmul(self.gram, h, out=G)

    def by_run(self, rows: Array) -> Array:
        """(R·k, m) as (R, k, m), the same memory."""
        return rows.reshape(self.runs, self.k, -1)

    def total(self, h: Array, d: Array, y: Array, f: dict[str, Array]) -> Array:
        """E⟨ŷWᵀW, ŷ⟩ − 2E⟨ŷ, y⟩ of each run, () or (R,), from d = ŷWᵀW − y: ⟨ŷ, d⟩ − ⟨ŷ, y⟩."""
        xp = self.xp
        h = h.reshape(self.runs, 1, -1)
        xp.matmul(h, d.reshape(self.runs, -1, 1), out=f["hG"])
        xp.matmul(h, y.reshape(self.runs, -1, 1), out=f["hy"])
        each = ((f["hG"] - f["hy"]) * f["1/b"]).reshape(-1)
        return each if self.runs > 1 else each[0]

    def rate(self, factor: float | Sequence[float], scale: float = 1.0) -> float | Array:
        """lr · factor · scale, rounded once: a number where all runs agree, else (R·k, 1)."""
        if isinstance(factor, int | float):
            factors: Sequence[float] = [factor] * self.runs
        else:
            factors = factor
        rates = [lr * f * scale for lr, f in zip(self.rates, factors, strict=True)]
        return rates[0] if len(set(rates)) == 1 else self.number(rates)

    def move(self, count: int, factor: float | Sequence[float]) -> None:
        """The optimizer's step on W; the same arithmetic as `optimizers.Adam` and `optimizers.SGD`."""
        if self.adam:
            self.move_adam(factor, count)
            return
        xp, rate, velocity = self.xp, self.rate(factor), self.moments[0]
        xp.multiply(velocity, self.momentum, out=velocity)
        xp.add(velocity, self.g, out=velocity)
        xp.multiply(velocity, rate, out=self.tmp)
        xp.subtract(self.W, self.tmp, out=self.W)

    def move_adam(self, factor: float | Sequence[float], count: int) -> None:
        """Adam: m̂/(√v̂ + ε) = m·√c₂/c₁ / (√v + ε·√c₂), c = 1 − βᵗ."""
        if not self.host and isinstance(rate := self.rate(factor), float):
            self.adam_of_torch(rate, count)
            return
        xp, cfg = self.xp, self.cfg.optimizer
        g, tmp, (m, v), (epsilon, scale) = self.g, self.tmp, self.moments, self.now
        root = (1 - cfg.beta2**count) ** 0.5
        rate, epsilon[...] = self.rate(factor, root / (1 - cfg.beta1**count)), cfg.epsilon * root
        if isinstance(rate, float):
            scale[...] = rate
            rate = scale
        xp.multiply(m, self.keep1, out=m)
        xp.multiply(g, self.take1, out=tmp)
        xp.add(m, tmp, out=m)
        xp.multiply(g, g, out=g)
        xp.multiply(g, self.take2, out=g)
        xp.multiply(v, self.keep2, out=v)
        xp.add(v, g, out=v)
        xp.sqrt(v, out=tmp)
        xp.add(tmp, epsilon, out=tmp)
        xp.divide(m, tmp, out=tmp)
        xp.multiply(tmp, rate, out=tmp)
        xp.subtract(self.W, tmp, out=self.W)

    def adam_of_torch(self, rate: float, count: int) -> None:
        """The same as a single operation: on a GPU starting twelve costs more than what they compute."""
        cfg = self.cfg.optimizer
        W, g, m, v = ([a] for a in (self.W, self.g, *self.moments))
        self.xp._fused_adam_(
            W,
            g,
            m,
            v,
            [],
            [self.xp.full((), float(count), device=self.W.device)],
            lr=rate,
            beta1=cfg.beta1,
            beta2=cfg.beta2,
            weight_decay=0.0,
            eps=cfg.epsilon,
            amsgrad=False,
            maximize=False,
        )

"""The step of the main method by hand: gradient, tangent projection, optimizer and unit norm in reused buffers.

It computes what `Method.gradient`, `optimizers` and `constraints.unit_norm` compute, for the composition that runs
for hours: the main loss with a tanh, σ by EMA or constant, unit norm, Adam or SGD. R runs on the same batches stand
side by side as the columns of one (p, R·k) matrix, so that a sweep is the same code with wider products; only the
Gram matrices are made run by run.

The arrays are NumPy's on a CPU and torch's on a GPU: the functions used here have the same names in both. At these
sizes the time goes into starting operations, and NumPy starts one in a third of torch's time. A reduction over rows
is a product with a row of constants: quicker here than a strided sum.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.methods.share import WHOLE
from sigmapca_cli.training.batches import Batch

NONLINEARITIES = ("tanh", "scaled_tanh")
SIGMAS = ("ema", "data", "unit")
Array = Any  # numpy.ndarray on a CPU, torch.Tensor on a GPU


def covers(cfg: Any, method: Any) -> bool:
    """Whether this step computes what the composed method would."""
    return (
        method.closed
        and method.share is WHOLE
        and method.trained == "W"
        and cfg.nonlinearity.name in NONLINEARITIES
        and not method.automatic_a
        and cfg.sigma.name in SIGMAS
        and cfg.constraint.name == "unit_norm"
        and cfg.model.centring == "batch"
    )


class FusedStep:
    """Steps of R runs that see the same batches; `state` and `slots` afterwards hold views of what is stepped."""

    def __init__(
        self,
        cfgs: Sequence[Any],
        state: dict[str, Tensor],
        slots: dict[str, Tensor],
        *,
        host: bool | None = None,
    ) -> None:
        cfg, W = cfgs[0], state["W"]
        self.cfg, self.runs = cfg, len(cfgs)
        self.p, self.k = W.shape[-2:]
        self.host = W.device.type == "cpu" if host is None else host
        self.xp: Any = np if self.host else torch
        self.like = W
        # The same memory as torch sees it: its Adam is one operation for all of it.
        self.tensors = {"W": self.side_by_side(state, "W")}
        self.adam = cfg.optimizer.name == "adam"
        names = ("m", "v") if self.adam else ("b",)
        self.tensors |= {n: self.side_by_side(slots, f"{n}.W") for n in names}
        self.tensors |= {n: torch.zeros_like(self.tensors["W"]) for n in ("g", "tmp")}
        self.W, self.g, self.tmp = (self.array(self.tensors[n]) for n in ("W", "g", "tmp"))
        self.moments = [self.array(self.tensors[n]) for n in names]
        self.variance = self.row(state, "variance" if cfg.sigma.name == "ema" else "sigma")
        self.sigma = self.row(state, "sigma")
        self.numbers(cfgs)
        self.one = cfg.nonlinearity.derivative == "one"
        self.buffers: dict[int, dict[str, Array]] = {}
        self.ones_p = self.full(1, 1, self.p)
        self.gram = self.full(0, *((self.runs, self.k, self.k) if self.runs > 1 else (self.k, self.k)))
        self.count = torch.zeros((), dtype=torch.float32, device=W.device)

    def numbers(self, cfgs: Sequence[Any]) -> None:
        """What may differ between the runs, as numbers or rows."""
        names = [c.nonlinearity.name for c in cfgs]
        self.a = self.number(
            [1.0 if n == "tanh" else c.nonlinearity.a for n, c in zip(names, cfgs, strict=True)]
        )
        self.epsilon = self.number([c.sigma.epsilon for c in cfgs])
        self.forget = self.number([1 - c.sigma.momentum for c in cfgs])
        self.rates = [float(c.lr) for c in cfgs]
        self.two = self.number([2.0])
        optimizer = self.cfg.optimizer
        if self.adam:
            self.take1, self.take2 = self.number([1 - optimizer.beta1]), self.number([1 - optimizer.beta2])
        else:
            self.momentum = self.number([c.optimizer.momentum for c in cfgs])

    def array(self, tensor: Tensor) -> Array:
        """The tensor's memory as an array of the kind that is computed with."""
        return tensor.numpy() if self.host else tensor

    def full(self, value: float, *shape: int) -> Array:
        return self.array(self.like.new_full(shape, value))

    def side_by_side(self, store: dict[str, Tensor], name: str) -> Tensor:
        """(R, p, k) as one contiguous (p, R·k); the store keeps a view of it in its own shape."""
        value = store[name]
        if value.dim() == 2:
            store[name] = value.contiguous()
            return store[name]
        wide = value.permute(1, 0, 2).contiguous()
        store[name] = wide.permute(1, 0, 2)
        return wide.view(self.p, -1)

    def row(self, store: dict[str, Tensor], name: str) -> Array:
        """(R, k) as one row (1, R·k), sharing memory."""
        store[name] = store[name].contiguous()
        return self.array(store[name].view(1, -1))

    def number(self, values: Sequence[float]) -> Array:
        """() where all runs agree, else one for each column, (1, R·k).

        Made once: a Python number costs more to convert than the operation itself.
        """
        if len(set(values)) == 1:
            return self.array(self.like.new_tensor(float(values[0])))
        return self.array(self.like.new_tensor([float(v) for v in values]).repeat_interleave(self.k)[None])

    def buffer(self, b: int) -> dict[str, Array]:
        """Buffers for batches of b rows."""
        if b not in self.buffers:
            made = {n: self.full(0, b, self.W.shape[1]) for n in ("y", "t", "h", "G", "q")}
            made |= {n: self.full(0, 1, self.W.shape[1]) for n in ("r", "s")}
            made |= {"mean": self.full(1 / b, 1, b), "sum": self.full(1, 1, b)}
            self.buffers[b] = made | {"2/b": self.number([2 / b])}
        return self.buffers[b]

    def taken(self, batch: Batch) -> tuple[Array, Array]:
        """Rows and power of a batch as `step` wants them."""
        if self.host:
            x = batch.x if batch.x.dtype == self.W.dtype else batch.x.astype(self.W.dtype)
            return x, batch.power
        return torch.from_numpy(batch.x).to(self.like), torch.as_tensor(batch.power).to(self.like)

    def step(self, x: Array, power: Array, count: int, factor: float | Sequence[float]) -> Array:
        """One step on centred rows x (b, p) of mean square `power`, (); the loss of each run, (R,) or ().

        σ = √(EMA var + ε), t = tanh(y/(aσ)), ŷ = aσt, G = 2/b·(ŷWᵀW − y) ⊙ h′; the gradient is xᵀG. `factor`
        multiplies the learning rate: one number, or one for each run.
        """
        xp, f = self.xp, self.buffer(x.shape[0])
        y, t, h, G, q = f["y"], f["t"], f["h"], f["G"], f["q"]
        r, s = f["r"], f["s"]
        xp.matmul(x, self.W, out=y)
        if self.cfg.sigma.name == "ema":
            xp.multiply(y, y, out=q)
            xp.matmul(f["mean"], q, out=r)
            self.follow(r)
        xp.multiply(self.sigma, self.a, out=s)
        xp.divide(y, s, out=t)
        xp.tanh(t, out=t)
        xp.multiply(t, s, out=h)
        self.times_gram(h, G)
        xp.multiply(y, self.two, out=q)
        xp.subtract(G, q, out=q)
        loss = power + self.total(q, h, f) / x.shape[0]
        xp.subtract(G, y, out=G)
        if not self.one:
            xp.multiply(t, t, out=t)
            xp.multiply(t, G, out=t)
            xp.subtract(G, t, out=G)
        xp.multiply(G, f["2/b"], out=G)
        xp.matmul(x.T, G, out=self.g)
        if self.cfg.optimizer.tangent:
            # wᵀg of a column is yᵀG: a product over (b, k) in place of one over (p, k).
            xp.multiply(y, G, out=q)
            xp.matmul(f["sum"], q, out=r)
            xp.multiply(self.W, r, out=self.tmp)
            xp.subtract(self.g, self.tmp, out=self.g)
        self.move(count, factor)
        xp.multiply(self.W, self.W, out=self.tmp)
        xp.matmul(self.ones_p, self.tmp, out=r)
        xp.sqrt(r, out=r)
        xp.divide(self.W, r, out=self.W)
        return loss

    def follow(self, r: Array) -> None:
        """The EMA of the variance takes in the batch's, r (1, R·k); σ = √(EMA + ε)."""
        xp = self.xp
        xp.subtract(r, self.variance, out=r)
        xp.multiply(r, self.forget, out=r)
        xp.add(self.variance, r, out=self.variance)
        xp.add(self.variance, self.epsilon, out=self.sigma)
        xp.sqrt(self.sigma, out=self.sigma)

    def times_gram(self, h: Array, G: Array) -> None:
        """G = ŷ WᵀW, each run with its own Gram matrix (k, k)."""
        xp = self.xp
        if self.runs == 1:
            xp.matmul(self.W.T, self.W, out=self.gram)
            xp.matmul(h, self.gram, out=G)
            return
        W, h, G = self.by_run(self.W), self.by_run(h), self.by_run(G)
        xp.matmul(W.swapaxes(1, 2), W, out=self.gram)
        if self.host:
            xp.matmul(h, self.gram, out=G)
        else:  # torch does not write a product into a view with other strides
            G.copy_(xp.matmul(h, self.gram))

    def by_run(self, wide: Array) -> Array:
        """(rows, R·k) as a view (R, rows, k)."""
        return wide.reshape(-1, self.runs, self.k).swapaxes(0, 1)

    def total(self, q: Array, h: Array, f: dict[str, Array]) -> Array:
        """Σ q ⊙ ŷ of each run, () or (R,): summed in one order, alone or side by side."""
        self.xp.multiply(q, h, out=q)
        self.xp.matmul(f["sum"], q, out=f["r"])
        each = f["r"].reshape(self.runs, self.k).sum(1)
        return each if self.runs > 1 else each[0]

    def rate(self, factor: float | Sequence[float]) -> float | Array:
        """lr · factor: a number where all runs agree, else (1, R·k)."""
        factors = [factor] * self.runs if isinstance(factor, int | float) else factor
        rates = [lr * f for lr, f in zip(self.rates, factors, strict=True)]
        return rates[0] if len(set(rates)) == 1 else self.number(rates)

    def move(self, count: int, factor: float | Sequence[float]) -> None:
        """The optimizer's step on W; the same arithmetic as `optimizers.Adam` and `optimizers.SGD`."""
        xp, rate = self.xp, self.rate(factor)
        g, tmp = self.g, self.tmp
        if not self.adam:
            velocity = self.moments[0]
            xp.multiply(velocity, self.momentum, out=velocity)
            xp.add(velocity, g, out=velocity)
            xp.multiply(velocity, rate, out=tmp)
            xp.subtract(self.W, tmp, out=self.W)
        elif isinstance(rate, float):
            self.adam_of_torch(rate, count)
        else:
            self.adam_by_column(rate, count)

    def adam_of_torch(self, rate: float, count: int) -> None:
        """Adam with one learning rate: a single operation."""
        cfg = self.cfg.optimizer
        W, g, m, v = ([self.tensors[n]] for n in ("W", "g", "m", "v"))
        torch._fused_adam_(
            W,
            g,
            m,
            v,
            [],
            [self.count.fill_(count)],
            lr=rate,
            beta1=cfg.beta1,
            beta2=cfg.beta2,
            weight_decay=0.0,
            eps=cfg.epsilon,
            amsgrad=False,
            maximize=False,
        )

    def adam_by_column(self, rate: Array, count: int) -> None:
        """Adam with a learning rate for each column, rate (1, R·k)."""
        xp, cfg = self.xp, self.cfg.optimizer
        g, tmp, (m, v) = self.g, self.tmp, self.moments
        root = (1 - cfg.beta2**count) ** 0.5
        xp.subtract(g, m, out=tmp)
        xp.multiply(tmp, self.take1, out=tmp)
        xp.add(m, tmp, out=m)
        xp.multiply(g, g, out=g)
        xp.subtract(g, v, out=g)
        xp.multiply(g, self.take2, out=g)
        xp.add(v, g, out=v)
        # m̂/(√v̂ + ε) = m·√c₂/c₁ / (√v + ε·√c₂)
        xp.sqrt(v, out=tmp)
        xp.add(tmp, self.number([cfg.epsilon * root]), out=tmp)
        xp.divide(m, tmp, out=tmp)
        xp.multiply(tmp, rate * (root / (1 - cfg.beta1**count)), out=tmp)
        xp.subtract(self.W, tmp, out=self.W)

"""The step of the main method by hand: gradient, tangent projection, optimizer and unit norm in reused buffers.

It computes what `Method.gradient`, `optimizers` and `constraints.unit_norm` compute, for the composition that runs
for hours: the main loss with a tanh, σ by EMA or constant, unit norm, Adam or SGD. R runs on the same batches stand
side by side as the columns of one (p, R·k) matrix, so that a sweep is the same code with wider products; only the
Gram matrices are made run by run. A reduction over rows is a product with a row of constants: that is several times
quicker here than a strided sum.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

NONLINEARITIES = ("tanh", "scaled_tanh")
SIGMAS = ("ema", "data", "unit")


def covers(cfg: Any, method: Any) -> bool:
    """Whether this step computes what the composed method would."""
    return (
        method.closed
        and method.trained == "W"
        and cfg.nonlinearity.name in NONLINEARITIES
        and not method.automatic_a
        and cfg.sigma.name in SIGMAS
        and cfg.constraint.name == "unit_norm"
        and cfg.model.centring == "batch"
    )


class FusedStep:
    """Steps of R runs that see the same batches; `state` and `slots` afterwards hold views of what is stepped."""

    def __init__(self, cfgs: Sequence[Any], state: dict[str, Tensor], slots: dict[str, Tensor]) -> None:
        cfg, W = cfgs[0], state["W"]
        self.cfg, self.runs = cfg, len(cfgs)
        self.p, self.k = W.shape[-2:]
        self.like = W
        self.W = self.side_by_side(state, "W")
        self.variance = self.row(state, "variance" if cfg.sigma.name == "ema" else "sigma")
        self.sigma = self.row(state, "sigma")
        self.one = cfg.nonlinearity.derivative == "one"
        scale = [1.0 if c.nonlinearity.name == "tanh" else float(c.nonlinearity.a) for c in cfgs]
        # Scalars are kept as tensors: a Python number costs more to convert than the operation itself.
        self.a = self.number(self.columns(scale))
        self.epsilon = self.number(cfg.sigma.epsilon)
        self.forget = self.number(1 - cfg.sigma.momentum)
        self.rates: Any = self.columns([float(c.lr) for c in cfgs])
        self.adam = cfg.optimizer.name == "adam"
        self.moments = [self.side_by_side(slots, f"{n}.W") for n in (("m", "v") if self.adam else ("b",))]
        self.ones_p = torch.ones(1, self.p, dtype=W.dtype, device=W.device)
        self.buffers: dict[int, dict[str, Tensor]] = {}
        self.wide = {n: torch.zeros_like(self.W) for n in ("g", "tmp")}
        self.gram = torch.empty(self.runs, self.k, self.k, dtype=W.dtype, device=W.device)
        self.count, self.unit = torch.zeros((), dtype=torch.float32), torch.ones((), dtype=torch.float32)
        self.counted = 0

    def side_by_side(self, store: dict[str, Tensor], name: str) -> Tensor:
        """(R, p, k) as one contiguous (p, R·k); the store keeps a view of it in its own shape."""
        value = store[name]
        if value.dim() == 2:
            store[name] = value.contiguous()
            return store[name]
        wide = value.permute(1, 0, 2).contiguous()
        store[name] = wide.permute(1, 0, 2)
        return wide.view(self.p, -1)

    def row(self, store: dict[str, Tensor], name: str) -> Tensor:
        """(R, k) as one row (1, R·k), sharing memory."""
        store[name] = store[name].contiguous()
        return store[name].view(1, -1)

    def columns(self, values: list[float]) -> float | Tensor:
        """One number where all runs agree, else (1, R·k)."""
        if len(set(values)) == 1:
            return values[0]
        spread = torch.tensor(values, dtype=self.like.dtype, device=self.like.device)
        return spread.repeat_interleave(self.k)[None]

    def number(self, value: float | Tensor) -> Tensor:
        """A number, or a row of them, as a tensor that broadcasts over columns."""
        return value if isinstance(value, Tensor) else self.like.new_full((1, 1), value)

    def buffer(self, b: int) -> dict[str, Tensor]:
        """Buffers for batches of b rows."""
        if b not in self.buffers:
            made = {n: self.like.new_empty(b, self.W.shape[1]) for n in ("y", "t", "h", "G", "q")}
            made |= {n: self.like.new_empty(1, self.W.shape[1]) for n in ("r", "s")}
            made["ones"] = self.like.new_full((1, b), 1 / b)
            self.buffers[b] = made
        return self.buffers[b]

    def step(self, x: Tensor, power: Tensor, count: int, factor: float) -> Tensor:
        """One step on centred rows x (b, p) of mean square `power`, (); the loss of each run, (R,) or ().

        σ = √(EMA var + ε), t = tanh(y/(aσ)), ŷ = aσt, G = (ŷWᵀW − y) ⊙ h′; the gradient is 2/b·xᵀG.
        """
        b = x.shape[0]
        f = self.buffer(b)
        y, t, h, G, q = f["y"], f["t"], f["h"], f["G"], f["q"]
        ones, r, s = f["ones"], f["r"], f["s"]
        torch.mm(x, self.W, out=y)
        if self.cfg.sigma.name == "ema":
            torch.mul(y, y, out=q)
            torch.mm(ones, q, out=r)
            self.variance.lerp_(r, self.forget)
            torch.add(self.variance, self.epsilon, out=self.sigma)
            self.sigma.sqrt_()
        torch.mul(self.sigma, self.a, out=s)
        torch.div(y, s, out=t)
        t.tanh_()
        torch.mul(t, s, out=h)
        self.times_gram(h, G)
        torch.sub(G, y, alpha=2, out=q)
        loss = torch.add(power, self.total(q, h, f), alpha=1 / b)
        G.sub_(y)
        if not self.one:
            t.mul_(t)
            torch.addcmul(G, G, t, value=-1, out=G)
        g = self.wide["g"]
        torch.addmm(g, x.T, G, beta=0, alpha=2 / b, out=g)
        if self.cfg.optimizer.tangent:
            # wᵀg of a column is 2/b·yᵀG: a product over (b, k) in place of one over (p, k).
            torch.mul(y, G, out=q)
            torch.mm(ones, q, out=r)
            torch.addcmul(g, self.W, r, value=-2, out=g)
        self.move(g, count, factor)
        tmp = self.wide["tmp"]
        torch.mul(self.W, self.W, out=tmp)
        torch.mm(self.ones_p, tmp, out=r)
        self.W.mul_(r.rsqrt_())
        return loss

    def times_gram(self, h: Tensor, G: Tensor) -> None:
        """G = ŷ WᵀW, each run with its own Gram matrix (k, k)."""
        if self.runs == 1:
            gram = self.gram[0]
            torch.mm(self.W.T, self.W, out=gram)
            torch.mm(h, gram, out=G)
            return
        W = self.W.view(self.p, self.runs, self.k).permute(1, 0, 2)
        torch.bmm(W.mT, W, out=self.gram)
        split = h.view(-1, self.runs, self.k).permute(1, 0, 2)
        G.view(-1, self.runs, self.k).copy_(torch.bmm(split, self.gram).permute(1, 0, 2))

    def total(self, q: Tensor, h: Tensor, f: dict[str, Tensor]) -> Tensor:
        """Σ q ⊙ ŷ of each run."""
        if self.runs == 1:
            return torch.dot(q.view(-1), h.view(-1))
        q.mul_(h)
        torch.mm(f["ones"], q, out=f["r"])
        return f["r"].view(self.runs, self.k).sum(1).mul_(h.shape[0])

    def counter(self, count: int) -> Tensor:
        """The number of the step as the optimizer's kernel wants it."""
        if count == self.counted + 1:
            self.count.add_(self.unit)
        else:
            self.count.fill_(count)
        self.counted = count
        return self.count

    def move(self, g: Tensor, count: int, factor: float) -> None:
        """The optimizer's step on W; the same arithmetic as `optimizers.Adam` and `optimizers.SGD`."""
        cfg = self.cfg.optimizer
        one_rate = isinstance(self.rates, float)
        if not self.adam:
            velocity = self.moments[0].mul_(cfg.momentum).add_(g)
            if one_rate:
                self.W.sub_(velocity, alpha=self.rates * factor)
            else:
                self.W.sub_(torch.mul(velocity, self.rates * factor, out=self.wide["tmp"]))
            return
        m, v = self.moments
        correction1, correction2 = 1 - cfg.beta1**count, 1 - cfg.beta2**count
        if one_rate and self.W.device.type == "cpu":
            torch._fused_adam_(
                [self.W],
                [g],
                [m],
                [v],
                [],
                [self.counter(count)],
                lr=self.rates * factor,
                beta1=cfg.beta1,
                beta2=cfg.beta2,
                weight_decay=0.0,
                eps=cfg.epsilon,
                amsgrad=False,
                maximize=False,
            )
            return
        m.lerp_(g, 1 - cfg.beta1)
        v.mul_(cfg.beta2).addcmul_(g, g, value=1 - cfg.beta2)
        scale = torch.sqrt(v, out=self.wide["tmp"]).div_(math.sqrt(correction2)).add_(cfg.epsilon)
        if one_rate:
            self.W.addcdiv_(m, scale, value=-self.rates * factor / correction1)
        else:
            # g is free by now and carries the rate of every column.
            self.W.addcdiv_(torch.mul(m, self.rates, out=g), scale, value=-factor / correction1)

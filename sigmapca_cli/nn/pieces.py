"""What the loss of a layer is made of: its filters, the averages that follow the batches, h with its a."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from sigmapca_cli.methods import automatic, constraints, nonlinearities, objectives
from sigmapca_cli.methods.config import LEAST_VARIANCE
from sigmapca_cli.methods.method import SMALLEST_SIGMA
from sigmapca_cli.nn.checks import check_choices, check_numbers, check_sizes
from sigmapca_cli.nn.statistics import batch_mean


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the type that averages and the loss are computed in: float32 for a weight of half precision."""
    return dtype if dtype.itemsize >= 4 else torch.float32


@torch.no_grad()
def random_orthonormal_(weight: Tensor) -> None:
    """Fill a matrix with random orthonormal columns, in place; those of half precision are rounded ones of float32."""
    made = torch.empty_like(weight, dtype=wide(weight.dtype))
    weight.copy_(nn.init.orthogonal_(made))


@torch.no_grad()
def put_back_(weight: Tensor, constraint: str) -> None:
    """Put a matrix back onto its constraint, in place; one that FSDP has divided is put together for it."""
    rule = constraints.REGISTRY[constraint]
    W: Any = weight.to(wide(weight.dtype))
    if hasattr(W, "full_tensor"):  # torch's DTensor, whose module takes a second to import
        from torch.distributed.tensor import distribute_tensor

        weight.copy_(distribute_tensor(rule(W.full_tensor()), W.device_mesh, W.placements))
    else:
        weight.copy_(rule(W))


def computed_again() -> bool:
    """Return whether a backward pass computes this again, as activation checkpointing does: averages stay then."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1


def refuse_nan(rows: Tensor) -> None:
    """Raise ValueError if a row holds a NaN, which would stay in the averages for ever."""
    if bool(rows.isnan().any()):
        row, feature = (int(i) for i in rows.isnan().nonzero()[0])
        raise ValueError(f"the batch holds NaN: first in row {row}, feature {feature}, counted from 0")


class LossOfLayer(nn.Module):
    """The parameters and averages of a layer, and the pieces of the main loss; `SigmaPCA` says what they mean."""

    running_mean: Tensor  # buffers, of which torch tells no type
    variance: Tensor
    batches: Tensor
    auto_a: Tensor
    auto_abs_z: Tensor

    def __init__(
        self, p: int, k: int, *, a: float | str, nonlinearity: str, derivative: str, sigma: str, momentum: float,
        epsilon: float, relative: bool, start: str, constraint: str, sync: bool, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        check_sizes(p, k)
        check_choices(sigma, constraint, nonlinearity, derivative, start)
        check_numbers(a, momentum, epsilon)
        self.in_features, self.n_components, self.a, self.sync = p, k, a, sync
        self.nonlinearity, self.derivative, self.constraint = nonlinearity, derivative, constraint
        self.sigma_rule, self.momentum, self.epsilon, self.relative = sigma, momentum, epsilon, relative
        self.start = start
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(p, k, **where))
        self.deviation = nn.Parameter(torch.ones(k, **where)) if sigma == "trained" else None
        averages = {"device": device, "dtype": wide(self.weight.dtype)}
        self.register_buffer("running_mean", torch.zeros(p, **averages))
        self.register_buffer("variance", torch.ones(k, **averages))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long, device=device))
        if a == "auto":
            for name, value in automatic.start(self.variance).items():
                self.register_buffer(f"auto_{name}", value)
        self._hooked = self._copied = False
        self._constrained = -1  # version of the weight that was put onto its constraint last

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move the layer as torch does (`to`, `half`, …); its averages stay in float32 at least, as they were.

        In half precision an average would not move: a step of 1 % is less than its rounding.
        """
        before = dict(self._buffers)
        moved = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, buffer in self._buffers.items():
            if buffer is not None and buffer.dtype.is_floating_point and wide(buffer.dtype) != buffer.dtype:
                kept = before[name]
                assert kept is not None
                self._buffers[name] = kept.to(buffer.device, torch.float32)
        return moved

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the state of another layer. A copy of an optimizer has no hooks: this layer sees to itself then."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._copied, self._hooked = self._copied or self._hooked, False

    @torch.no_grad()
    def constrain_(self) -> None:
        """Put the weight back onto its constraint, in place: unit columns, or orthonormal ones."""
        if self.constraint != "none":
            put_back_(self.weight, self.constraint)
        if self.deviation is not None:
            self.deviation.clamp_(min=SMALLEST_SIGMA)
        self._constrained = self.weight._version

    @property
    def filters(self) -> Tensor:
        """Return W (p, k): columns of unit norm, or the weight itself with constraint="none"."""
        if self._copied and self.weight._version != self._constrained:
            self.constrain_()
        if self.constraint in constraints.UNIT_NORM:
            return constraints.unit_norm(self.weight)
        return self.weight

    @property
    def sigma(self) -> Tensor:
        """Return σ (k,): the standard deviations that the loss uses now."""
        if self.sigma_rule == "unit":
            return torch.ones_like(self.variance)
        return self._root(self.variance) if self.deviation is None else self.deviation

    def _rows(self, x: Tensor) -> Tensor:
        """Return x as rows (n, p) in the type of the weight; raise ValueError if it cannot be."""
        if x.shape[-1] != self.in_features:
            raise ValueError(f"rows of {x.shape[-1]} features, this layer has in_features={self.in_features}")
        rows = x.reshape(-1, self.in_features).to(wide(self.weight.dtype))
        if len(rows) < 2 and self.training:
            raise ValueError("the loss needs at least two rows: one row has no variance")
        if self.training and not torch.compiler.is_compiling() and not rows.is_meta:
            refuse_nan(rows)
        return rows

    def _centre(self, rows: Tensor) -> Tensor:
        """Return the mean (1, p) of the batch, and update its average; in evaluation return the average."""
        if not self.training:
            return self.running_mean
        mean = batch_mean(rows, self.sync)
        if not computed_again():
            with torch.no_grad():
                self._average(self.running_mean, mean.squeeze(0), first=True)
        return mean

    def _loss_of_rows(self, x: Tensor) -> Tensor:
        """Return the loss of centred rows (n, p), and count the batch."""
        W = self.filters.to(x.dtype)
        y = x @ W
        sigma = self._current_sigma(y)
        value = objectives.main(x, W, y, h=self._h_of(y.detach() / sigma.detach()), sigma=sigma)
        self._count()
        return value

    def _count(self) -> None:
        if self.training and not computed_again():
            self.batches.add_(1)

    def _current_sigma(self, y: Tensor) -> Tensor:
        """Return σ (1, k) for the components y (n, k) of a batch; update the average of their variances."""
        if not self.training:
            return self.sigma[None]
        with torch.no_grad():
            variance = batch_mean(y.square(), self.sync).squeeze(0)
            if not computed_again():
                self._average(self.variance, variance, first=self.start == "data")
        if self.sigma_rule == "batch":
            return self._root(variance)[None]
        # A copy: the next batch changes the average in place, before a gradient of this loss may be asked for.
        return self.sigma.clone()[None].to(y.dtype)

    def _h_of(self, z: Tensor) -> Any:
        """Return h as a function of z (n, k), with the a of this batch."""
        h = nonlinearities.REGISTRY[self.nonlinearity]
        h = nonlinearities.derivative_one(h) if self.derivative == "one" else h
        if self.a != "auto":
            return lambda z: h(z, self.a)[0]
        state = {"a": self.auto_a, "abs_z": self.auto_abs_z}
        if self.training and not computed_again():
            with torch.no_grad():
                automatic.advance_(state, z, self.momentum, lambda v: batch_mean(v, self.sync))
        a = state["a"].clone()
        return lambda z: h(z, a)[0]

    def _average(self, average: Tensor, value: Tensor, first: bool) -> None:
        """Update a moving average in place; `first`: the first batch replaces it."""
        moved = self.momentum * average + (1 - self.momentum) * value
        average.copy_(torch.where(self.batches == 0, value, moved) if first else moved)

    def _root(self, variance: Tensor) -> Tensor:
        """Return σ of variances: √(v(1 + ε)) with `relative`, else √(v + ε)."""
        factor, added = (1 + self.epsilon, LEAST_VARIANCE) if self.relative else (1.0, self.epsilon)
        return (variance * factor + added).sqrt()

    def _parts(self, parts: Iterable[Tensor]) -> Iterable[Tensor]:
        """Return the batches that `init_pca` is given as rows."""
        return parts

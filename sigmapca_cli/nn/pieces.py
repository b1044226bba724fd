"""What the loss of a layer is made of: its filters, the averages that follow the batches, h with its a."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from sigmapca_cli.methods import automatic, constraints, nonlinearities, objectives
from sigmapca_cli.methods.config import LEAST_VARIANCE
from sigmapca_cli.nn.checks import check_choices, check_numbers, check_sizes
from sigmapca_cli.nn.statistics import batch_mean


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
        self.register_buffer("running_mean", torch.zeros(p, **where))
        self.register_buffer("variance", torch.ones(k, **where))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long, device=device))
        if a == "auto":
            for name, value in automatic.start(self.variance).items():
                self.register_buffer(f"auto_{name}", value)

    @property
    def filters(self) -> Tensor:
        """Return W (p, k): columns of unit norm, or the weight itself with constraint="none"."""
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
        rows = x.reshape(-1, self.in_features).to(self.weight.dtype)
        if len(rows) < 2 and self.training:
            raise ValueError("the loss needs at least two rows: one row has no variance")
        return rows

    def _centre(self, rows: Tensor) -> Tensor:
        """Return the mean (1, p) of the batch, and update its average; in evaluation return the average."""
        if not self.training:
            return self.running_mean
        mean = batch_mean(rows, self.sync)
        with torch.no_grad():
            self._average(self.running_mean, mean.squeeze(0), first=True)
        return mean

    def _loss_of_rows(self, x: Tensor) -> Tensor:
        """Return the loss of centred rows (n, p), and count the batch."""
        W = self.filters
        y = x @ W
        sigma = self._current_sigma(y)
        value = objectives.main(x, W, y, h=self._h_of(y.detach() / sigma.detach()), sigma=sigma)
        if self.training:
            self.batches.add_(1)
        return value

    def _current_sigma(self, y: Tensor) -> Tensor:
        """Return σ (1, k) for the components y (n, k) of a batch; update the average of their variances."""
        if not self.training:
            return self.sigma[None]
        with torch.no_grad():
            variance = batch_mean(y.square(), self.sync).squeeze(0)
            self._average(self.variance, variance, first=self.start == "data")
        if self.sigma_rule == "batch":
            return self._root(variance)[None]
        # A copy: the next batch changes the average in place, before a gradient of this loss may be asked for.
        return self.sigma.clone()[None]

    def _h_of(self, z: Tensor) -> Any:
        """Return h as a function of z (n, k), with the a of this batch."""
        h = nonlinearities.REGISTRY[self.nonlinearity]
        h = nonlinearities.derivative_one(h) if self.derivative == "one" else h
        if self.a != "auto":
            return lambda z: h(z, self.a)[0]
        state = {"a": self.auto_a, "abs_z": self.auto_abs_z}
        if self.training:
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

    def _parts(self, x: Tensor | Iterable[Tensor]) -> Tensor | Iterable[Tensor]:
        """Return what `init_pca` is given as rows."""
        return x

"""`a=auto`: each component's a follows the sign of its non-Gaussianity, 3 where super-, 0.8 where sub-
Gaussian.

The statistic is E|z|, √(2/π) = 0.798 for a Gaussian of unit variance, less for heavy tails (Laplace 0.707),
more for light ones (uniform 0.866). It grows with |z| only, so a heavy tail cannot swing it as it swings a
sample kurtosis.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sigmapca_cli.methods.notation import batch_mean

SUPER, SUB = 3.0, 0.8
GAUSSIAN = math.sqrt(2 / math.pi)


def start(sigma: Tensor) -> dict[str, Tensor]:
    """State before the first batch: a Gaussian's statistic, and the a of super-Gaussian components."""
    return {"a": torch.full_like(sigma, SUPER), "abs_z": torch.full_like(sigma, GAUSSIAN)}


def advance_(
    state: dict[str, Tensor], z: Tensor, momentum: float, mean: Callable[[Tensor], Tensor] = batch_mean
) -> None:
    """E|z|/√E z² of the batch into the moving average, then a from its side of the Gaussian value, in
    place. `mean`: over the rows, (…, b, k) -> (…, 1, k).
    """
    size, power = mean(z.abs()).squeeze(-2), mean(z.square()).squeeze(-2)
    moment = size / power.sqrt().clamp_min(1e-12)
    state["abs_z"].mul_(momentum).add_(moment, alpha=1 - momentum)
    state["a"].copy_(torch.where(state["abs_z"] > GAUSSIAN, SUB, SUPER))

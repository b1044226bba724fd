"""Orderings by index: the masks of nested dropout; which objective an ordering turns another into is in
`registry`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def nested_mask(
    b: int, k: int, rho: float | Tensor, like: Tensor, generator: torch.Generator | None
) -> Tensor:
    """Masks (b, k), one a row: the first j components are kept, p(j) = ρ^(j−1)(1 − ρ), what lies beyond
    k counts as k. With ρ (R,), one for each run, (R, b, k) from the same draws.
    """
    u = torch.rand(b, 1, generator=generator, dtype=torch.float64, device=like.device)
    log_rho = rho.double().log()[:, None, None] if isinstance(rho, Tensor) else math.log(rho)
    last = (torch.log1p(-u) / log_rho).floor()
    index = torch.arange(k, dtype=torch.float64, device=like.device)
    # The first component is always kept: j ≥ 1.
    return (index <= last).to(like.dtype)

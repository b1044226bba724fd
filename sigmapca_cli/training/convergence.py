"""Has a run converged? The norm of the tangent gradient over many rows, relative to the variance of each filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.sources.base import Source
from sigmapca_cli.training.arrays import Array, on_host

if TYPE_CHECKING:
    from torch import Tensor

ROWS = 65_536  # enough rows for a standard error well under the default tolerance


def relative_gradient(method: Any, state: dict[str, Array], source: Source, *, rows: int = ROWS) -> Array:
    """‖gradient of column j‖ / (2σ_j²), (k,): dimensionless, 0 at a stationary point of the constrained problem.

    σ_j is the std of component j, whether W or a rotation V behind a projection is trained. For two layers each entry
    is the larger one of a column of W and of V. Only the part of the gradient counts that the constraint lets act.

    The gradient is averaged over at most `rows` evenly spaced rows. The state is copied, so that a measurement
    leaves the moving averages alone, and σ in the copy is exact where the rule follows the data: the noise of a
    moving average is no property of the filters.
    """
    index = np.unique(np.linspace(0, source.n - 1, min(rows, source.n)).astype(np.int64))
    blocks = np.array_split(index, max(1, len(index) // 2048))
    if on_host(state["W"]):
        return method.relative_gradient(state, source, blocks)
    return relative_gradient_of_torch(method, state, source, blocks)


def relative_gradient_of_torch(
    method: Any, state: dict[str, Tensor], source: Source, blocks: list[np.ndarray]
) -> Tensor:
    """The same over rows in blocks of numbers, for every composition that there is."""
    import torch

    state = with_exact_sigma(method, state, torch.as_tensor(source.covariance()[1]))
    layers = {method.trained: method.constraint}
    directions = {method.trained: method.directions(state)}
    if method.second:
        layers["V"] = method.model.second_constraint
        directions = {"W": method.effective(state["W"]), "V": method.directions(state)}
    total = {name: torch.zeros_like(state[name]) for name in layers}
    second = {name: torch.zeros_like(F[..., 0, :]) for name, F in directions.items()}
    seen = 0
    generator = torch.Generator(device=state["W"].device).manual_seed(0)
    for block in blocks:
        x = torch.from_numpy(source.rows(block)).to(state["W"])
        copy = {name: value.clone() for name, value in state.items()}
        _, gradients = method.gradient(copy, x, generator)
        for name in layers:
            total[name] += gradients[name] * len(block)
            second[name] += (x @ directions[name]).square().sum(-2)
        seen += len(block)
    sizes = []
    for name, constraint in layers.items():
        gradient = effective_gradient(constraint, total[name] / seen, state[name])
        variance = (second[name] / seen).clamp_min(torch.finfo(gradient.dtype).tiny)
        sizes.append(gradient.norm(dim=-2) / (2 * variance))
    return torch.stack(sizes).amax(0)


def effective_gradient(constraint: str, gradient: Tensor, W: Tensor) -> Tensor:
    """The part of a gradient (…, p, k) that moves W when the constraint follows the step, to first order.

    unit_norm: less its part along each column; symmetric: less W·sym(WᵀG); gram_schmidt: of the part within the
    span only what the strict lower triangle of WᵀG turns; weight_norm: the gradient of the unit filters.
    """
    import torch

    from sigmapca_cli.training.optimizers import tangent

    if constraint == "weight_norm":
        return gradient * torch.linalg.vector_norm(W, dim=-2, keepdim=True)
    if constraint == "unit_norm":
        return tangent(gradient, W)
    inside = W.mT @ gradient
    if constraint == "symmetric":
        return gradient - W @ (inside + inside.mT) / 2
    if constraint == "gram_schmidt":
        lower = inside.tril(-1)
        return gradient - W @ (inside - lower + lower.mT)
    return gradient


def with_exact_sigma(method: Any, state: dict[str, Tensor], C: Tensor) -> dict[str, Tensor]:
    """A copy of the state in which a σ that follows the data is the data's own, √diag(WᵀCW)."""
    import torch

    state = {name: value.clone() for name, value in state.items()}
    if method.trained == "W" and method.sigma.name in ("ema", "data") and "sigma" in state:
        W = method.effective(state["W"]).to(C)
        variance = torch.einsum("...pk,...pk->...k", W, C @ W).to(state["sigma"])
        state["sigma"].copy_(variance.sqrt())
        if "variance" in state:
            state["variance"].copy_(variance)
    return state

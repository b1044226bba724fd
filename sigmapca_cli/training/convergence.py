"""Has a run converged? The norm of the tangent gradient over many rows, relative to the variance of each filter."""

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.methods.method import Method
from sigmapca_cli.sources.base import Source
from sigmapca_cli.training.optimizers import tangent

ROWS = 65_536  # enough rows for a standard error well under the default tolerance


def relative_gradient(
    method: Method, state: dict[str, Tensor], source: Source, *, rows: int = ROWS
) -> Tensor:
    """‖gradient of column j‖ / (2σ_j²), (k,): dimensionless, 0 at a stationary point.

    Where the columns are held at unit norm the gradient is the tangent one.

    The gradient is averaged over at most `rows` evenly spaced rows. The state is copied, so that a measurement
    leaves the moving averages alone, and σ in the copy is exact where the rule follows the data: the noise of a
    moving average is no property of the filters.
    """
    state = with_exact_sigma(method, state, torch.as_tensor(source.covariance()[1]))
    index = np.unique(np.linspace(0, source.n - 1, min(rows, source.n)).astype(np.int64))
    total, seen = torch.zeros_like(state[method.trained]), 0
    trained = method.trained
    W = state["W"]
    second = torch.zeros(W.shape[-1], dtype=W.dtype, device=W.device)
    generator = torch.Generator(device=W.device).manual_seed(0)
    for block in np.array_split(index, max(1, len(index) // 4096)):
        x = torch.from_numpy(source.rows(block)).to(device=W.device, dtype=W.dtype)
        copy = {name: value.clone() for name, value in state.items()}
        _, gradients = method.gradient(copy, x, generator)
        total += gradients[trained] * len(block)
        second += (x @ W).square().sum(0)
        seen += len(block)
    gradient = total / seen
    if trained in method.tangent_parameters:
        gradient = tangent(gradient, state[trained])
    variance = (second / seen).clamp_min(torch.finfo(W.dtype).tiny)
    return gradient.norm(dim=-2) / (2 * variance)


def with_exact_sigma(method: Method, state: dict[str, Tensor], C: Tensor) -> dict[str, Tensor]:
    """A copy of the state in which a σ that follows the data is the data's own, √diag(WᵀCW)."""
    state = {name: value.clone() for name, value in state.items()}
    if method.trained == "W" and method.sigma.name in ("ema", "data") and "sigma" in state:
        W = state["W"].to(C)
        variance = torch.einsum("...pk,...pk->...k", W, C @ W).to(state["sigma"])
        state["sigma"].copy_(variance.sqrt())
        if "variance" in state:
            state["variance"].copy_(variance)
    return state

"""Has a run converged? The norm of the tangent gradient over many rows, relative to the variance of each filter."""

import torch
from torch import Tensor

from sigmapca_cli.methods.method import Method
from sigmapca_cli.sources.base import Source
from sigmapca_cli.training.optimizers import tangent

ROWS = 65_536  # enough rows for a standard error well under the default tolerance


def relative_gradient(
    method: Method, state: dict[str, Tensor], source: Source, *, normed: bool, rows: int = ROWS
) -> Tensor:
    """‖tangent gradient of column j‖ / (2σ_j²), (k,): dimensionless, 0 at a stationary point.

    The gradient is averaged over at most `rows` evenly spaced rows; σ is that of these rows. The state is copied:
    a measurement leaves the moving averages alone.
    """
    import numpy as np

    index = np.unique(np.linspace(0, source.n - 1, min(rows, source.n)).astype(np.int64))
    total, seen = None, 0
    W = state["W"]
    second = torch.zeros(W.shape[-1], dtype=W.dtype, device=W.device)
    generator = torch.Generator(device=W.device).manual_seed(0)
    for block in np.array_split(index, max(1, len(index) // 4096)):
        x = torch.from_numpy(source.rows(block)).to(device=W.device, dtype=W.dtype)
        copy = {name: value.clone() for name, value in state.items()}
        _, gradients = method.gradient(copy, x, generator)
        part = gradients["W"] * len(block)
        total = part if total is None else total + part
        second += (x @ W).square().sum(0)
        seen += len(block)
    gradient = total / seen
    if normed:
        gradient = tangent(gradient, W)
    variance = (second / seen).clamp_min(torch.finfo(W.dtype).tiny)
    return gradient.norm(dim=-2) / (2 * variance)

"""Linear ICA as a layer: nonlinear PCA whitens, and a rotation of the whitened components follows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sigmapca_cli.methods import constraints, objectives
from sigmapca_cli.nn.layer import SigmaPCA
from sigmapca_cli.nn.pieces import put_back_, random_orthonormal_


class LinearICA(SigmaPCA):
    """A layer y = (x − μ)WΣ⁻¹V with components of unit variance: `SigmaPCA`, then a rotation V.

    Parameters
    ----------
    in_features : int
        Features of a row, p.
    n_components : int
        Components, k ≤ p.
    **settings : Any
        Those of `SigmaPCA`; a must be a number and sigma "ema" or "batch".

    Attributes
    ----------
    rotation : Parameter of shape (k, k)
        What the optimizer moves; `V` is made of it.

    Raises
    ------
    ValueError
        If a setting does not fit.

    Notes
    -----
    The loss is E‖x̃ − h(x̃V)[Vᵀ]sg‖² + E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖² with x̃ = x[WΣ⁻¹]sg (paper, linear ICA), as
    model=lica of the command line has it. After a step V is made orthogonal by the symmetric constraint.
    """

    def __init__(self, in_features: int, n_components: int, **settings: Any) -> None:
        super().__init__(in_features, n_components, **settings)
        if self.a == "auto" or self.sigma_rule not in ("ema", "batch"):
            raise ValueError("LinearICA: give a number for a, and sigma ema or batch")
        self.rotation = nn.Parameter(
            torch.empty(n_components, n_components, dtype=self.weight.dtype, device=self.weight.device)
        )
        random_orthonormal_(self.rotation)

    def reset_parameters(self) -> None:
        """Set weight and rotation to random orthonormal columns, and the averages to what they are at the start."""
        super().reset_parameters()
        if "rotation" in self._parameters:  # not yet, where the layer is being made
            random_orthonormal_(self.rotation)

    @property
    def V(self) -> Tensor:
        """Return V (k, k), with columns of unit norm."""
        return constraints.unit_norm(self.rotation)

    @property
    def encoder(self) -> Tensor:
        """Return WΣ⁻¹V (p, k)."""
        V = self.V
        return (self.filters / self.sigma).to(V.dtype) @ V

    def _loss_of_rows(self, x: Tensor) -> Tensor:
        """Return the losses of both layers on centred rows (n, p), and count the batch."""
        W, V = self.filters.to(x.dtype), self.V.to(x.dtype)
        y = x @ W
        sigma = self._current_sigma(y)
        h = self._h_of(y)
        whitened = y.detach() / sigma
        first = objectives.main(x, W, y, h=h, sigma=sigma)
        second = objectives.main(whitened, V, whitened @ V, h=h, sigma=torch.ones_like(sigma))
        self._count()
        return first + second

    @torch.no_grad()
    def constrain_(self) -> None:
        """Put weight and rotation back onto their constraints, in place."""
        super().constrain_()
        put_back_(self.rotation, "symmetric")

    def _on_filters(self, y: Tensor) -> Tensor:
        """Return yVᵀΣ, what components are along the filters."""
        V = self.V
        return (y @ V.mT * self.sigma).to(V.dtype)  # σ may have a wider type

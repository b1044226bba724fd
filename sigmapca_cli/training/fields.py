"""The vector field that training follows: the average effect of a step at any filters, by groups of rows.

A method defines a field G(A): the effective gradient of its trained matrix A, that is, the part of the gradient that
its constraint permits. Training is stationary where G = 0. `convergence` evaluates G at filters close to those of a
run. σ is exact over the data, because the noise of a moving average is no property of the filters.

A field is that of one trained matrix, with the rest of the state held constant. Coordinates are those of the rows x, or
of their projection (`within`). parameter (q, k): the trained matrix; directions (q_x, k): x @ directions are the
components; draws: whether G depends on random numbers besides the rows; rigid: whether a constraint keeps the matrix
orthonormal; inner: whether the matrix is a rotation (k, k) of components after a projection; cost: time per row, about,
in units of that of the hand-written step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.data.moments.implicit import Covariance
from sigmapca_cli.methods.solution import deviations

if TYPE_CHECKING:
    from torch import Tensor

    from sigmapca_cli.methods.numpy_main import NumpyMain

Array = np.ndarray

GROWTH = 4.0
"""A trained σ or a is also evaluated at this multiple of its value."""


@dataclass(frozen=True)
class NumpyMainField:
    """The field of `NumpyMain`.

    G = 2E[xᵀ((ŷWᵀW − y) ⊙ h′)] less its radial part, ŷ = aσ·tanh(y/(aσ)), σ = √diag(WᵀCW). a: a number, or (k,).
    """

    method: NumpyMain
    parameter: Array
    C: Covariance
    a: Any
    fixed_sigma: Array | None = None
    draws: bool = False
    rigid: bool = False
    inner: bool = False
    cost: int = 1

    @property
    def directions(self) -> Array:
        return self.parameter

    def deviations(self, C: Covariance) -> Array:
        """Return σ (k,) of the components on rows of covariance C; 1 for a second layer, which follows whitening."""
        return deviations(self.parameter, C)

    def at(self, A: Array, x: Array) -> Array:
        """Return the effective gradient (G, q, k) at A (q, k), averaged over each group of rows x (G, b, q_x)."""
        sigma = self.fixed_sigma
        if sigma is None:
            factor, added = self.method.sigma.grown if self.method.sigma.name == "ema" else (1.0, 0.0)
            sigma = np.sqrt(factor * np.square(deviations(A, self.C)) + added)
        kind = x.dtype
        scale, W = (sigma * self.a).astype(kind), A.astype(kind)
        y = x @ W
        t = y / scale
        np.tanh(t, out=t)
        inner = (t * scale) @ (W.T @ W)
        inner -= y
        if self.method.nonlinearity.derivative != "one":
            t *= t
            np.subtract(1, t, out=t)
            inner *= t
        G = (x.swapaxes(-1, -2) @ inner).astype(np.float64)
        G *= 2 / x.shape[-2]
        return G - A * ((A * G).sum(-2, keepdims=True) / np.square(A).sum(-2, keepdims=True))

    def within(self, Q: Array, C: Array) -> NumpyMainField:
        """Return the field for rows x @ Q of covariance C (m, m); Q (q_x, m) spans the directions."""
        return replace(self, parameter=Q.T @ self.parameter, C=C)


@dataclass(frozen=True)
class AutogradField:
    """The field of any other method, by autograd in float64.

    `layer` is "W", or "V" for a rotation after a projection and for a second layer.
    """

    method: Any
    layer: str
    state: dict[str, Tensor]
    C: Tensor
    draws: bool = False
    cost: int = 2

    @property
    def parameter(self) -> Array:
        A = self.state[self.layer]
        return np.asarray(self.method.effective(A) if self.layer == self.method.trained else A)

    @property
    def directions(self) -> Array:
        second = self.layer == "V" and self.method.second is not None
        W = self.state["W"] if second else self.method.directions(self.state)
        if self.layer == "W":
            W = self.method.effective(self.state["W"])
        return np.asarray(W)

    @property
    def inner(self) -> bool:
        return self.layer == "V"

    @property
    def constraint(self) -> str:
        first = self.layer == self.method.trained
        return str(self.method.constraint if first else self.method.model.second_constraint)

    @property
    def rigid(self) -> bool:
        return self.constraint in ("symmetric", "gram_schmidt")

    def deviations(self, C: Covariance) -> Array:
        second = self.layer == "V" and self.method.second is not None
        return np.ones(self.parameter.shape[1]) if second else deviations(self.directions, C)

    def at(self, A: Array, x: Array) -> Array:
        import torch

        rows = torch.from_numpy(np.ascontiguousarray(x)).to(torch.float64)
        matrix = torch.from_numpy(np.ascontiguousarray(A))
        state = with_exact_sigma(self.method, {**self.state, self.layer: matrix}, self.C)
        state = {n: v.expand(len(rows), *v.shape).clone() for n, v in state.items()}
        generator = torch.Generator().manual_seed(0)
        _, gradients = self.method.gradient(state, rows, generator)
        return np.asarray(effective_gradient(self.constraint, gradients[self.layer], matrix))

    def within(self, Q: Array, C: Array) -> AutogradField:
        import torch

        W = torch.from_numpy(Q.T) @ self.state["W"]
        return replace(self, state={**self.state, "W": W}, C=torch.from_numpy(C))


Field = NumpyMainField | AutogradField


def fields_of(method: Any, state: dict[str, Any], C: Covariance, size: float) -> list[Field]:
    """Return the fields of a run, one for each trained matrix. C (p, p) covariance of the rows, `size` = E‖x‖."""
    if isinstance(state["W"], np.ndarray):
        W = state["W"].astype(np.float64)
        fixed = state["sigma"].astype(np.float64) if method.sigma.name == "unit" else None
        return [NumpyMainField(method, W, C, method.scale(state), fixed)]
    import torch

    from sigmapca_cli.methods.implicit_tensor import tensor_of

    values = {n: v.detach().to("cpu", torch.float64, copy=True) for n, v in state.items()}
    if method.model.beta == "input_norm":
        values["beta"] = torch.tensor(method.model.beta_0 * size, dtype=torch.float64)
    if method.model.centring == "batch":
        # The rows of a data set are centred already; a small group must not be centred on its own mean.
        method = replace(method, model=replace(method.model, centring="data"))
    # σ is computed exactly beforehand: the rows of a group must not change it.
    exact = "data" if method.sigma.name == "batch" else method.sigma.name
    method = replace(method, sigma=replace(method.sigma, momentum=1.0, name=exact))
    if method.constraint == "weight_norm":
        values[method.trained] = method.effective(values[method.trained])
    layers = [method.trained, *(["V"] if method.second else [])]
    draws = "mask" in method.objective.needs
    return [
        AutogradField(method, layer, given, tensor_of(C), draws)
        for given in (values, *with_grown_scales(method, values))
        for layer in layers
    ]


def with_grown_scales(method: Any, state: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Return the state with a larger σ or a if these are trained; else no state.

    Filters that are stationary for a small σ or a may not be stationary for a large one. A σ without a regulariser
    grows during the whole run, with the same effect as a growing a.
    """
    moving = ["sigma"] if method.trains_sigma and not method.sigma.l2 else []
    moving += ["a"] if method.trains_a else []
    return [{**state, **{name: GROWTH * state[name] for name in moving}}] if moving else []


def effective_gradient(constraint: str, gradient: Tensor, W: Tensor) -> Tensor:
    """Return the part of a gradient (…, p, k) that changes W, to first order, if the constraint follows the step.

    unit_norm: G less its part along each column; symmetric: G − W·sym(WᵀG); gram_schmidt: within the span only the
    rotations of the strict lower triangle of WᵀG; weight_norm: the gradient of the unit-norm filters.
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
    """Return a copy of the state in which a σ that is estimated from the data is exact, √diag(WᵀCW)."""
    import torch

    state = {name: value.clone() for name, value in state.items()}
    if method.sigma.name in ("ema", "data") and "sigma" in state:
        W = method.effective(state["W"]) if method.trained == "W" else method.directions(state)
        W = W.to(torch.float64)
        variance = torch.einsum("...pk,...pk->...k", W, C @ W).to(state["sigma"])
        state["sigma"].copy_(variance.sqrt())
        if "variance" in state:
            state["variance"].copy_(variance)
    return state

"""The value of a composed method on one batch: objective, regularisers, the ordering's term, the second layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sigmapca_cli.methods import automatic, ordering, regularisers
from sigmapca_cli.methods.notation import batch_mean, linear_weights, rows, sg, sq
from sigmapca_cli.methods.objectives import ordering_triangle, subspace_form, tied
from sigmapca_cli.methods.pieces import Pieces

H = Callable[[Tensor], Tensor]
State = dict[str, Tensor]

NORMS: dict[str, H] = {
    "spectral": lambda sigma: sigma.amax(-1),
    "frobenius": lambda sigma: sigma.square().sum(-1).sqrt(),
    "nuclear": lambda sigma: sigma.sum(-1),
}


def evaluate(
    method: Pieces, state: State, leaves: State, x: Tensor, generator: torch.Generator | None
) -> tuple[Tensor, Tensor | None]:
    """Loss (…) with its graph to `leaves`, and ΔW (…, p, k) where the objective is an update (the loss is then
    what was added to it)."""
    W = leaves[method.trained]
    y = x @ W
    sigma = rows(leaves["sigma"] if method.trains_sigma else method.current_sigma(state, y.detach()))
    with torch.no_grad():
        a = method.current_a(state, y.detach() / sigma)
    a = rows(leaves["a"]) if method.trains_a else a

    def h(z: Tensor) -> Tensor:
        return method.h_graph(z, a, method.current_c)[0]

    given = {"h": h, "sigma": sigma, "mean": batch_mean, **numbers(method, state, x, y, generator)}
    flows = method.model.mean_gradient
    given["linear"] = subspace_form if method.model.reconstruction == "subspace" else tied
    given["norm"] = NORMS[method.model.norm]
    given["inner"] = sg if flows == "none" else same
    given["outer"] = same if flows == "both" else sg
    value = method.objective.fn(x, W, y, **{name: given[name] for name in method.objective.needs})
    update = value.detach() if method.objective.kind == "update" else None
    loss = y.new_zeros(y.shape[:-2]) if update is not None else value
    loss = loss + added(method, x, W, y, h, sigma)
    if method.second is not None:
        loss = loss + second_layer(method, state, leaves["V"], y.detach(), h)
    return loss, update


def same(v: Tensor) -> Tensor:
    """Return v, through which the gradient flows."""
    return v


def numbers(
    method: Pieces, state: State, x: Tensor, y: Tensor, generator: torch.Generator | None
) -> dict[str, Any]:
    """α, β, λ and the mask, those that the objective needs; a sweep's own α and β stand in the state."""
    needs, given = method.objective.needs, {}
    if "alpha" in needs:
        given["alpha"] = state.get("alpha", method.model.alpha)
    if "beta" in needs:
        beta = state.get("beta", method.model.beta)
        if isinstance(beta, str):
            size = sq(x).sqrt().mean(-1)
            beta = state.get("beta_0", method.model.beta_0) * size
        given["beta"] = beta
    if "lam" in needs:
        given["lam"] = weights(method, y)
    if "mask" in needs:
        k, rho = y.shape[-1], method.ordering.rho
        mask = ordering.nested_mask(y.shape[-2], k, rho, y, generator)
        given["mask"] = ordering.widen(mask, state, method.ordering.sweep) if method.sweeps else mask
    return given


def weights(method: Pieces, y: Tensor) -> Tensor:
    """Λ: linear (k,), or [E y²/max E y²]sg (…, 1, k) over the batch  (paper, weighted variance maximisation)."""
    if method.model.weights == "linear":
        return linear_weights(y.shape[-1], method.model.lambda_min, y)
    variance = batch_mean(y.detach().square())
    return (variance / variance.amax(-1, keepdim=True).clamp_min(1e-30)).clamp_min(method.model.lambda_min)


def added(method: Pieces, x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """The regularisers with their weights, the ordering's own term, and σ's L2."""
    total = y.new_zeros(y.shape[:-2])
    constant = sigma.detach()
    for name, weight in method.terms.items():
        total = total + weight * regularisers.REGISTRY[name](x, W, y, constant.squeeze(-2))
    rule = method.ordering
    # An objective with a triangular form of its own was replaced by it; any other gets the term added.
    if rule.name == "triangular" and method.objective.name not in ("latent_wtw_triangular", "gha"):
        term = ordering_triangle(W, y, h(y / constant), constant, rule.form)
        total = total + rule.weight * term
    if rule.name == "gram_schmidt_regulariser":
        # The paper's J has no ½ here, unlike the asymmetric regulariser.
        term = 2 * regularisers.asymmetric_off_diagonal(x, W, y, constant)
        total = total + rule.weight * term
    if method.trains_sigma and method.sigma.l2:
        total = total + method.sigma.l2 * sigma.square().sum((-2, -1))
    return total


def second_layer(method: Pieces, state: State, V: Tensor, y: Tensor, h: H) -> Tensor:
    """The second layer of linear ICA: its objective on x[WΣ⁻¹]sg, with V in the place of W and unit σ."""
    assert method.second is not None
    sigma = rows(state["sigma"])
    whitened = y / sigma
    z = whitened @ V
    given: dict[str, Any] = {"h": h, "sigma": torch.ones_like(sigma)}
    if method.automatic_a:
        own = {name: state[f"V.{name}"] for name in ("a", "abs_z")}
        automatic.advance_(own, z.detach(), method.sigma.momentum)
        given["h"] = lambda z: method.h_graph(z, rows(own["a"]), method.current_c)[0]
    return method.second.fn(whitened, V, z, **{n: given[n] for n in method.second.needs})

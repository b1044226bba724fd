"""The objectives by name: the function, what it needs, and the objective that an ordering or a centring
makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sigmapca_cli.methods import objectives as L
from sigmapca_cli.methods import updates as U


@dataclass(frozen=True)
class Objective:
    """One row: `kind` loss or update; `needs` of h, sigma, lam, mask, mean, alpha, beta; `becomes`: option ->
    objective.
    """

    name: str
    kind: str
    fn: Callable[..., Any]
    needs: tuple[str, ...] = ()
    becomes: dict[str, str] = field(default_factory=dict)
    differentiates_h: bool = False


_MAIN = {
    "deflation": "main_deflation",
    "nested_dropout": "main_nested_dropout",
    "weighted_latent": "main_weighted_latent",
    "noncentred": "main_noncentred",
    "noncentred_mean": "main_noncentred_mean",
}

_ROWS = [
    Objective("linear_ae", "loss", L.linear_ae, (), {"nested_dropout": "nested_dropout_linear"}),
    Objective("wsla_unit_norm", "loss", L.wsla_unit_norm, ("sigma", "lam")),
    Objective("reconstruction_gha", "loss", L.reconstruction_gha),
    Objective("nested_dropout_linear", "loss", L.nested_dropout_linear, ("mask",)),
    Objective("weighted_variance", "loss", L.weighted_variance, ("lam", "alpha")),
    Objective("variance_dropout", "loss", L.variance_dropout, ("mask", "alpha")),
    Objective("conventional", "loss", L.conventional, ("h",), differentiates_h=True),
    Objective("main", "loss", L.main, ("h", "sigma"), _MAIN, True),
    Objective("main_with_decoder", "loss", L.main_with_decoder, ("h", "sigma"), {}, True),
    Objective("main_scaled_decoder", "loss", L.main_scaled_decoder, ("h", "sigma"), {}, True),
    Objective("main_deflation", "loss", L.main_deflation, ("h", "sigma"), {}, True),
    Objective("main_nested_dropout", "loss", L.main_nested_dropout, ("h", "sigma", "mask"), {}, True),
    Objective("main_weighted_latent", "loss", L.main_weighted_latent, ("h", "sigma", "lam"), {}, True),
    Objective("main_noncentred", "loss", L.main_noncentred, ("h", "sigma", "mean"), {}, True),
    Objective("main_noncentred_mean", "loss", L.main_noncentred_mean, ("h", "sigma", "mean"), {}, True),
    Objective("latent", "loss", L.latent, ("h", "sigma"), {}, True),
    Objective(
        "latent_wtw",
        "loss",
        L.latent_wtw,
        ("h", "sigma"),
        {"triangular": "latent_wtw_triangular", "weighted_latent": "main_weighted_latent"},
        True,
    ),
    Objective("latent_wtw_triangular", "loss", L.latent_wtw_triangular, ("h", "sigma"), {}, True),
    Objective("rica", "loss", L.rica, ("beta",)),
    Objective("rica_logcosh", "loss", L.rica_logcosh, ("beta",)),
    Objective("skew_symmetric", "loss", L.skew_symmetric, ("h", "beta")),
    Objective("symmetric_off_diagonal", "loss", L.symmetric_off_diagonal, ("h", "beta")),
    Objective("symmetric_off_diagonal_sigma", "loss", L.symmetric_off_diagonal_sigma, ("h", "sigma", "beta")),
    Objective("subspace", "update", U.subspace, (), {"triangular": "gha"}),
    Objective("wsla_1", "update", U.wsla_1, ("lam",)),
    Objective("wsla_2", "update", U.wsla_2, ("lam",)),
    Objective("wsla_3", "update", U.wsla_3, ("lam",)),
    Objective("gha", "update", U.gha),
    Objective("gha_encoder", "update", U.gha_encoder),
    Objective("gha_subspace", "update", U.gha_subspace),
    Objective("easi", "update", U.easi, ("h", "alpha")),
    Objective("bigradient", "update", U.bigradient, ("h", "sigma")),
]

OBJECTIVES: dict[str, Objective] = {row.name: row for row in _ROWS}

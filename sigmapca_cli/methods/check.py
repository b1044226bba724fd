"""Which pieces make sense together: one InputError line for those that do not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sigmapca_cli.methods import objectives, regularisers, updates  # noqa: F401  objectives register
from sigmapca_cli.methods.config import SCALED, refuse_unused
from sigmapca_cli.methods.registry import OBJECTIVES, Objective
from sigmapca_cli.settings.checks import choice
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.settings.schema import Config


def normalise_regularisers(given: Any) -> dict[str, float]:
    """A mapping name -> weight, from a mapping, a list of names (weight 1), "name: weight, name", or nothing.

    The model files use the text: Hydra would merge a mapping with the one given on the command line, and refuse
    to put a list in its place.
    """
    if not given:
        return {}
    if isinstance(given, str):
        given = dict(_pair(part) for part in given.strip("{}").split(",") if part.strip())
    pairs = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, 1.0)
    for name, weight in pairs.items():
        choice("regularisers", str(name), tuple(regularisers.REGISTRY))
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight):
            raise InputError(f"regularisers.{name}={weight}: must be a finite number")
    return {str(name): float(weight) for name, weight in pairs.items() if weight}


def _pair(part: str) -> tuple[str, float]:
    name, _, weight = part.partition(":")
    try:
        return name.strip(), float(weight) if weight.strip() else 1.0
    except ValueError:
        raise InputError(f"regularisers.{name.strip()}={weight.strip()}: must be a finite number") from None


def check(cfg: Config, terms: dict[str, float]) -> tuple[Objective, Objective | None]:
    """The objective (as the ordering and the centring make it) and the second layer's, or an InputError."""
    choice("model.objective", cfg.model.objective, tuple(OBJECTIVES))
    objective = _ordered(_centred(OBJECTIVES[cfg.model.objective], cfg), cfg)
    second = None
    if cfg.model.second != "none":
        choice("model.second", cfg.model.second, tuple(OBJECTIVES))
        second = OBJECTIVES[cfg.model.second]
        if cfg.model.project != "none":
            raise InputError(
                "model.second: needs model.project=none: V is trained already behind a projection"
            )
        if cfg.sigma.name == "unit":
            raise InputError("sigma=unit: the second layer needs components of unit variance; set sigma=ema")
    refuse_unused(cfg.model, (*objective.needs, *(second.needs if second else ())))
    _check_mean(cfg)
    _check_sweep(cfg, objective)
    if cfg.model.order == "negentropy":
        raise InputError(
            "model.order=negentropy: needs the rows once more; it is for model=fastica and model=picard"
        )
    if cfg.model.order == "mixing" and second is None and cfg.model.project != "whiten":
        raise InputError("model.order=mixing: is for linear ICA; the filters of PCA are their own mixing")
    _check_nonlinearity(cfg, objective)
    _check_sigma(cfg, objective, terms)
    return objective, second


def _becomes(objective: Objective, option: str, value: str) -> Objective:
    if value in objective.becomes:
        return OBJECTIVES[objective.becomes[value]]
    can = [name for name, row in OBJECTIVES.items() if value in row.becomes]
    raise InputError(
        f"{option}={value}: not defined for objective {objective.name}; it is for {', '.join(can) or 'none'}"
    )


def _centred(objective: Objective, cfg: Config) -> Objective:
    centring = cfg.model.centring
    if centring == "data" and not cfg.data.centre:
        raise InputError(
            "model.centring=data: data.centre=false leaves the rows uncentred; set model.centring=batch, noncentred or "
            "noncentred_mean"
        )
    return objective if centring in ("batch", "data") else _becomes(objective, "model.centring", centring)


def _ordered(objective: Objective, cfg: Config) -> Objective:
    name = cfg.ordering.name
    if name in ("none", "gram_schmidt_regulariser"):
        return objective
    if "mask" in objective.needs and name == "nested_dropout":
        return objective
    if name == "triangular" and name not in objective.becomes:
        if "sigma" not in objective.needs:
            raise InputError(
                f"ordering=triangular: objective {objective.name} has no σ to scale its term with"
            )
        return objective
    return _becomes(objective, "ordering", name)


def _check_mean(cfg: Config) -> None:
    if cfg.model.mean == "ema" and (cfg.model.centring != "batch" or cfg.model.project != "none"):
        raise InputError("model.mean=ema: needs model.centring=batch and model.project=none")


def _check_sweep(cfg: Config, objective: Objective) -> None:
    if not cfg.ordering.sweep:
        return
    if "mask" not in objective.needs:
        raise InputError(
            f"ordering.sweep={cfg.ordering.sweep}: is for nested dropout; set ordering=nested_dropout"
        )
    if cfg.constraint.name in ("symmetric", "gram_schmidt"):
        raise InputError(
            f"ordering.sweep={cfg.ordering.sweep}: constraint={cfg.constraint.name} moves the frozen columns; set "
            "constraint=unit_norm or none"
        )


def _check_nonlinearity(cfg: Config, objective: Objective) -> None:
    name, a = cfg.nonlinearity.name, cfg.nonlinearity.a
    if "h" not in objective.needs and name != "identity":
        raise InputError(
            f"nonlinearity={name}: objective {objective.name} uses no nonlinearity; set nonlinearity=identity"
        )
    if name == "sign" and objective.differentiates_h and cfg.nonlinearity.derivative != "one":
        raise InputError(
            "nonlinearity=sign: its derivative is 0, nothing is learned; set nonlinearity.derivative=one"
        )
    if name == "trainable_scaled_tanh" and not objective.differentiates_h:
        raise InputError(
            f"nonlinearity={name}: objective {objective.name} gives a no gradient; use scaled_tanh"
        )
    if a == "auto" and (name not in SCALED or name == "trainable_scaled_tanh"):
        raise InputError(f"a=auto: nonlinearity {name} has no a to choose; use nonlinearity=scaled_tanh")


def _check_sigma(cfg: Config, objective: Objective, terms: dict[str, float]) -> None:
    if cfg.sigma.name == "trainable" and "sigma" not in objective.needs:
        raise InputError(f"sigma=trainable: objective {objective.name} does not use σ; set sigma=unit")
    if cfg.sigma.name == "trainable" and not objective.differentiates_h:
        raise InputError(f"sigma=trainable: objective {objective.name} holds σ constant; set sigma=ema")

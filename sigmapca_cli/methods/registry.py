"""The objectives by name. A function joins by a decorator; what it needs is read from its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
COMMON = ("x", "W", "y")
AVAILABLE = ("h", "sigma", "lam", "mask", "mean", "inner", "outer", "linear", "norm", "alpha", "beta")
"""What an objective may ask for by the name of an argument, beside x, W and y = xW."""


@dataclass(frozen=True)
class Objective:
    """One objective.

    kind: "loss", or "update" where the function returns ΔW. needs: its arguments after x, W, y, all of `AVAILABLE`.
    becomes: the objective that an ordering or a centring makes of it, by the name of that option.
    differentiates_h: whether h′ enters the gradient.
    """

    name: str
    kind: str
    fn: Callable[..., Any]
    needs: tuple[str, ...] = ()
    becomes: dict[str, str] = field(default_factory=dict)
    differentiates_h: bool = False


OBJECTIVES: dict[str, Objective] = {}
"""All objectives; complete once `methods.objectives` and `methods.updates` are imported, as `methods.check` does."""


def objective(
    becomes: dict[str, str] | None = None, holds_h: bool = False, kind: str = "loss"
) -> Callable[[Function], Function]:
    """Return a decorator that registers a loss f(x, W, y, …) under the name of the function.

    holds_h: the function takes h, and only its value: h′ is in no gradient. Raises TypeError for an argument that is
    none of `AVAILABLE`.
    """

    def register(fn: Function) -> Function:
        arguments = tuple(inspect.signature(fn).parameters)
        needs = arguments[len(COMMON) :]
        if arguments[: len(COMMON)] != COMMON or not set(needs) <= set(AVAILABLE):
            raise TypeError(
                f"{fn.__name__}{arguments}: must take x, W, y and then only {', '.join(AVAILABLE)}"
            )
        differentiates = "h" in needs and kind == "loss" and not holds_h
        OBJECTIVES[fn.__name__] = Objective(fn.__name__, kind, fn, needs, becomes or {}, differentiates)
        return fn

    return register


def update(becomes: dict[str, str] | None = None) -> Callable[[Function], Function]:
    """Return a decorator that registers an update ΔW = f(x, W, y, …), for which the paper gives no loss."""
    return objective(becomes, kind="update")

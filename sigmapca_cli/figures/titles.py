"""What a figure or a page is called: the method, the data, and the number that shapes the result."""

from __future__ import annotations

from typing import Any

UNIT = "units of x"
"""The unit of σ: x are the rows, centred and divided as data.standardise says. A loss has its square."""


def run_title(run: Any, seed: bool = True) -> str:
    """Return "nlpca on planted, a = 4, seed 0", as far as the run knows."""
    attrs = run.attrs
    parts = [f"{attrs.get('model', 'run')}" + (f" on {attrs['data']}" if attrs.get("data") else "")]
    parts += [scale] if (scale := knob(run)) else []
    parts += [f"seed {attrs['seed']}"] if seed and attrs.get("seed") is not None else []
    return ", ".join(parts)


def knob(run: Any) -> str:
    """Return "a = 4", "λ = 0.1" of solver=moments, "τ = 1" of solver=independence, or "" for a method that has none."""
    config, attrs = getattr(run, "config", None) or {}, run.attrs
    model, solver = config.get("model", {}), config.get("solver", {}).get("name")
    if solver == "moments":
        lam = (run.evaluation or {}).get("lam", config.get("solver", {}).get("lam"))
        return f"λ = {short(lam)}" if lam is not None else ""
    if solver == "independence":
        tau = (run.evaluation or {}).get("tau")
        return f"τ = {short(tau)}" if tau is not None else ""
    linear = model.get("family") == "linear_pca" or model.get("kind") == "direct"
    a = attrs.get("a")
    return "" if linear or a in (None, "") else f"a = {short(a)}"


def short(value: Any) -> str:
    """Return a number without a trailing .0; words as they are."""
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value)


def format_sigma(value: float) -> str:
    """Return σ as text, to three figures: 12.3, 0.0123, 1.2e-5."""
    return f"{value:.3g}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"

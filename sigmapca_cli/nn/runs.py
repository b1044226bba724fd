"""What a layer takes of a stored run."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigmapca_cli.estimator.from_run import refusal, scaled
from sigmapca_cli.storage.find import resolve
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError


def arrays_and_settings(run: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """Return W (p, k), the mean (p,), σ (k,), and the settings of a layer.

    Raise InputError if the run fits into none.
    """
    found = run if hasattr(run, "filters") else StoredRun.open(resolve(run))
    why = refusal(found)
    if why is None and scaled(found):
        why = "its features were divided by their deviations"
    if why is not None:
        raise InputError(f"{found.folder}: no layer can be made of it: {why}")
    assert found.filters is not None and found.mean is not None and found.sigma is not None  # not refused
    nonlinearity = found.config.get("nonlinearity", {})
    a = nonlinearity.get("a", found.config.get("a", 4.0))
    settings: dict[str, Any] = {"a": float(a) if isinstance(a, int | float) and np.isfinite(a) else "auto"}
    # A trained a is an ordinary one now; the layer refuses a name that it does not know.
    settings["nonlinearity"] = str(nonlinearity.get("name", "scaled_tanh")).removeprefix("trainable_")
    if str(nonlinearity.get("derivative", "true")).lower() == "one":
        settings["derivative"] = "one"
    return found.filters, found.mean, found.sigma, settings

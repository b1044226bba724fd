"""The attributes of a fitted `SigmaPCA`: what follows from its filters, and all of them from a stored run."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigmapca_cli.system.errors import InputError


def refusal(run: Any) -> str | None:
    """Return why a run is no orthonormal transformation of centred or standardised rows; None if it is one."""
    if run.filters is None or run.sigma is None or run.mean is None:
        return f"it holds no solution (status {run.status})"
    if run.rotation is not None:
        return "linear ICA is not orthonormal; use run.transform"
    if run.whitening is not None or run.clip is not None:
        return "its data were whitened or clipped; use run.transform"
    return None


def scaled(run: Any) -> bool:
    """Return whether the features of a run were divided by something."""
    return run.scale is not None and bool((np.asarray(run.scale) != 1).any())


def from_run(estimator: Any, run: Any) -> Any:
    """Fill an estimator with the solution of a run. Raise InputError for a run that does not fit into one."""
    why = refusal(run)
    if why is None and scaled(run):
        why = "its features were divided by their deviations; use run.to_sklearn(), which puts a scaler before it"
    if why is None and run.patch_shape is not None:
        why = "its features are pixels; use run.to_sklearn(), which brings bytes to their scale first"
    if why is not None:
        raise InputError(f"{run.folder}: no SigmaPCA can be made of it: {why}")
    filled = fill(estimator, run, mean=np.asarray(run.mean, float))
    if run.names:
        filled.feature_names_in_ = np.asarray(run.names, dtype=object)
    return filled


def fill(estimator: Any, run: Any, mean: np.ndarray | None) -> Any:
    """Set the attributes of a fitted estimator from a run; `mean` None: its rows come centred."""
    W, sigma, config = np.asarray(run.filters, float), np.asarray(run.sigma, float), run.config
    p, k = W.shape
    solver = config.get("solver", {}).get("name", "stochastic")
    setting = config.get("nonlinearity", {})
    a = run.evaluation.get("a", setting.get("a", config.get("a", 4.0)))
    own: dict[str, Any] = {}
    if solver == "independence":
        own["tau"] = config["solver"].get("tau", "auto")
        own["ordered"] = config.get("data", {}).get("ordered", "auto")
    elif solver == "moments":
        own["lam"] = float(run.evaluation.get("lam", 0.1))
    else:
        own["a"] = a if isinstance(a, int | float) else "auto"
        own["nonlinearity"] = str(setting.get("name", "scaled_tanh"))
        own["derivative"] = str(setting.get("derivative", "true")).lower()
    estimator.set_params(n_components=k, solver={"stochastic": "sgd"}.get(solver, solver), whiten=True, **own)
    estimator.mean_, estimator.n_features_in_ = np.zeros(p) if mean is None else mean, p
    share = float(run.evaluation.get("explained_variance", 1.0))
    total = float(np.sum(sigma**2)) / share if share > 0 else 0.0
    describe(estimator, W, sigma, total, int(run.attrs.get("n", 0)))
    estimator.a_ = np.full(k, np.inf) if "a" not in own else np.broadcast_to(_numbers(a), (k,)).copy()
    estimator.tau_, estimator.negentropy_, estimator.dependent_pairs_ = None, None, None
    if solver == "independence":
        estimator.tau_ = float(run.evaluation["tau"])
        estimator.negentropy_ = np.asarray(run.evaluation["independence_negentropy"], float)
        pairs = np.asarray(run.evaluation.get("dependent_pairs", ()), np.int64)
        estimator.dependent_pairs_ = pairs.reshape(-1, 2)
    estimator.ordered_ = bool(run.evaluation.get("rows_in_time", False))
    estimator.n_iter_ = int(run.evaluation.get("iterations", run.evaluation.get("steps", 0)) or 0)
    estimator.converged_ = bool(run.attrs.get("converged", True))
    return estimator


def describe(model: Any, W: np.ndarray, sigma: np.ndarray, total: float, n: int) -> None:
    """Set what follows from filters W (p, k), standard deviations sigma (k,) on n rows, and the total variance."""
    (p, model.n_components_), model.n_samples_ = W.shape, n
    model.components_ = np.ascontiguousarray(W.T)
    model.sigma_, model.explained_variance_ = sigma, sigma**2
    model.explained_variance_ratio_ = sigma**2 / total if total > 0 else np.zeros_like(sigma)
    model.singular_values_ = sigma * np.sqrt(n)
    rest = min(n, p) - len(sigma)
    model.noise_variance_ = max(total - float(np.sum(sigma**2)), 0.0) / rest if rest > 0 else 0.0


def _numbers(a: Any) -> np.ndarray:
    return np.full(1, np.nan) if isinstance(a, str) else np.atleast_1d(np.asarray(a, float))

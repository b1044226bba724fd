"""A run as a fitted estimator of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.estimator.from_run import fill, refusal, scaled
from sigmapca_cli.estimator.sigma_pca import SigmaPCA
from sigmapca_cli.solution.new_rows import matrix_of
from sigmapca_cli.solution.solution import Solution

if TYPE_CHECKING:
    from sigmapca_cli.storage.read import StoredRun


def as_estimator(run: StoredRun) -> Any:
    """Return `SigmaPCA.from_run(run)`, in a pipeline behind what the run did to its rows before: see `before`."""
    steps = before(run) if refusal(run) is None else []
    if not steps:
        return SigmaPCA.from_run(run)
    from sklearn.pipeline import Pipeline

    mean = None if scaled(run) else np.asarray(run.mean, float)
    return Pipeline([*steps, ("sigmapca", fill(SigmaPCA(), run, mean=mean))])


def before(run: StoredRun) -> list[tuple[str, Any]]:
    """Return the fitted steps before the estimator: pixels and missing values as the run's, then its scales."""
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    steps: list[tuple[str, Any]] = []
    solution = Solution.of(run)
    if solution.pixels or solution.fills:
        rows = FunctionTransformer(
            raw_rows, kw_args={"solution": solution}, feature_names_out="one-to-one", check_inverse=False
        )
        steps.append(("rows", rows))
    if scaled(run):
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_ = solution.mean, solution.scale
        scaler.var_ = np.square(scaler.scale_)
        scaler.n_samples_seen_ = int(run.attrs.get("n", 0))
        steps.append(("standardscaler", scaler))
    for _, step in steps:
        step.n_features_in_ = len(solution.mean)
        if run.names and not solution.fills:
            step.feature_names_in_ = np.asarray(run.names, dtype=object)
    return steps


def raw_rows(X: Any, solution: Solution) -> np.ndarray:
    """Return rows in the units of the mean of a run, without missing values."""
    return solution.raw(matrix_of(X, len(solution.mean), solution.names))[0]

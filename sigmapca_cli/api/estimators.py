"""A run as a fitted estimator of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.sklearn import SigmaPCA
from sigmapca_cli.sklearn_runs import fill, refusal, scaled

if TYPE_CHECKING:
    from sigmapca_cli.runs.read import Run


def as_estimator(run: Run) -> Any:
    """Return `SigmaPCA.from_run(run)`, behind a fitted StandardScaler if the run has scales."""
    if refusal(run) is not None or not scaled(run):
        return SigmaPCA.from_run(run)
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    scaler.mean_, scaler.scale_ = np.asarray(run.mean, float), np.asarray(run.scale, float)
    scaler.var_, scaler.n_features_in_ = np.square(scaler.scale_), len(scaler.scale_)
    scaler.n_samples_seen_ = int(run.attrs.get("n", 0))
    if run.names:
        scaler.feature_names_in_ = np.asarray(run.names, dtype=object)
    return Pipeline([("standardscaler", scaler), ("sigmapca", fill(SigmaPCA(), run, mean=None))])

"""The solver on sources: planted filters, and linear ICA against scikit-learn's FastICA."""

import numpy as np
import pytest
from mechanisms import every
from sklearn.decomposition import FastICA
from solver_helpers import matched_each as matched

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.solvers.main_loss.fit import lica_fit, newton_fit
from sigmapca_cli.solvers.rows.projection import nearest_rotation
from sigmapca_cli.system.errors import InputError


def planted(kind):
    cfg = DataConfig(name="planted", sources=kind, n=30_000, p=20, k=8, group=4, standardise="none")
    return data.build(cfg)


@pytest.mark.parametrize("kind", every(["laplace", "mixed"], ["mixed"]))
def test_filters_of_equal_variance_are_found_and_ordered(kind):
    source = planted(kind)
    solution, facts = newton_fit(source, 8, tol=1e-6)
    assert facts["converged"] and facts["residual"] <= 1e-6
    assert matched(solution.W, source.truth.filters).min() > 0.998
    np.testing.assert_allclose(solution.W.T @ solution.W, np.eye(8), atol=1e-10)
    assert np.all(np.diff(solution.sigma) <= 0)


@pytest.mark.parametrize("kind", every(["laplace", "mixed"], ["mixed"]))
def test_linear_ica_equals_fastica(kind):
    """Correlations of the components: the stationary points solve the same equations (log cosh, adapted
    signs)."""
    source = planted(kind)
    X = np.concatenate(list(source.blocks())).astype(np.float64)
    X -= X.mean(0)
    solution, facts = lica_fit(source, 8, tol=1e-6)
    peer = FastICA(8, whiten="unit-variance", fun="logcosh", tol=1e-8, max_iter=2000, random_state=0)
    theirs = peer.fit_transform(X)
    ours = X @ solution.encoder
    assert facts["converged"]
    assert matched(ours, theirs).min() > 0.9999
    np.testing.assert_allclose(ours.std(0), 1, rtol=1e-5)


def test_too_many_components_are_refused():
    with pytest.raises(InputError, match="between 1 and 20"):
        newton_fit(planted("laplace"), 21)


def test_a_start_is_taken_to_the_nearest_orthonormal_filters():
    """Filters of another scale, slightly oblique, partly outside the span: the same answer, sooner."""
    source = planted("laplace")
    P = source.principal_axes()[1][:, :8]
    rng = np.random.default_rng(2)
    W = source.truth.filters * rng.uniform(0.5, 2, 8) + 0.02 * rng.normal(size=(20, 8))
    R = nearest_rotation(P, W)
    np.testing.assert_allclose(R.T @ R, np.eye(8), atol=1e-12)
    assert matched(P @ R, source.truth.filters).min() > 0.98
    np.testing.assert_allclose(nearest_rotation(P, P @ R), R, atol=1e-12)
    near, facts = newton_fit(source, 8, 4.0, tol=1e-6, start=W)
    far, from_pca = newton_fit(source, 8, 4.0, tol=1e-6)
    assert facts["converged"] and facts["iterations"] < from_pca["iterations"]
    assert matched(near.W, far.W).min() > 0.9999

"""The default solver of the estimator: the smallest total correlation, which solver it is, any weights."""

import pickle

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from source_kinds import series

import sigmapca_cli as sp
from sigmapca_cli.evaluation.metrics import mcc
from sigmapca_cli.sklearn import SigmaPCA


def planted(n=3000, p=8, seed=0):
    """Laplace and uniform sources in two groups of equal variance."""
    g = np.random.default_rng(seed)
    s = np.c_[g.laplace(size=(n, 2)) / np.sqrt(2), g.uniform(-1, 1, (n, 2)) * np.sqrt(3)] * [3, 1.5, 3, 1.5]
    E = np.linalg.qr(g.standard_normal((p, 4)))[0]
    return s @ E.T + 0.02 * g.standard_normal((n, p)) + 5, E


X, E = planted()
# Two components of one common scale: uncorrelated, and dependent.
SCALES = np.exp(np.random.default_rng(5).standard_normal(len(X)))[:, None]
DEPENDENT = np.c_[SCALES * np.random.default_rng(6).standard_normal((len(X), 2)), X[:, :1]] * [3, 2, 1]


def test_it_is_the_default_and_says_what_it_found():
    found = SigmaPCA(4).fit(X)
    assert mcc(found.components_.T, E) > 0.995 and found.converged_
    assert found.tau_ == 1 and found.dependent_pairs_.shape == (0, 2)
    assert (found.negentropy_ > 0.01).all() and np.isinf(found.a_).all()
    for copy in (
        clone(found).fit(X),
        pickle.loads(pickle.dumps(found)),
        SigmaPCA(4, solver="independence").fit(X),
    ):
        np.testing.assert_array_equal(copy.components_, found.components_)
        assert copy.tau_ == 1
    assert found.certificate(X).identified.all() and found.certificate(X).tau == 1


def test_dependent_components_take_a_small_tau_and_are_named():
    found = SigmaPCA().fit(DEPENDENT)
    assert found.tau_ < 1 and [0, 1] in found.dependent_pairs_.tolist()
    assert SigmaPCA(tau=0.5).fit(DEPENDENT).tau_ == 0.5
    linear = SigmaPCA(tau=0).fit(DEPENDENT)
    np.testing.assert_allclose(np.cov(linear.transform(DEPENDENT).T), np.diag(linear.sigma_**2), atol=0.1)


CHOSEN = {
    "newton": [{"a": 4.0}, {"a": "auto"}, {"nonlinearity": "scaled_tanh"}, {"derivative": "true"}],
    "moments": [{"lam": 0.2}],
    "independence": [{}, {"tau": 0.3}],
}


@pytest.mark.parametrize("solver", CHOSEN)
def test_what_is_given_chooses_the_solver(solver):
    for given in CHOSEN[solver]:
        found, named = SigmaPCA(3, **given).fit(X), SigmaPCA(3, solver=solver, **given).fit(X)
        np.testing.assert_array_equal(found.components_, named.components_)
        assert (found.tau_ is None) == (found.negentropy_ is None) == (solver != "independence")


def test_another_solver_leaves_nothing_of_the_one_before():
    found = SigmaPCA(4).fit(X).set_params(solver="newton").fit(X)
    assert found.tau_ is found.dependent_pairs_ is found.negentropy_ is None and np.isfinite(found.a_).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"a": 4.0, "lam": 0.1},
        {"a": 4.0, "tau": 0.5},
        {"solver": "independence", "a": 4.0},
        {"solver": "newton", "lam": 0.1},
        {"solver": "moments", "tau": 1},
        {"solver": "moments", "nonlinearity": "tanh"},
        {"tau": -1},
        {"tau": "full"},
        {"tau": np.inf},
    ],
    ids=str,
)
def test_settings_that_contradict_each_other_are_refused_in_one_line(settings):
    with pytest.raises(ValueError) as problem:
        SigmaPCA(2, **settings).fit(X)
    assert "\n" not in str(problem.value) and any(f"{name}=" in str(problem.value) for name in settings)


@pytest.mark.parametrize("rows", [X, DEPENDENT], ids=["independent", "dependent"])
def test_a_run_of_it_is_an_estimator(tmp_path, rows):
    run = sp.train(rows, k=3, solver="independence", outputs=tmp_path)
    found, peer = SigmaPCA.from_run(run), SigmaPCA(3, whiten=True, tol=1e-6, max_iter=300).fit(rows)
    assert found.get_params()["solver"] == "independence" and found.tau_ == peer.tau_
    np.testing.assert_allclose(found.transform(rows), run.transform(rows), atol=1e-9)
    np.testing.assert_allclose(found.components_, peer.components_, atol=1e-5)
    np.testing.assert_allclose(found.negentropy_, peer.negentropy_, atol=1e-6)
    assert found.dependent_pairs_.tolist() == peer.dependent_pairs_.tolist()
    assert found.certificate(rows).tau == found.tau_
    assert clone(found).fit(rows).tau_ == found.tau_


def test_rows_in_time_are_found_and_the_parameter_decides():
    S = series("Gaussian", 3000, 0, np.array([0.95, 0.5, 0.0, -0.6]), np.ones(4))
    T = S @ E.T
    found = SigmaPCA(4).fit(T)
    assert found.ordered_ and mcc(found.components_.T, E) > 0.998
    refused = SigmaPCA(4, ordered=False).fit(T)
    assert not refused.ordered_ and mcc(refused.components_.T, E) < 0.95
    shuffled = SigmaPCA(4).fit(np.random.default_rng(0).permutation(T))
    assert not shuffled.ordered_
    assert mcc(SigmaPCA(4, ordered=True).fit(X).components_.T, E) > 0.995
    with pytest.raises(ValueError, match="ordered=True"):
        SigmaPCA(4, ordered=True).fit(T, sample_weight=np.arange(1.0, len(T) + 1))
    with pytest.raises(ValueError, match="ordered"):
        SigmaPCA(4, ordered="perhaps").fit(T)


def test_the_certificate_sees_a_k_that_cuts_a_group_and_checks_its_rows():
    """Four sources of two variances: of k=1 and k=3 chance chooses the last axis."""
    for k, cut in ((3, [False, False, True]), (4, [False] * 4)):
        assert SigmaPCA(k).fit(X).certificate(X).cut.tolist() == cut
    found = SigmaPCA(4).fit(pandas.DataFrame(X, columns=[f"c{i}" for i in range(8)]))
    with pytest.raises(ValueError, match="features"):
        found.certificate(X[:, :5])
    with pytest.raises(ValueError, match="feature names"):
        found.certificate(pandas.DataFrame(X, columns=[f"d{i}" for i in range(8)]))

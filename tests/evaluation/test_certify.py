"""The certificate of a run reads what trained it, and refuses where it would speak of another equation."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from mechanisms import every
from scipy.signal import lfilter
from source_kinds import planted, projected

import sigmapca_cli as sp
from sigmapca_cli.api.run import Run
from sigmapca_cli.composition.job import job_from
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.evaluation.certificate import ARBITRARY, IDENTIFIED, REPELLED
from sigmapca_cli.evaluation.certify import certify_run, certify_variances, has_converged
from sigmapca_cli.evaluation.identifiability import certify
from sigmapca_cli.evaluation.words import explain
from sigmapca_cli.report.trust import certificate
from sigmapca_cli.runner import objective
from sigmapca_cli.solvers.newton.solve import solve as newton
from sigmapca_cli.system.errors import InputError

MAIN = {"model": {"name": "nlpca", "family": "nonlinear_pca", "objective": "main", "kind": "trained"}}


def rows(kind="uniform", n=20000, sigma=(1.0, 1.0)):
    random = np.random.default_rng(0)
    draw = {
        "uniform": lambda: random.uniform(-(3**0.5), 3**0.5, (n, 2)),
        "laplace": lambda: random.laplace(size=(n, 2)) / 2**0.5,
        "gauss": lambda: random.normal(size=(n, 2)),
    }[kind]
    return draw() * sigma


def run_on(x, evaluation=None, attrs=None, **config):
    base = {**MAIN, "a": 4.0, "nonlinearity": {"name": "scaled_tanh", "a": 4.0, "derivative": "true"}}
    run = SimpleNamespace(
        rotation=None,
        filters=np.eye(2),
        evaluation=evaluation or {},
        attrs=attrs or {},
        config={**base, **config},
    )
    return run, MemorySource("rows", x, Standardisation("none"))


def verdict(*given, **config):
    return certify_run(*run_on(*given, **config)).verdict[0, 1]


def test_the_a_of_the_nonlinearity_is_the_one_that_is_read():
    h = {"name": "scaled_tanh", "a": 0.8, "derivative": "true"}
    assert verdict(rows(), nonlinearity=h) == IDENTIFIED  # at a = 4, the knob, uniform sources are repelled
    assert verdict(rows()) == REPELLED


def test_the_c_of_an_asymmetric_tanh_is_read():
    def at(c):
        h = {"name": "asymmetric", "a": 4.0, "c": c, "derivative": "one"}
        return certify_run(*run_on(rows("laplace"), nonlinearity=h)).curvature[0, 1]

    assert at(1.6) == pytest.approx(certify(rows("laplace"), "asymmetric", "one").curvature[0, 1])
    assert abs(at(1.6) - at(1.1)) > 0.01
    with pytest.raises(InputError, match="adaptive"):
        at("adaptive")


def test_a_trained_sigma_scales_a():
    """h(y/σ)σ with a = 0.8 and σ three times the data's is a tanh of scale 2.4, which repels uniform sources."""
    h = {"name": "scaled_tanh", "a": 0.8, "derivative": "true"}
    assert verdict(rows(), {"trained_sigma": np.array([1.0, 1.0])}, nonlinearity=h) == IDENTIFIED
    assert verdict(rows(), {"trained_sigma": np.array([3.0, 3.0])}, nonlinearity=h) == REPELLED


@pytest.mark.parametrize("kind", ["laplace", "gauss"])
def test_linear_pca_is_judged_by_its_variances_alone(kind):
    model = {"name": "pca_svd", "family": "linear_pca", "objective": "", "kind": "direct"}
    found = certify_run(*run_on(rows(kind), model=model))
    assert found.verdict[0, 1] == ARBITRARY and "linear PCA cannot identify their axes" in " ".join(
        explain(found)
    )
    assert verdict(rows(kind, sigma=(1.5, 1.0)), model=model) == IDENTIFIED


def test_the_angle_of_linear_pca_is_that_of_repeated_samples():
    model = {"name": "pca_svd", "family": "linear_pca", "objective": "", "kind": "direct"}
    random = np.random.default_rng(1)
    angles, said = [], []
    for _ in range(60):
        x = random.laplace(size=(2000, 2)) * [1.3, 1.0]
        axis = np.linalg.eigh(np.cov(x.T))[1][:, 1]
        angles.append(np.arctan2(axis[1], axis[0] * 1.0 if axis[0] else 1e-9) % np.pi)
        said.append(certify_run(*run_on(x, model=model)).angle[0, 1])
    angles = np.minimum(angles, np.pi - np.array(angles))
    assert np.sqrt(np.mean(np.square(angles))) == pytest.approx(np.median(said), rel=0.3)


@pytest.mark.parametrize(
    "config, words",
    [
        ({"model": {**MAIN["model"], "name": "rica", "objective": "rica"}}, "model=rica"),
        ({"model": {**MAIN["model"], "name": "skew_symmetric", "objective": "skew_symmetric"}}, "skew"),
        ({"model": {**MAIN["model"], "name": "x", "objective": "conventional"}}, "model=x"),
        ({"model": {**MAIN["model"], "name": "y", "objective": "latent"}}, "model=y"),
        ({"ordering": {"name": "deflation"}}, "ordering=deflation"),
        ({"ordering": {"name": "triangular"}}, "ordering=triangular"),
        ({"regularisers": {"l1": 0.1}}, "regularisers"),
        ({"constraint": {"name": "symmetric"}}, "constraint=symmetric"),
        ({"sigma": {"name": "unit"}}, "sigma=unit"),
        (
            {"model": {**MAIN["model"], "name": "linear_ae", "family": "linear_pca"}},
            "axes are always arbitrary",
        ),
    ],
)
def test_another_equation_is_refused_with_what_to_use_instead(config, words):
    with pytest.raises(InputError, match=words) as refused:
        certify_run(*run_on(rows(), **config))
    assert "stability" in str(refused.value) or "always arbitrary" in str(refused.value)


def test_the_certificate_of_a_run_uses_its_filters_and_settings():
    x = np.random.default_rng(0).laplace(size=(3000, 3)) @ np.diag([3.0, 2.0, 2.0])
    run, source = run_on(x)
    run.filters = np.eye(3)
    found = certify_run(run, source)
    np.testing.assert_allclose(found.score, certify(x, a=4.0).score, rtol=1e-4)
    assert certify_run(run, source, rows=500).n == 500
    run.config["a"] = run.config["nonlinearity"]["a"] = "auto"
    with pytest.raises(InputError, match="a=auto"):
        certify_run(run, source)
    run.evaluation["a"] = np.array([4.0, 4.0, 0.8])
    assert certify_run(run, source).curvature[0, 1] == pytest.approx(found.curvature[0, 1])
    run.rotation = np.eye(3)
    with pytest.raises(InputError, match="linear ICA"):
        certify_run(run, source)


def test_of_an_unconverged_run_the_run_is_spoken_of():
    assert has_converged(run_on(rows(), {"angle": 1.0}, {"converged": False})[0]) is False
    assert has_converged(run_on(rows(), {}, {"converged": True})[0]) is None
    assert has_converged(run_on(rows(), {"angle": 0.01}, {"converged": True})[0]) is True


def test_the_command_says_nothing_of_the_data_where_the_run_has_not_converged(train, capsys):
    from sigmapca_cli.cli.evaluate import evaluated

    run = train("data=planted", "data.n=2000", "data.p=12", "data.k=4", "k=4", "steps=2", "lr=1e-9")
    words = evaluated(str(run.folder), None, True)["identifiability"]
    assert len(words) == 1 and "this run has not converged" in words[0]
    opened = Run.open(run.folder)
    assert opened.certificate().sentences == words and not opened.certificate().identified.any()
    rows_of = np.concatenate(list(opened.source.blocks(raw=True)))
    assert not opened.to_sklearn().certificate(rows_of).identified.any()
    assert [verdict.holds for verdict in certificate(opened.evaluation)] == [False]
    assert objective.unidentified(job_from(run.config), run.folder) == 4
    done = train("data=planted", "data.n=2000", "data.p=12", "data.k=4", "k=4")
    assert "4 of 4 components" in evaluated(str(done.folder), None, True)["identifiability"][0]


@pytest.mark.parametrize(
    ("k", "draw"), every(itertools.product([2, 3, 6], ["normal", "laplace"]), [(3, "laplace")])
)
def test_fitted_axes_of_one_variance_are_called_identified_in_5_percent_of_cases_at_most(k, draw):
    random = np.random.default_rng(k)
    false = 0
    for _ in range(100):
        x = getattr(random, draw)(size=(1000, k))
        x = (x - x.mean(0)) @ np.linalg.eigh(np.cov(x.T))[1]
        false += (certify_variances(x).verdict[np.triu_indices(k, 1)] == IDENTIFIED).any()
    assert false <= 9  # 5 of 100, and two standard errors of such a count


def test_rows_that_change_slowly_have_few_independent_stretches():
    """Two axes of one variance: 64 stretches of a slow series are not independent, and their spread is too small."""
    random = np.random.default_rng(0)
    false = np.zeros(2)
    for _ in range(40):
        x = lfilter([1], [1, -0.98], random.standard_normal((5000, 3)), axis=0)[2000:]
        x = (x - x.mean(0)) @ np.linalg.eigh(np.cov(x.T))[1]
        false += [certify_variances(x, ordered=told).verdict[0, 1] == IDENTIFIED for told in (False, True)]
    assert 3 * false[1] < false[0], false


def test_distinct_variances_are_told_apart_each_from_each():
    x = np.random.default_rng(0).normal(size=(5000, 6)) * 3 * 0.7 ** np.arange(6)
    assert (certify_variances(x).verdict[np.triu_indices(6, 1)] == IDENTIFIED).all()


def test_linear_ica_is_judged_on_white_rows_by_its_shapes():
    """Gaussian sources of different variance are told apart no more, and Laplace ones are."""

    def judged(kind, name):
        found, source = run_on(rows(kind, sigma=(3.0, 1.0)), {"tau": 1.0}, solver={"name": name})
        found.rotation, found.encoder = np.eye(2), np.diag([1 / 3, 1.0])
        return certify_run(found, source)

    assert judged("laplace", "independence").identified.all()
    assert not judged("gauss", "independence").identified.any()
    with pytest.raises(InputError):
        judged("laplace", "newton")


@pytest.mark.parametrize("kind", ["two-valued, P = .25", "two-valued, kurtosis 0", "three-valued"])
def test_newton_with_a_of_its_own_choice_identifies_no_wrong_filter(kind):
    """a=auto ends at mixtures of such sources, which its curvature holds."""
    wrong = 0
    for seed in range(4):
        X, E = planted(kind, 2000, seed)
        Y, P = projected(X, 5)
        found = newton(Y, threads=1)
        cosine = np.abs(E.T @ P @ found.R).max(0)
        wrong += (certify(Y @ found.R, a=found.a).identified & (cosine < 0.8)).sum()
    assert wrong == 0


def test_a_mixture_that_an_a_holds_is_not_called_identified():
    """With a = 4 two uniform sources of one variance are held at 45°: a positive curvature, and the wrong axes."""
    s = np.random.default_rng(0).uniform(-1, 1, (10000, 2)) * 3**0.5
    mixed = s @ (np.array([[1, -1], [1, 1]]) / 2**0.5)
    found = certify(mixed, a=4.0)
    assert found.curvature[0, 1] > 0 and found.verdict[0, 1] == REPELLED and found.mixed[0, 1]
    words = " ".join(explain(found))
    assert "makes mixtures of them stable" in words and "a smaller a (0.8)" in words
    assert certify(s, a=0.8).verdict[0, 1] == IDENTIFIED
    # Different variances are held where they are by these, whatever the shapes.
    assert certify(mixed * [2, 1], a=4.0).verdict[0, 1] == IDENTIFIED


def test_components_of_the_variance_of_directions_left_out_are_not_identified():
    random = np.random.default_rng(0)
    x = random.laplace(size=(20000, 4)) * [3, 1, 1, 0.3]
    run, source = run_on(x)
    for k, good in ((1, [True]), (2, [True, False]), (3, [True, True, True])):
        run.filters = np.eye(4)[:, :k]
        found = certify_run(run, source)
        assert found.identified.tolist() == good
    run.filters = np.eye(4)[:, :2]
    words = "component 2 has the same variance as directions that k=2 leaves out"
    assert any(line.startswith(words) for line in explain(certify_run(run, source)))


@pytest.mark.parametrize("method", [{"solver": "independence"}, {"solver": "independence", "model": "lica"}])
def test_filled_values_identify_no_axes(tmp_path, method):
    """Gaussian factors of one variance have no axes; the mean in the place of a tenth of the values has them."""
    rng = np.random.default_rng(0)
    E = np.linalg.qr(rng.standard_normal((8, 8)))[0][:, :3]
    X = 2 * rng.standard_normal((4000, 3)) @ E.T + 0.3 * rng.standard_normal((4000, 8))
    X[rng.random(X.shape) < 0.1] = np.nan
    run = sp.train(X, k=3, data__missing="mean", outputs=tmp_path, **method)
    found = run.certificate()
    assert not found.identified.any() and found.filled == int(np.isnan(X).any(axis=1).sum())
    assert set(np.ravel(run.evaluation["unheld_pairs"])) == {0, 1, 2}
    X[:, 0] = np.where(rng.random(4000) < 0.999, np.nan, X[:, 0])
    found = sp.train(X, k=3, data__missing="mean", outputs=tmp_path, **method).certificate()
    assert found.with_filled and not found.filled

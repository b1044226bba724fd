"""solver=moments on sources: planted filters, bad rows, linear ICA, and as a start for others."""

import numpy as np
import pytest
from mechanisms import every
from sklearn.decomposition import FastICA
from solver_helpers import matched_each as matched

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.data.truth import Truth
from sigmapca_cli.methods.config import ModelConfig, NonlinearityConfig
from sigmapca_cli.runner.solved import refusal_without_a, solve_moments, solve_newton
from sigmapca_cli.runner.start import initial_filters
from sigmapca_cli.settings.schema import Config, SolverConfig
from sigmapca_cli.solvers.fourth_moments.fit import moments_fit
from sigmapca_cli.solvers.rows.projection import clipped


def planted(kind, n=30_000):
    return data.build(DataConfig(name="planted", sources=kind, n=n, p=20, k=8, group=4, standardise="none"))


def spoiled(source, rows, factor):
    """The same rows, some of them replaced by random ones of so many standard deviations."""
    rng = np.random.default_rng(5)
    X = np.array(source.X, np.float64)
    X[rng.choice(len(X), rows, replace=False)] = factor * X.std() * rng.normal(size=(rows, X.shape[1]))
    return MemorySource("spoiled", X, Standardisation("none"), Truth("filters", filters=source.truth.filters))


def configured(**solver):
    return Config(k=8, nonlinearity=NonlinearityConfig(a=4.0), solver=SolverConfig("moments", **solver))


@pytest.mark.parametrize("kind", every(["laplace", "uniform", "mixed"], ["mixed"]))
def test_filters_of_equal_variance_are_found_and_ordered(kind):
    source = planted(kind)
    solution, facts = moments_fit(source, 8)
    assert facts["converged"] and facts["relative_gradient"] <= 1e-5
    assert matched(solution.W, source.truth.filters).min() > 0.998
    np.testing.assert_allclose(solution.W.T @ solution.W, np.eye(8), atol=1e-10)
    assert np.all(np.diff(solution.sigma) <= 0)
    missed = np.arccos(matched(solution.W, source.truth.filters))
    assert missed.max() < 4 * solution.extra["filter_error"].max()
    assert np.all(solution.extra["filter_error"] < 0.05)


def test_linear_ica_is_that_of_the_cube():
    """On whitened data F is the sum of |cumulants|, whose stationary points are those of FastICA's symmetric cube."""
    source = planted("laplace")
    X = np.concatenate(list(source.blocks())).astype(np.float64)
    X -= X.mean(0)
    solution, facts = moments_fit(source, 8, whiten=True)
    peer = FastICA(8, whiten="unit-variance", fun="cube", tol=1e-8, max_iter=2000, random_state=0).fit(X)
    assert facts["converged"]
    assert matched(X @ solution.encoder, peer.transform(X)).min() > 0.9999
    np.testing.assert_allclose((X @ solution.encoder).std(0), 1, rtol=1e-5)


@pytest.mark.parametrize(("rows", "factor"), [(1, 1000.0), (20, 20.0)])
def test_bad_rows_are_named_and_drawn_in(rows, factor, caplog):
    source = planted("laplace", 20_000)
    bad = spoiled(source, rows, factor)
    without, _ = moments_fit(bad, 8)
    assert "depends on few rows" in caplog.text
    assert matched(without.W, bad.truth.filters).mean() < 0.95
    caplog.clear()
    with_clip, facts = moments_fit(bad, 8, clip=0.998)
    assert "40 of 20000 rows were clipped" in caplog.text and "few rows" not in caplog.text
    assert facts["converged"] and matched(with_clip.W, bad.truth.filters).mean() > 0.999
    clean, _ = moments_fit(source, 8)
    drawn, _ = moments_fit(source, 8, clip=0.999)
    assert matched(clean.W, drawn.W).mean() > 0.9999


def test_moments_of_clipped_rows_are_those_of_the_rows():
    """Corrected from those of all rows, against clipped rows themselves."""
    source = spoiled(planted("mixed", 5000), 50, 10.0)
    X = np.concatenate(list(source.blocks())).astype(np.float64)
    found = clipped(source, 0.98)
    X *= np.minimum(1, np.quantile(np.linalg.norm(X, axis=1), 0.98) / np.linalg.norm(X, axis=1))[:, None]
    np.testing.assert_allclose(found.mean, X.mean(0), atol=1e-6)
    np.testing.assert_allclose(found.C, np.cov(X.T, bias=True), atol=1e-5)
    assert found.count == 100


def test_other_solvers_start_at_its_answer():
    source = planted("mixed")
    answer = moments_fit(source, 8)[0].W
    cfg = configured()
    cfg.init = "moments"
    np.testing.assert_array_equal(initial_filters(cfg, source), answer)
    cfg.a = cfg.nonlinearity.a = "auto"
    there, sooner = solve_newton(cfg, source)
    cfg.init = "pca"
    from_pca, later = solve_newton(cfg, source)
    assert sooner["converged"] and sooner["iterations"] < later["iterations"]
    assert matched(there.W, from_pca.W).min() > 0.9999


def test_starts_and_init_are_those_of_the_configuration():
    source = planted("mixed", 5000)
    cfg = configured(starts=3)
    assert solve_moments(cfg, source)[1]["starts_agreeing"] == 3
    cfg.init, cfg.solver = "orthogonal", SolverConfig("moments", max_iterations=1)
    first = solve_moments(cfg, source)[0].W
    cfg.seed = 1
    assert matched(first, solve_moments(cfg, source)[0].W).min() < 1 - 1e-9
    assert matched(first, solve_moments(configured(max_iterations=1), source)[0].W).min() < 1 - 1e-9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": ModelConfig("rica", objective="rica")}, "model=rica"),
        ({"nonlinearity": NonlinearityConfig("tanh", a=1.0)}, "nonlinearity=tanh"),
        ({"regularisers": {"l1": 1.0}}, "regularisers"),
        ({"solver": SolverConfig("moments", polish=True)}, "polish"),
    ],
)
def test_what_it_does_not_know_is_refused(change, words):
    cfg = configured()
    for key, value in change.items():
        setattr(cfg, key, value)
    assert words in (refusal_without_a(cfg) or "")

"""The formulas of the small plots against what they are said to be: derivatives, iterations, integrals."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sigmapca_cli.reproduce import theory
from sigmapca_cli.reproduce.plan import Setting
from sigmapca_cli.reproduce.results import Results
from sigmapca_cli.reproduce.verdicts import HELD, NOT_HELD, judge


def test_the_eigenvalue_map_is_that_of_the_iteration():
    random = np.random.default_rng(0)
    W = random.normal(size=(7, 4)) * 0.2
    for beta in (0.1, 0.5, 0.9):
        after = (1 + beta) * W - beta * W @ W.T @ W
        expected = np.sort(theory.eigenvalue_map(np.linalg.eigvalsh(W.T @ W), beta))
        np.testing.assert_allclose(np.linalg.eigvalsh(after.T @ after), expected, atol=1e-12)


def test_the_score_of_sigma_is_the_gradient_of_the_loss():
    """∂/∂σ of ½(ŷ − y)² with ŷ = σ tanh(y/σ) is (ŷ − y)(f(z) − z), f(z) = zh² + h."""
    y, sigma, step = 1.3, 0.8, 1e-6
    loss = lambda s: 0.5 * (s * np.tanh(y / s) - y) ** 2  # noqa: E731
    z = y / sigma
    slope = (loss(sigma + step) - loss(sigma - step)) / (2 * step)
    f = theory.sigma_score(np.array(z)) / z
    assert slope == pytest.approx((sigma * np.tanh(z) - y) * (f - z), rel=1e-6)


@pytest.mark.parametrize("a", [1, 3, 4])
def test_the_scale_that_tanh_keeps_is_the_integral(a):
    integral = quad(lambda z: (a * np.tanh(z / a)) ** 2 * norm.pdf(z), -12, 12)[0]
    assert theory.scale_kept(a) == pytest.approx(np.sqrt(integral), abs=1e-6)


def test_zeros_and_inflections_are_counted():
    assert [theory.crossings(b) for b in (0.5, 1.0, 1.5)] == [1, 1, 3]
    assert [theory.inflections(b) for b in (0.5, 1.0, 1.5)] == [1, 1, 1]


def test_what_is_said_of_the_formulas_is_judged_without_any_run():
    results = Results((), Setting(), {}, {})
    states = {claim.text: judge(claim, results)["state"] for claim in theory.THEORY.claims}
    assert states["With β ≤ ½ the eigenvalues stay in ]0, 1]"] == HELD
    assert states["√var(3 tanh(ν/3)) ≈ 0.90"] == NOT_HELD
    assert len(theory.THEORY.draw(results).axes) == 5

"""The polish: its gradient against autograd of the loss, and what it changes on planted data."""

import numpy as np
import torch

from sigmapca_cli import sources
from sigmapca_cli.solvers.newton import solve
from sigmapca_cli.solvers.polish import gradient, polish
from sigmapca_cli.solvers.run import project
from sigmapca_cli.sources.config import DataConfig


def test_gradient_is_half_the_tangent_gradient_of_the_loss():
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.laplace(size=(500, 7)) * np.linspace(2, 1, 7))
    C = (X.T @ X / len(X)).numpy()
    W = rng.normal(size=(7, 3))
    W /= np.linalg.norm(W, axis=0)
    a = np.array([0.8, 2.0, 3.0])
    Wt = torch.tensor(W, requires_grad=True)
    sigma = torch.from_numpy(np.sqrt(np.einsum("pk,pk->k", W, C @ W)))
    at = torch.from_numpy(a)
    h = at * torch.tanh(X @ Wt / sigma / at)
    ((X - h * sigma @ Wt.detach().T) ** 2).sum(1).mean().backward()
    full = Wt.grad.numpy() / 2
    tangent = full - W * np.einsum("pk,pk->k", W, full)
    np.testing.assert_allclose(gradient(W, C, X, a, "true").G, tangent, atol=1e-10)


def test_polish_lowers_the_gradient_and_stays_at_the_true_filters():
    cfg = DataConfig(name="planted", sources="laplace", n=30_000, p=20, k=8, group=4, standardise="none")
    source = sources.build(cfg)
    P, Y, C, _ = project(source, 8)
    result = solve(Y, a=3.0, tol=1e-6)
    W, facts = polish(P @ result.R, C, source, result)
    assert facts["polished"]
    assert facts["gradient_after_polish"] < 1e-3 < facts["gradient_before_polish"]
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1, atol=1e-12)
    assert np.abs(source.truth.filters.T @ W).max(0).min() > 0.995

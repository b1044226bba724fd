"""The polish: its gradient against autograd of the loss, and what it changes on planted data."""

import numpy as np
import pytest
import torch

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.methods import method as methods
from sigmapca_cli.methods.config import NonlinearityConfig
from sigmapca_cli.runner import stochastic
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.solvers.newton.polish import gradient, polish
from sigmapca_cli.solvers.newton.solve import solve
from sigmapca_cli.solvers.rows.projection import project
from sigmapca_cli.training import loop


def test_gradient_is_half_the_tangent_gradient_of_the_loss():
    rng = np.random.default_rng(0)
    rows = rng.laplace(size=(500, 7)) * np.linspace(2, 1, 7)
    X = torch.from_numpy(rows)
    C = rows.T @ rows / len(rows)
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
    np.testing.assert_allclose(gradient(W, C, rows, a, "true").G, tangent, atol=1e-10)


def test_polish_lowers_the_gradient_and_stays_at_the_true_filters():
    cfg = DataConfig(name="planted", sources="laplace", n=30_000, p=20, k=8, group=4, standardise="none")
    source = data.build(cfg)
    P, Y, C, _ = project(source, 8)
    result = solve(Y, a=3.0, tol=1e-6)
    W, facts = polish(P @ result.R, C, source, result)
    assert facts["polished"]
    assert facts["gradient_after_polish"] < 1e-3 < facts["gradient_before_polish"]
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1, atol=1e-12)
    assert np.abs(source.truth.filters.T @ W).max(0).min() > 0.995


@pytest.mark.full
def test_training_stays_where_the_polish_ends():
    source = data.build(DataConfig(name="natural", patch=5, images=40, select="random"))
    P, Y, C, _ = project(source, 6)
    result = solve(Y, a=4.0)
    start = P @ result.R
    W, facts = polish(start, C, source, result)
    assert facts["polished"]
    stayed = [np.abs(np.sum(begin * trained(source, begin), axis=0)).min() for begin in (W, start)]
    assert stayed[0] > 0.999
    assert stayed[0] > stayed[1]


def trained(source, W):
    """The filters after stochastic training from W with tangent gradients and a small rate."""
    cfg = Config(a=4.0, k=W.shape[1], lr=1e-3, steps=800, batch_size=512)
    cfg.nonlinearity = NonlinearityConfig("scaled_tanh", 4.0)
    trainer = stochastic.make_trainer(cfg, methods.make_method(cfg), source, torch.device("cpu"))
    trainer.state["W"].copy_(torch.from_numpy(W))
    loop.train([trainer])
    return trainer.state["W"].double().numpy()

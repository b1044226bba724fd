"""Errata of the paper that docs/findings.md lists: the printed equation must fail, the one in the code must hold."""

import numpy as np
import torch

from sigmapca_cli.methods import constraints
from sigmapca_cli.methods.objectives import main_deflation
from sigmapca_cli.methods.ordering import nested_mask


def test_the_gradient_of_deflation_has_the_transpose_of_p():
    """∂L/∂W = 2E[xᵀy_δ]P(W)ᵀ − 2W triu₋(E[y_δᵀy]); printed with P(W)."""
    random = np.random.default_rng(0)
    x, W = torch.tensor(random.normal(size=(50, 6))), torch.tensor(random.normal(size=(6, 3)) * 0.5)
    sigma = torch.tensor([[1.2, 0.8, 1.5]], dtype=torch.float64)
    leaf = W.clone().requires_grad_()
    main_deflation(x, leaf, x @ leaf, torch.tanh, sigma).backward()
    P = torch.eye(3, dtype=torch.float64) - (W.T @ W).tril(-1)
    y = x @ W
    z = y @ P / sigma
    delta = ((torch.tanh(z) * sigma) @ W.T @ W - y) * (1 - torch.tanh(z) ** 2)

    def gradient(P):
        return 2 * (x.T @ delta @ P - W @ (delta.T @ y).triu(1)) / len(x)

    torch.testing.assert_close(leaf.grad, gradient(P.T))
    assert (leaf.grad - gradient(P)).abs().max() > 0.01


def test_whitening_divides_by_the_root_of_the_eigenvalues():
    """With USVᵀ the decomposition of the covariance, V S^-½ whitens and the printed V S⁻¹ does not."""
    x = np.random.default_rng(0).normal(size=(2000, 4)) * [3, 2, 1, 0.5]
    C = x.T @ x / len(x)
    S, V = np.linalg.eigh(C)
    right, printed = V / np.sqrt(S), V / S
    np.testing.assert_allclose(right.T @ C @ right, np.eye(4), atol=1e-12)
    assert np.abs(printed.T @ C @ printed - np.eye(4)).max() > 0.5


def test_a_nested_mask_keeps_the_first_j_and_not_the_first_j_less_one():
    """Printed: 1 where i < j, counted from 1, which drops all for j = 1, the most frequent index."""
    masks = nested_mask(4000, 5, 0.5, torch.zeros(1), torch.Generator().manual_seed(0))
    kept = masks.sum(-1)
    assert kept.min() == 1
    assert abs(float((kept == 1).double().mean()) - 0.5) < 0.03


def test_unit_columns_do_not_bound_the_eigenvalues_by_one():
    """Printed: normalising makes the eigenvalues of WᵀW ≤ 1. Parallel columns give k; beyond 5 it diverges."""
    one = torch.eye(9, 7, dtype=torch.float64)
    W = constraints.unit_norm(torch.ones_like(one) + 0.01 * one)
    assert float(torch.linalg.eigvalsh(W.T @ W).max()) > 6.9
    printed = W.clone()
    for _ in range(6):
        printed = 1.5 * printed - 0.5 * printed @ printed.T @ printed
    assert not torch.isfinite(printed).all() or printed.abs().max() > 1e3
    found = constraints.symmetric(W)
    torch.testing.assert_close(found.T @ found, torch.eye(7, dtype=torch.float64), atol=1e-8, rtol=0)

"""Steps against torch's own optimizers, and the tangent projection against its definition."""

import pytest
import torch

from sigmapca_cli.training.length import rate_factor
from sigmapca_cli.training.optimizers import SGD, Adam, tangent, zero_state

torch.set_num_threads(1)


def gradients(steps: int, shape: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(steps)]


@pytest.mark.parametrize(
    ("ours", "peer"),
    [
        (Adam(0.9, 0.999, 1e-7), lambda p: torch.optim.Adam([p], lr=0.01, betas=(0.9, 0.999), eps=1e-7)),
        (SGD(0.9), lambda p: torch.optim.SGD([p], lr=0.01, momentum=0.9)),
    ],
    ids=["adam", "sgd"],
)
def test_equals_torch(ours, peer):
    W = torch.randn(7, 3, dtype=torch.float64)
    expected = W.clone().requires_grad_()
    optimizer = peer(expected)
    parameters = {"W": W}
    slots = zero_state(type(ours).__name__.lower(), parameters)
    for count, gradient in enumerate(gradients(50, (7, 3)), start=1):
        ours.step(parameters, {"W": gradient}, slots, count, 0.01)
        expected.grad = gradient.clone()
        optimizer.step()
    torch.testing.assert_close(W, expected.detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("optimizer", [Adam(), SGD()], ids=["adam", "sgd"])
def test_leading_dimension_equals_separate_runs(optimizer):
    rates = torch.tensor([0.01, 0.002, 0.1], dtype=torch.float64)
    start = torch.randn(3, 7, 2, dtype=torch.float64)
    together = {"W": start.clone()}
    name = type(optimizer).__name__.lower()
    slots = zero_state(name, together)
    alone = [{"W": start[r].clone()} for r in range(3)]
    alone_slots = [zero_state(name, p) for p in alone]
    for count, gradient in enumerate(gradients(20, (3, 7, 2)), start=1):
        optimizer.step(together, {"W": gradient}, slots, count, rates)
        for r in range(3):
            optimizer.step(alone[r], {"W": gradient[r]}, alone_slots[r], count, float(rates[r]))
    for r in range(3):
        torch.testing.assert_close(together["W"][r], alone[r]["W"], rtol=1e-12, atol=1e-14)


def test_tangent_is_orthogonal_to_every_filter_and_idempotent():
    W, gradient = torch.randn(2, 9, 4, dtype=torch.float64), torch.randn(2, 9, 4, dtype=torch.float64)
    projected = tangent(gradient, W)
    assert (W * projected).sum(-2).abs().max() < 1e-12
    torch.testing.assert_close(tangent(projected, W), projected)
    assert tangent(W * 3.0, W).abs().max() < 1e-12


def test_cosine_goes_from_one_to_zero():
    factors = [rate_factor("cosine", step, 100) for step in range(101)]
    assert factors[0] == 1 and abs(factors[50] - 0.5) < 1e-12 and abs(factors[100]) < 1e-12
    assert factors == sorted(factors, reverse=True)

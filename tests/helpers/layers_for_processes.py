"""A small network with a σ-PCA layer, and its steps, for one process and for several."""

import torch
from torch import nn

from sigmapca_cli.nn import SigmaPCA


class Network(nn.Module):
    """A linear layer and a σ-PCA layer on it; the loss of the latter trains both."""

    def __init__(self):
        super().__init__()
        self.below = nn.Linear(10, 8, dtype=torch.float64)
        self.layer = SigmaPCA(8, 3, momentum=0.9, a="auto", dtype=torch.float64)

    def forward(self, x):
        return self.layer(self.below(x), return_loss=True)


def network():
    torch.manual_seed(0)
    return Network()


def batches():
    g = torch.Generator().manual_seed(1)
    return [torch.randn(64, 10, generator=g, dtype=torch.float64) ** 3 for _ in range(12)]


def steps(model, network, given):
    """Train `model`, which is the network or a wrapper of it, on these batches."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)
    network.layer.constrain_after(optimizer)
    for batch in given:
        optimizer.zero_grad()
        model(batch)[1].backward()
        optimizer.step()

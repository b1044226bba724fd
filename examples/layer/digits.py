"""A σ-PCA layer on the features of a small network.

A network learns to read digits (scikit-learn's, 8 × 8 pixels). Beside it a σ-PCA layer learns the axes of its features.
They come ordered by variance, so that the first few can stand for all, as those of linear PCA do. Where the features
are not Gaussian the axes are the data's own, also where linear PCA mixes two of nearly equal variance.

Run it: python examples/layer/digits.py
"""

import argparse
from collections.abc import Iterable

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional

import sigmapca_cli as sp


class Network(nn.Module):
    """Features of an image, the digit read from them, and a σ-PCA layer on the features."""

    def __init__(self, features: int = 32, components: int = 10) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, features))
        self.head = nn.Linear(features, 10)
        self.sigma_pca = sp.nn.SigmaPCA(features, components, a=4.0)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(x)
        # detach(): the layer watches the features and does not change them.
        _, loss = self.sigma_pca(features.detach(), return_loss=True)
        return self.head(features), loss


def train(network: Network, x: torch.Tensor, digit: torch.Tensor, epochs: int) -> None:
    """Train the network with its layer, and then the layer alone, on features that stand still."""
    steps(network.parameters(), network, x, digit, epochs, 3e-3)
    with torch.no_grad():
        network.sigma_pca.init_pca(network.body(x))
    steps(network.sigma_pca.parameters(), network, x, digit, 2 * epochs, 0.01)


def steps(
    parameters: Iterable[nn.Parameter],
    network: Network,
    x: torch.Tensor,
    digit: torch.Tensor,
    epochs: int,
    rate: float,
) -> None:
    """Train these parameters by both losses."""
    optimizer = torch.optim.Adam(parameters, lr=rate, eps=1e-7)
    handle = network.sigma_pca.constrain_after(optimizer)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for part in order.split(128):
            read, loss = network(x[part])
            optimizer.zero_grad()
            (functional.cross_entropy(read, digit[part]) + loss).backward()
            optimizer.step()
        falling.step()
    handle.remove()


def read_from(train: np.ndarray, test: np.ndarray, digits: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the share of test digits that a linear classifier on these components reads."""
    return float(LogisticRegression(max_iter=2000).fit(train, digits[0]).score(test, digits[1]))


def main(epochs: int = 60) -> dict[str, float]:
    """Train, print a table, and return its numbers."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, digit = load_digits(return_X_y=True)
    x, target = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digit)
    split = 1300
    network = Network()
    train(network, x[:split], target[:split], epochs)
    network.eval()
    with torch.no_grad():
        read = network(x[split:])[0].argmax(1)
        features = network.body(x)
        y = network.sigma_pca(features)[:, network.sigma_pca.order].numpy()
        W = network.sigma_pca.filters[:, network.sigma_pca.order].numpy()
    features = features.numpy()
    pca = PCA(10).fit(features[:split])
    digits = (digit[:split], digit[split:])
    found = {"accuracy of the network": float((read == target[split:]).float().mean())}
    for m in (3, 6, 10):
        own, theirs = y[:, :m], pca.transform(features)[:, :m]
        found[f"read from {m} components of the layer"] = read_from(own[:split], own[split:], digits)
        found[f"read from {m} components of linear PCA"] = read_from(theirs[:split], theirs[split:], digits)
    solved = sp.SigmaPCA(10, a=4.0, max_iter=1000).fit(features[:split])
    identified = solved.certificate(features[:split]).identified
    found["axes that the features identify, of 10"] = int(identified.sum())
    for name, axes in (("the layer's filters", W), ("the axes of linear PCA", pca.components_.T)):
        cosine = np.abs(axes.T @ solved.components_.T).max(axis=0)
        found[f"|cos| of {name} with those of a solver, where identified"] = float(cosine[identified].mean())
    for name, value in found.items():
        print(f"{value:8.3f}  {name}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a network with a σ-PCA layer on its features.")
    parser.add_argument("--epochs", type=int, default=60)
    main(parser.parse_args().epochs)

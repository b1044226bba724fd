"""Nonlinear PCA of image patches as a user of PyTorch would write it: python eager.py IMAGES.npy OUT.npy.

Eager autograd on the whole patch matrix; 11 × 11 patches with stride 1 and zero padding, 3 epochs of batches of 128.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F


def patches(images: np.ndarray) -> torch.Tensor:
    """Standardised patches (n, p) of images (N, H, W, C)."""
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    x = F.unfold(x, 11, padding=5).permute(0, 2, 1).reshape(-1, 363)
    return (x - x.mean(0)) / torch.sqrt(x.var(0) + 1e-3)


class SigmaPCA(torch.nn.Module):
    """W with a moving average of the variances of its components."""

    def __init__(self, p: int, k: int, a: float) -> None:
        super().__init__()
        self.W = torch.nn.Parameter(torch.linalg.qr(torch.randn(p, k))[0])
        self.variance: torch.Tensor
        self.register_buffer("variance", torch.ones(k))
        self.a = a

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The loss of a batch."""
        y = x @ self.W
        with torch.no_grad():
            self.variance.mul_(0.99).add_(0.01 * y.var(0, unbiased=False))
        sigma = torch.sqrt(self.variance + 1e-3)
        y_hat = self.a * torch.tanh(y / (self.a * sigma)) * sigma
        return (x - y_hat @ self.W.detach().T).square().sum(1).mean()


def main() -> None:
    """Train and save the filters."""
    torch.manual_seed(0)
    data = patches(np.load(sys.argv[1]))
    model = SigmaPCA(data.shape[1], 32, 4.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for index in torch.randperm(len(data)).split(128):
            x = data[index]
            loss = model(x - x.mean(0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                model.W.div_(model.W.norm(dim=0))
    np.save(sys.argv[2], model.W.detach().numpy())


if __name__ == "__main__":
    main()

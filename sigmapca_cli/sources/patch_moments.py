"""Exact mean and covariance of all patches of a set of images, without ever making the patch matrix.

A patch feature is a pixel seen through a moving window, so E[x_a x_b] is a sum of products of pixels that
lie at most one patch apart. Those products, summed over images, are matrix products of image rows; the
windows are summed after. For 32 × 32 × 3 images and 11 × 11 patches that is 2.7 million multiplications an
image instead of 135 million. On bytes every number is an integer below 2^53, so float64 gives the exact
answer in any order of summation.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from sigmapca_cli.sources.statistics import Moments

Array = NDArray[np.float64]


def positions(length: int, patch: int, stride: int) -> int:
    """How many windows of `patch` fit into a padded side."""
    return max(0, (length - patch) // stride + 1)


def row_products(images: NDArray, patch: int, block: int = 256) -> Array:
    """G (H, patch, W C, W C): G[u, d] = Σ_images rowᵤᵀ rowᵤ₊d, rows flattened to W C pixels, 0 beyond the edge."""
    N, H, W, C = images.shape
    G = np.zeros((H, patch, W * C, W * C))
    for start in range(0, N, block):
        flat = images[start : start + block].astype(np.float64).reshape(-1, H * W * C)
        for u in range(H):
            last = min(u + patch, H)
            product = flat[:, u * W * C : (u + 1) * W * C].T @ flat[:, u * W * C : last * W * C]
            G[u, : last - u] += product.reshape(W * C, last - u, W * C).transpose(1, 0, 2)
    return G


def _sum_windows(G: Array, count_rows: int, count_cols: int, patch: int, stride: int, channels: int) -> Array:
    """Second-moment sums (p, p) from padded row products G (Hp, patch, Wp, C, Wp, C)."""
    p = patch * patch * channels
    M = np.zeros((patch, patch, channels, patch, patch, channels))
    for r in range(patch):
        rows = G[r : r + (count_rows - 1) * stride + 1 : stride, : patch - r].sum(axis=0)
        s0, s1, s2, s3, s4 = rows.strides
        shape = (patch - r, patch, channels, patch, channels, count_cols)
        diagonals = as_strided(rows, shape, (s0, s1, s2, s3, s4, stride * (s1 + s3)), writeable=False)
        M[r, :, :, r:] = diagonals.sum(axis=-1).transpose(1, 2, 0, 3, 4)
    square = M.reshape(p, p)
    # Only r' >= r was filled; within r' = r both orders are there, so mirror strictly later rows alone.
    row = np.arange(p) // (patch * channels)
    return np.where(row[:, None] > row[None, :], square.T, square)


def second_moment_sums(images: NDArray, patch: int, stride: int, pad: int) -> Array:
    """Σ over patches of xᵀx (p, p) in raw units, for images (N, H, W, C) with `pad` zeros on every side."""
    _, H, W, C = images.shape
    G = row_products(images, patch)
    padded = np.zeros((H + 2 * pad, patch, W + 2 * pad, C, W + 2 * pad, C))
    inside = slice(pad, pad + W)
    padded[pad : pad + H, :, inside, :, inside, :] = G.reshape(H, patch, W, C, W, C)
    rows, cols = (positions(side + 2 * pad, patch, stride) for side in (H, W))
    return _sum_windows(padded, rows, cols, patch, stride, C)


def feature_sums(total: Array, patch: int, stride: int) -> Array:
    """Σ over patches of each feature (p,), from one padded image (Hp, Wp, C) that is the sum over images."""
    rows, cols = (positions(side, patch, stride) for side in total.shape[:2])
    sums = np.empty((patch, patch, total.shape[2]))
    for r in range(patch):
        strip = total[r : r + (rows - 1) * stride + 1 : stride].sum(axis=0)
        for c in range(patch):
            sums[r, c] = strip[c : c + (cols - 1) * stride + 1 : stride].sum(axis=0)
    return sums.ravel()


def _pixel_sums(images: NDArray, power: int, pad: int) -> Array:
    total = np.zeros(images.shape[1:])
    for start in range(0, len(images), 256):
        total += (images[start : start + 256].astype(np.float64) ** power).sum(axis=0)
    return np.pad(total, ((pad, pad), (pad, pad), (0, 0)))


def patch_moments(images: NDArray, patch: int, stride: int, pad: int, diagonal: bool) -> Moments:
    """Biased moments of all patches of images (N, H, W, C), raw units."""
    _, H, W, _ = images.shape
    rows, cols = (positions(side + 2 * pad, patch, stride) for side in (H, W))
    n = len(images) * rows * cols
    mean = feature_sums(_pixel_sums(images, 1, pad), patch, stride) / n
    if diagonal:
        square = feature_sums(_pixel_sums(images, 2, pad), patch, stride) / n
        second = square - mean**2
        # A difference this small is rounding: the feature is constant.
        second[second <= 64 * np.finfo(np.float64).eps * square] = 0.0
        return Moments(n, mean, second)
    sums = second_moment_sums(images, patch, stride, pad)
    return Moments(n, mean, sums / n - np.outer(mean, mean))

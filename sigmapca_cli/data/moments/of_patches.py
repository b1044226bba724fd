"""Exact mean and covariance of all patches of a set of images, without computing the patch matrix.

A patch feature is a pixel in a moving window, so E[x_a x_b] is a sum of products of pixels that are at most one patch
apart. These products, summed over images, are matrix products of image rows; the sum over windows follows. For
32 × 32 × 3 images and 11 × 11 patches this takes 2.7 million multiplications per image instead of 135 million. For
bytes every number is an integer below 2^53, so float64 gives the exact result in any order of summation.
"""

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from sigmapca_cli.data.moments.accumulate import Moments
from sigmapca_cli.system.processes import mapped

Array = NDArray[np.float64]

BAND_ENTRIES = 1 << 19
"""Pixels of a band of rows whose float64 copy is made: 4 MB."""
BLOCK_IMAGES = 512
"""Number of images whose rows are multiplied at once."""
TOGETHER = 256
"""Number of images whose pixels are summed at once."""


def positions(length: int, patch: int, stride: int) -> int:
    """Return the number of windows of `patch` pixels that fit into a padded side."""
    return max(0, (length - patch) // stride + 1)


def row_products(images: NDArray, patch: int, G: Array | None = None) -> Array:
    """Return G (H, patch, W C, W C): G[u, d] = Σ_images rowᵤᵀ rowᵤ₊d, rows of W C pixels, 0 beyond the edge."""
    N, H, W, C = images.shape
    G = np.zeros((H, patch, W * C, W * C)) if G is None else G
    for start in range(0, N, BLOCK_IMAGES):
        flat = images[start : start + BLOCK_IMAGES].astype(np.float64).reshape(-1, H * W * C)

        def add_row(u: int, flat: Array = flat) -> None:
            last = min(u + patch, H)
            product = flat[:, u * W * C : (u + 1) * W * C].T @ flat[:, u * W * C : last * W * C]
            G[u, : last - u] += product.reshape(W * C, last - u, W * C).transpose(1, 0, 2)

        list(mapped(add_row, range(H)))
    return G


def _sum_windows(G: Array, counts: tuple[int, int], patch: int, stride: int, pad: int = 0) -> Array:
    """Return second-moment sums (p, p) from row products G (H, patch, W, C, W, C), `counts` windows down and across.

    The zeros of the padding are added after the sum over rows: added to G they would double its size.
    """
    count_rows, count_cols = counts
    W, channels = G.shape[2:4]
    p = patch * patch * channels
    inside = slice(pad, pad + W)
    M = np.zeros((patch, patch, channels, patch, patch, channels))
    for r in range(patch):
        first = r - pad
        start = first if first >= 0 else first % stride
        rows = np.zeros((patch - r, W + 2 * pad, channels, W + 2 * pad, channels))
        seen = G[start : max(first + (count_rows - 1) * stride + 1, 0) : stride, : patch - r]
        rows[:, inside, :, inside] = seen.sum(axis=0)
        s0, s1, s2, s3, s4 = rows.strides
        shape = (patch - r, patch, channels, patch, channels, count_cols)
        diagonals = as_strided(rows, shape, (s0, s1, s2, s3, s4, stride * (s1 + s3)), writeable=False)
        M[r, :, :, r:] = diagonals.sum(axis=-1).transpose(1, 2, 0, 3, 4)
    square = M.reshape(p, p)
    # Only r' >= r was filled. For r' = r both orders are present, so only strictly later rows are mirrored.
    row = np.arange(p) // (patch * channels)
    return np.where(row[:, None] > row[None, :], square.T, square)


def second_moment_sums(images: NDArray, patch: int, stride: int, pad: int) -> Array:
    """Return Σ over patches of xᵀx (p, p), raw units, for images (N, H, W, C) with `pad` zeros on every side."""
    _, H, W, C = images.shape
    G = row_products(images, patch).reshape(H, patch, W, C, W, C)
    rows, cols = (positions(side + 2 * pad, patch, stride) for side in (H, W))
    return _sum_windows(G, (rows, cols), patch, stride, pad)


def feature_sums(images: NDArray, power: int, patch: int, stride: int, pad: int) -> Array:
    """Return Σ over patches of each feature to this power (p,), of images (N, H, W, C) with `pad` zeros on every side.

    By bands of rows: of a photograph in float64 only a few megabytes are made. The order of every sum is that of the
    rows, so its bits do not depend on the bands.
    """
    _, H, W, C = images.shape
    rows, cols = (positions(side + 2 * pad, patch, stride) for side in (H, W))
    strips = np.zeros((patch, W + 2 * pad, C))
    band = max(1, BAND_ENTRIES // (min(len(images), TOGETHER) * W * C))
    for top in range(0, H, band):
        total = _pixel_sums(images[:, top : top + band], power)
        for r in range(patch):
            # Row u of an image is row r of the i-th window from above where u + pad = r + i · stride.
            first = max(r - pad, top + (r - pad - top) % stride)
            last = min(r - pad + (rows - 1) * stride + 1, top + len(total))
            if first < last:
                seen = total[first - top : last - top : stride]
                strip = strips[r, pad : pad + W]
                strip[...] = np.concatenate([strip[None], seen]).sum(axis=0)
    sums = np.empty((patch, patch, C))
    for c in range(patch):
        sums[:, c] = strips[:, c : c + (cols - 1) * stride + 1 : stride].sum(axis=1)
    return sums.ravel()


def _pixel_sums(images: NDArray, power: int) -> Array:
    """Return Σ over images of each pixel to this power."""
    total = np.zeros(images.shape[1:])
    for start in range(0, len(images), TOGETHER):
        pixels = images[start : start + TOGETHER].astype(np.float64)
        total += (pixels**power if power > 1 else pixels).sum(axis=0)
    return total


# With more bytes of row products than this, gathering the patches is cheaper.
PRODUCT_LIMIT = 2 << 30
# Large images are cut into tiles of so many window positions per side.
TILE = 32


def _rectangle_sums(images: NDArray, patch: int, stride: int, pad: int) -> Array:
    """Return Σ xᵀx over all patches, by the cheapest method for this geometry."""
    _, H, W, C = images.shape
    side = TILE * stride + patch
    tiled = max(H, W) > side + patch
    height, width = (side, side) if tiled else (H, W)
    products = height * patch * (width * C) ** 2
    rows, cols = (positions(length + 2 * pad, patch, stride) for length in (H, W))
    # Tiles pay their products anew each; at wide strides that is more work, and far more memory, than the patches.
    patches = TILE**2 if tiled else len(images) * rows * cols
    if products * 8 > PRODUCT_LIMIT or products > patches * (patch * patch * C) ** 2:
        return _direct_sums(images, patch, stride, pad)
    if tiled:
        return _tiled_sums(images, patch, stride, pad)
    return second_moment_sums(images, patch, stride, pad)


def _direct_sums(images: NDArray, patch: int, stride: int, pad: int) -> Array:
    """Return the same sums by gathering patches in blocks: for few patches, or for very large ones.

    Pictures of few patches share a block if their pixels are whole numbers, whose sums have no order.
    """
    _, H, W, C = images.shape
    p = patch * patch * C
    M = np.zeros((p, p))
    size = max(1, (1 << 22) // p)
    each = positions(H + 2 * pad, patch, stride) * positions(W + 2 * pad, patch, stride)
    together = max(1, size // max(1, each)) if images.dtype.kind == "u" else 1
    for first in range(0, len(images), together):
        padded = np.pad(images[first : first + together], ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        view = sliding_window_view(padded, (patch, patch), axis=(1, 2))[:, ::stride, ::stride]
        places = np.indices(view.shape[:3]).reshape(3, -1)
        for start in range(0, places.shape[1], size):
            block = view[tuple(places[:, start : start + size])]
            x = block.transpose(0, 2, 3, 1).reshape(-1, p).astype(np.float64)
            M += x.T @ x
    return M


def _tiled_sums(images: NDArray, patch: int, stride: int, pad: int) -> Array:
    """Return the same sums for large images, by tiles of TILE × TILE window positions."""
    p = patch * patch * images.shape[3]
    side = (TILE - 1) * stride + patch
    M = np.zeros((p, p))
    for image in images:
        padded = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
        rows, cols = (positions(length, patch, stride) for length in padded.shape[:2])
        full_rows, full_cols = (rows // TILE, cols // TILE) if min(rows, cols) >= TILE else (0, 0)
        if full_rows:
            view = sliding_window_view(padded, (side, side), axis=(0, 1))
            tiles = view[:: TILE * stride, :: TILE * stride][:full_rows, :full_cols]
            M += _tile_block_sums(tiles.transpose(0, 1, 3, 4, 2), patch, stride)
        # The rest is an L-shaped region of fewer than TILE positions along the right and the lower edge.
        r, c = full_rows * TILE * stride, full_cols * TILE * stride
        if full_rows * TILE < rows:
            M += _direct_sums(padded[None, r:], patch, stride, 0)
        if full_rows and full_cols * TILE < cols:
            bottom = r - stride + patch
            M += _direct_sums(padded[None, :bottom, c:], patch, stride, 0)
    return M


def _tile_block_sums(tiles: NDArray, patch: int, stride: int) -> Array:
    """Return sums over a grid of tiles (rows, cols, side, side, C), copied in bands of tiles."""
    band = max(1, 256 // max(1, tiles.shape[1]))
    side, channels = tiles.shape[2], tiles.shape[4]
    parts = (
        np.ascontiguousarray(tiles[i : i + band]).reshape(-1, side, side, channels)
        for i in range(0, len(tiles), band)
    )
    G: Array | None = None
    for part in parts:
        G = row_products(part, patch, G=G)
    assert G is not None
    shape = (side, patch, side, channels, side, channels)
    return _sum_windows(G.reshape(shape), (TILE, TILE), patch, stride)


def patch_moments(images: NDArray, patch: int, stride: int, pad: int, diagonal: bool) -> Moments:
    """Return the biased moments of all patches of images (N, H, W, C), raw units."""
    _, H, W, _ = images.shape
    rows, cols = (positions(side + 2 * pad, patch, stride) for side in (H, W))
    n = len(images) * rows * cols
    mean = feature_sums(images, 1, patch, stride, pad) / n
    if diagonal:
        return _diagonal(n, mean, feature_sums(images, 2, patch, stride, pad) / n)
    sums = _rectangle_sums(images, patch, stride, pad)
    return Moments(n, mean, sums / n - np.outer(mean, mean))


def moments_of_each(images: NDArray, patch: int, stride: int) -> Iterator[Moments]:
    """Yield the moments, means and variances alone, of the patches of each of many small images (N, H, W, C).

    Sums of whole numbers have no order: the bits are those of `patch_moments` of one image.
    """
    if len(images) == 1 or images.dtype.kind != "u":
        yield from (patch_moments(image[None], patch, stride, 0, diagonal=True) for image in images)
        return
    n = positions(images.shape[1], patch, stride) * positions(images.shape[2], patch, stride)
    first, second = (_sums_of_each(images.astype(np.float64) ** power, patch, stride) for power in (1, 2))
    for sums, squares in zip(first, second, strict=True):
        yield _diagonal(n, sums / n, squares / n)


def _sums_of_each(pixels: Array, patch: int, stride: int) -> Array:
    """Return Σ over the patches of each image of each feature (N, p), of pixels (N, H, W, C)."""
    rows, cols = (positions(side, patch, stride) for side in pixels.shape[1:3])
    seen = [slice(first, first + (rows - 1) * stride + 1, stride) for first in range(patch)]
    strips = np.stack([pixels[:, part].sum(axis=1) for part in seen], axis=1)
    seen = [slice(first, first + (cols - 1) * stride + 1, stride) for first in range(patch)]
    return np.stack([strips[:, :, part].sum(axis=2) for part in seen], axis=2).reshape(len(pixels), -1)


def _diagonal(n: int, mean: Array, square: Array) -> Moments:
    """Return n, mean and variance from the means of values and squares."""
    second = square - mean**2
    # A difference this small is rounding: the feature is constant.
    second[second <= 64 * np.finfo(np.float64).eps * square] = 0.0
    return Moments(n, mean, second)

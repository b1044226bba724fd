"""All square patches of images of one size as rows, gathered on demand."""

import hashlib

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.moments.accumulate import Moments
from sigmapca_cli.data.moments.of_patches import patch_moments, positions
from sigmapca_cli.data.source import Index, Source, as_index
from sigmapca_cli.data.standardisation import Standardisation, images_of, need_two_samples, part_of
from sigmapca_cli.system.errors import InputError

# 1 % of the mean variance is added under the root, so that a nearly constant pixel is not scaled to unit variance:
# all pixels have the same unit (the authors' 1e-3 is 1.6 % on CIFAR-10).
PIXEL_EPSILON = 0.01


def pixel_unit(dtype: np.dtype) -> float:
    """Return the factor for pixels: 1/(largest value) for integers (1/255 for bytes), 1 for floating point."""
    return 1.0 / float(np.iinfo(dtype).max) if dtype.kind in "ui" else 1.0


def padding_width(patch: int, padding: str) -> int:
    """Return the number of zeros on each side: (patch − 1)/2 for "same", 0 for "valid" and for an even patch."""
    return 0 if padding == "valid" or patch % 2 == 0 else (patch - 1) // 2


class PatchSource(Source):
    """Patches (patch × patch × channels) of images (N, H, W, C); row order image, row, column of the window.

    Feature (r · patch + c) · channels + channel is row r, column c of the window. Zero padding when pad > 0.
    """

    def __init__(
        self, name: str, images: NDArray, patch: int, stride: int, pad: int, options: Standardisation
    ) -> None:
        if images.ndim == 3:
            images = images[..., None]
        N, H, W, C = images.shape
        self.pictures = N
        if patch > min(H, W) + 2 * pad:
            raise InputError(f"data.patch={patch} is larger than the images ({H} × {W}): lower data.patch")
        self.name, self.images, self.patch, self.stride, self.pad = name, images, patch, stride, pad
        self.patch_shape = (patch, patch, C)
        self.window_counts = (positions(H + 2 * pad, patch, stride), positions(W + 2 * pad, patch, stride))
        self.n, self.p = N * self.window_counts[0] * self.window_counts[1], patch * patch * C
        need_two_samples(self.n, f"data={name}")
        self.unit = pixel_unit(images.dtype)
        self._padded = np.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        self._windows = self._window_view()
        geometry = repr((images.shape, images.dtype.str, patch, stride, pad)).encode()
        digest = hashlib.sha256(np.ascontiguousarray(images).data).digest()
        self._standardise(options, digest + geometry)

    def _window_view(self) -> NDArray:
        """Return a view (N, rows, cols, patch) of strips; a strip is one window row: patch · C adjacent pixels.

        A strip is one item of a void type, so that fancy indexing copies strips, not pixels.
        """
        strip = np.dtype((np.void, self.patch * self.images.shape[3] * self._padded.itemsize))
        sN, sH, sW, _ = self._padded.strides
        shape = (len(self.images), *self.window_counts, self.patch)
        base = np.ndarray((1,), dtype=strip, buffer=self._padded.data)
        strides = (sN, self.stride * sH, self.stride * sW, sH)
        return as_strided(base, shape, strides, writeable=False)

    def _gather(self, rows: Index | slice) -> NDArray:
        image, within = np.divmod(as_index(rows), self.window_counts[0] * self.window_counts[1])
        row, col = np.divmod(within, self.window_counts[1])
        strips = self._windows[image, row, col]
        return strips.view(self.images.dtype).reshape(len(strips), self.p)

    def _raw_moments(self, diagonal: bool) -> Moments:
        m = patch_moments(self.images, self.patch, self.stride, self.pad, diagonal)
        return Moments(m.n, m.mean * self.unit, m.second * self.unit**2)


def choose_images(images: NDArray, cfg: DataConfig) -> NDArray:
    """Return data.images of the images, then the half or part asked for.

    The parts of one image are strips of it, one below the other.
    """
    images = images[chosen_of(len(images), cfg)]
    return strip_of(images, cfg) if one_in_parts(len(images), cfg) else images[images_of(len(images), cfg)]


def chosen_of(count: int, cfg: DataConfig) -> Index | slice:
    """Return data.images of `count` images: the first, or a random choice in their order."""
    asked = count if cfg.images is None else cfg.images
    if asked > count:
        raise InputError(f"data.images={asked}, but there are only {count}: lower data.images")
    if cfg.select != "random":
        return slice(0, asked)
    return np.sort(np.random.default_rng(cfg.seed).permutation(count)[:asked])


def one_in_parts(count: int, cfg: DataConfig) -> bool:
    """Return whether data.part is to divide a single image."""
    return count == 1 and cfg.part is not None


def strip_of(images: NDArray, cfg: DataConfig) -> NDArray:
    """Return the strip data.part of images (N, H, …): windows of two strips have no pixel in common."""
    number, parts = part_of(cfg)
    height = images.shape[1]
    return np.ascontiguousarray(images[:, height * (number - 1) // parts : height * number // parts])


def to_grey(images: NDArray) -> NDArray:
    """Return the luminance (N, H, W, 1), ITU-R 601 weights, rounded to the stored type."""
    if images.ndim == 3 or images.shape[3] == 1:
        return images.reshape(*images.shape[:3], 1)
    grey = images[..., :3].astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    return (np.rint(grey) if images.dtype.kind in "ui" else grey).astype(images.dtype)[..., None]


def patch_source(name: str, images: NDArray, cfg: DataConfig) -> PatchSource:
    """Return a PatchSource with the options of the data group; for data.patch=0 each whole image is one row."""
    images = choose_images(images, cfg)
    if cfg.grey:
        images = to_grey(images)
    patch, padding = cfg.patch, cfg.padding
    if patch == 0:
        if images.shape[1] != images.shape[2]:
            raise InputError("data.patch=0 (whole images) needs square images: give data.patch")
        patch, padding = images.shape[1], "valid"
    options = Standardisation.of(cfg, PIXEL_EPSILON)
    return PatchSource(name, images, patch, cfg.stride, padding_width(patch, padding), options)

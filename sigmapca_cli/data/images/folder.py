"""data=images: all PNG, JPEG and TIFF files below a folder, of any size, as patches; decoded one at a time."""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.images.patches import (
    PIXEL_EPSILON,
    PatchSource,
    chosen_of,
    one_in_parts,
    padding_width,
    patch_source,
    pixel_unit,
    strip_of,
    to_grey,
)
from sigmapca_cli.data.images.pictures import BYTES, SUFFIXES, WIDE, WORDS, common_bits, decoded, pictures_of
from sigmapca_cli.data.locate import existing
from sigmapca_cli.data.moments.accumulate import Moments, merge
from sigmapca_cli.data.moments.of_patches import moments_of_each, patch_moments
from sigmapca_cli.data.on_disk import row_file
from sigmapca_cli.data.on_disk.row_file import PageLedger, scratch_array
from sigmapca_cli.data.source import Index, Source, as_index
from sigmapca_cli.data.standardisation import Standardisation, images_of, need_two_samples
from sigmapca_cli.system.errors import InputError

MANY = 256
"""Pictures of one size that are summed up together: each alone takes longer than its pixels."""
STACK = 1 << 20
"""Pixels of the pictures that are summed up together."""
TYPES: dict[int, type] = {BYTES: np.uint8, WORDS: np.uint16, WIDE: np.float32}


def image_files(folder: Path, hidden: bool = False) -> list[Path]:
    """Return the image files below a folder, sorted by path, without hidden ones; or the single file given.

    On disks of other systems macOS writes a hidden `._a.png`, which is no picture, for each a.png.
    """
    if folder.is_file():
        return [folder]
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not hidden:
        files = [p for p in files if not any(part.startswith(".") for part in p.relative_to(folder).parts)]
    if not files:
        raise InputError(f"{folder} has no {', '.join(sorted(SUFFIXES))} file: check data.path")
    return files


def choose_files(files: list[Path], cfg: DataConfig) -> list[Path]:
    """Return data.images of the files, then the half or part asked for.

    The parts of one file are strips of its picture, which `from_files` takes.
    """
    chosen = np.arange(len(files))[chosen_of(len(files), cfg)]
    if not one_in_parts(len(chosen), cfg) or cfg.patch == 0:
        chosen = chosen[images_of(len(chosen), cfg)]
    return [files[i] for i in chosen]


class RaggedPatchSource(Source):
    """Patches of images of different sizes, from one flat buffer of zero-padded pixels.

    sides (N, 2): padded rows and columns of each image; pixels: the images one after the other.
    """

    def __init__(
        self,
        name: str,
        sides: NDArray[np.int64],
        pixels: NDArray,
        patch_shape: tuple[int, int, int],
        stride: int,
        pad: int,
        options: Standardisation,
    ) -> None:
        self.name, self.sides, self.pixels, self.stride, self.pad = name, sides, pixels, stride, pad
        self.patch_shape, self.patch, self.pictures = patch_shape, patch_shape[0], len(sides)
        self.channels = patch_shape[2]
        self.p = self.patch**2 * self.channels
        self.unit = pixel_unit(pixels.dtype)
        self._pages = PageLedger(pixels)
        self._cols = (sides[:, 1] - self.patch) // stride + 1
        counts = ((sides[:, 0] - self.patch) // stride + 1) * self._cols
        self._first_row = np.r_[0, np.cumsum(counts)]
        self._first_pixel = first_pixels(sides, self.channels)
        self.n = int(self._first_row[-1])
        self._strip = np.arange(self.patch * self.channels)[None, None, :]
        self._patch_rows = np.arange(self.patch)[None, :, None]
        need_two_samples(self.n, f"data={name}")
        geometry = repr((sides.tolist(), patch_shape, stride, pad, pixels.dtype.str)).encode()
        self._standardise(options, geometry + self._digest())

    def _digest(self) -> bytes:
        """Return SHA-256 of the pixels, image by image, so that few pages are mapped at a time."""
        digest = hashlib.sha256()
        for start, stop in zip(self._first_pixel, self._first_pixel[1:], strict=False):
            part = self.pixels[start:stop]
            digest.update(part.data)
            self._pages.touch(0, part.nbytes)
        return digest.digest()

    def _gather(self, rows: Index | slice) -> NDArray:
        index = as_index(rows)
        image = np.searchsorted(self._first_row, index, side="right") - 1
        row, col = np.divmod(index - self._first_row[image], self._cols[image])
        width = self.sides[image, 1] * self.channels
        corner = self._first_pixel[image] + row * self.stride * width + col * self.stride * self.channels
        flat = corner[:, None, None] + self._patch_rows * width[:, None, None] + self._strip
        gathered = self.pixels[flat].reshape(len(index), self.p)
        self._pages.touch(len(index), gathered.nbytes)
        return gathered

    def _raw_moments(self, diagonal: bool) -> Moments:
        total: Moments | None = None
        for images in self._stacks():
            if diagonal:  # which the hash of the data has to the last bit
                for one in moments_of_each(images, self.patch, self.stride):
                    total = merge(total, one)
            else:
                total = merge(total, patch_moments(images, self.patch, self.stride, 0, diagonal))
            self._pages.touch(0, images.nbytes)
        assert total is not None
        return Moments(total.n, total.mean * self.unit, total.second * self.unit**2)

    def _stacks(self) -> Iterator[NDArray]:
        """Yield the pictures (m, rows, columns, channels): of many of one size several together, of others each."""
        ends = np.flatnonzero(np.any(np.diff(self.sides, axis=0), axis=1)) + 1
        for start, stop in itertools.pairwise([0, *ends.tolist(), len(self.sides)]):
            size = int(self._first_pixel[start + 1] - self._first_pixel[start])
            most = max(1, STACK // size) if stop - start >= MANY else 1
            for first in range(start, stop, most):
                last = min(first + most, stop)
                flat = self.pixels[self._first_pixel[first] : self._first_pixel[last]]
                yield flat.reshape(last - first, *self.sides[first], self.channels)


def first_pixels(sides: NDArray[np.int64], channels: int) -> NDArray[np.int64]:
    """Return where each image starts in the flat buffer, and the length of the buffer, (N + 1,)."""
    return np.r_[0, np.cumsum(sides.prod(axis=1) * channels)].astype(np.int64)


def from_files(files: list[Path], cfg: DataConfig) -> RaggedPatchSource:
    """Decode the pictures one at a time into a flat buffer of padded pixels."""
    pictures = [picture for file in files for picture in pictures_of(file, cfg)]
    strip = one_in_parts(len(files), cfg)
    if strip and len(pictures) > 1:  # the pages of one file
        pictures, strip = pictures[images_of(len(pictures), cfg)], False
    coloured, bits = any(p.coloured for p in pictures), common_bits(pictures)
    pad = padding_width(cfg.patch, cfg.padding)
    heights = [len(strip_of(np.empty((1, p.rows)), cfg)[0]) if strip else p.rows for p in pictures]
    sides = np.column_stack([heights, [p.cols for p in pictures]]).astype(np.int64) + 2 * pad
    small = np.flatnonzero(sides.min(axis=1) < cfg.patch)
    if len(small):
        first = pictures[small[0]]
        raise InputError(
            f"{first.named} ({first.rows} × {first.cols}) is smaller than data.patch={cfg.patch}: lower it"
        )
    channels = 3 if coloured and not cfg.grey else 1
    place = first_pixels(sides, channels)
    size, dtype = int(place[-1]), np.dtype(TYPES[bits])
    fits = size * dtype.itemsize <= row_file.MEMORY_LIMIT
    pixels = np.zeros(size, dtype) if fits else scratch_array((size,), dtype)
    pages = PageLedger(pixels)
    for i, image in enumerate(decoded(pictures, coloured, bits, cfg)):
        image = strip_of(image[None], cfg)[0] if strip else image
        image = to_grey(image[None])[0] if channels == 1 else image
        padded = pixels[place[i] : place[i + 1]].reshape(*sides[i], channels)
        padded[pad : pad + image.shape[0], pad : pad + image.shape[1]] = image
        pages.touch(0, padded.nbytes)
    shape = (cfg.patch, cfg.patch, channels)
    options = Standardisation.of(cfg, PIXEL_EPSILON)
    return RaggedPatchSource("images", sides, pixels, shape, cfg.stride, pad, options)


def build(cfg: DataConfig) -> Source:
    if cfg.path is None:
        raise InputError("data=images needs data.path=FOLDER with PNG, JPEG or TIFF files")
    folder = existing(cfg.path, "a folder of images")
    files = choose_files(image_files(folder, hidden=not cfg.recognise), cfg)
    if cfg.patch == 0:
        return _whole_images(files, cfg)
    return from_files(files, cfg)


def _whole_images(files: list[Path], cfg: DataConfig) -> PatchSource:
    """Return the source for data.patch=0, each image one row; raise InputError unless all are squares of one size."""
    pictures = [picture for file in files for picture in pictures_of(file, cfg)]
    side = pictures[0].rows
    odd = next((p for p in pictures if (p.rows, p.cols) != (side, side)), None)
    if odd is not None:
        raise InputError(
            f"data.patch=0 needs square images of one size; {odd.named} is {odd.rows} × {odd.cols}"
        )
    coloured, bits = any(p.coloured for p in pictures), common_bits(pictures)
    images = np.stack(list(decoded(pictures, coloured, bits, cfg)))
    return patch_source("images", images, replace(cfg, images=None, half="all", part=None, select="first"))

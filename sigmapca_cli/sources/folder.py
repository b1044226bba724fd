"""data=images: every PNG, JPEG and TIFF below a folder, of any size, as patches; decoded one at a time."""

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.base import Index, Source, Standardisation, half_of, need_two_samples
from sigmapca_cli.sources.locate import existing
from sigmapca_cli.sources.patch_moments import patch_moments
from sigmapca_cli.sources.patches import (
    PIXEL_EPSILON,
    PatchSource,
    padding_width,
    patch_source,
    pixel_unit,
    to_grey,
)
from sigmapca_cli.sources.statistics import Moments, merge

SUFFIXES = {".png", ".jpg", ".jpeg", ".tif", ".tiff"}
# Decoded pixels beyond this many bytes go to a temporary file that the system pages in and out.
MEMORY_LIMIT = 256 << 20


def image_files(folder: Path) -> list[Path]:
    """The image files below a folder, in order of their path; a single file is a folder of one."""
    if folder.is_file():
        return [folder]
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not files:
        raise InputError(f"{folder} has no {', '.join(sorted(SUFFIXES))} file: check data.path")
    return files


def choose_files(files: list[Path], cfg: Any) -> list[Path]:
    """data.images of them, the first or a random choice in order, then data.half of those."""
    count = len(files) if cfg.images is None else cfg.images
    if count > len(files):
        raise InputError(f"data.images={count}, but there are only {len(files)}: lower data.images")
    if cfg.select == "random":
        chosen = np.sort(np.random.default_rng(cfg.seed).permutation(len(files))[:count])
        files = [files[i] for i in chosen]
    return files[:count][half_of(count, cfg.half)]


def _open(path: Path) -> Any:
    from PIL import Image

    try:
        return Image.open(path)
    except Exception as error:  # Pillow's decoders raise many types
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a readable image ({reason}): remove or replace it") from None


def header(path: Path) -> tuple[int, int, bool, bool]:
    """Rows, columns, whether it is coloured, whether it has 16 bits a sample; pixels are not decoded."""
    with _open(path) as image:
        cols, rows = image.size
        coloured = image.mode not in ("1", "L", "LA", "I", "F") and not image.mode.startswith("I;16")
        return rows, cols, coloured, image.mode == "I" or image.mode.startswith("I;16")


def decode(path: Path, coloured: bool, deep: bool) -> NDArray:
    """Pixels (rows, cols, 3 or 1), uint8, or uint16 when every image of the folder has 16 bits."""
    with _open(path) as image:
        try:
            if deep:
                return np.asarray(image).astype(np.uint16)[..., None]
            if image.mode == "I" or image.mode.startswith("I;16"):
                image = image.point(lambda v: v / 256).convert("L")
            pixels = np.asarray(image.convert("RGB" if coloured else "L"))
        except (OSError, SyntaxError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{path} is truncated or damaged ({reason}): remove or replace it") from None
    return pixels.reshape(*pixels.shape[:2], -1)


class RaggedPatchSource(Source):
    """Patches of images of different sizes, from one flat buffer of padded pixels."""

    def __init__(self, name: str, files: list[Path], cfg: Any) -> None:
        headers = [header(file) for file in files]
        coloured = any(h[2] for h in headers)
        deep = all(h[3] for h in headers)
        self.name, self.patch, self.stride = name, cfg.patch, cfg.stride
        self.pad = padding_width(cfg.patch, cfg.padding)
        self.channels = 3 if coloured and not cfg.grey else 1
        self.patch_shape = (cfg.patch, cfg.patch, self.channels)
        self.p = cfg.patch**2 * self.channels
        dtype = np.dtype(np.uint16 if deep else np.uint8)
        self.unit = pixel_unit(dtype)
        self._lay_out(files, headers)
        self._fill(files, coloured, deep, dtype)
        need_two_samples(self.n, f"data={name}")
        self._standardise(Standardisation.of(cfg, PIXEL_EPSILON), self._digest)

    def _lay_out(self, files: list[Path], headers: list[tuple[int, int, bool, bool]]) -> None:
        sides = np.array([h[:2] for h in headers], dtype=np.int64) + 2 * self.pad
        small = np.flatnonzero(sides.min(axis=1) < self.patch)
        if len(small):
            rows, cols = headers[small[0]][:2]
            raise InputError(
                f"{files[small[0]]} ({rows} × {cols}) is smaller than data.patch={self.patch}: lower it"
            )
        self._sides = sides
        self._cols = (sides[:, 1] - self.patch) // self.stride + 1
        counts = ((sides[:, 0] - self.patch) // self.stride + 1) * self._cols
        self._first_row = np.r_[0, np.cumsum(counts)]
        self._first_pixel = np.r_[0, np.cumsum(sides.prod(axis=1) * self.channels)]
        self.n = int(self._first_row[-1])
        within = np.arange(self.patch * self.channels)
        self._strip = within[None, None, :]
        self._patch_rows = np.arange(self.patch)[None, :, None]

    def _fill(self, files: list[Path], coloured: bool, deep: bool, dtype: np.dtype) -> None:
        size = int(self._first_pixel[-1])
        self._pixels: NDArray
        if size * dtype.itemsize > MEMORY_LIMIT:
            self._scratch = tempfile.TemporaryFile(prefix="sigmapca-images-")  # noqa: SIM115
            self._pixels = np.memmap(self._scratch, dtype, "w+", shape=(size,))
        else:
            self._pixels = np.zeros(size, dtype)
        digest = hashlib.sha256(repr((self.pad, self.patch, self.stride)).encode())
        for i, file in enumerate(files):
            pixels = decode(file, coloured, deep)
            if self.channels == 1:
                pixels = to_grey(pixels[None])[0]
            digest.update(repr(pixels.shape).encode() + pixels.tobytes())
            inside = slice(self.pad, self.pad + pixels.shape[0]), slice(self.pad, self.pad + pixels.shape[1])
            self._image(i)[inside] = pixels
        self._digest = digest.digest()

    def _image(self, i: int) -> NDArray:
        rows, cols = self._sides[i]
        flat = self._pixels[self._first_pixel[i] : self._first_pixel[i + 1]]
        return flat.reshape(rows, cols, self.channels)

    def _gather(self, index: Index) -> NDArray:
        image = np.searchsorted(self._first_row, index, side="right") - 1
        row, col = np.divmod(index - self._first_row[image], self._cols[image])
        width = self._sides[image, 1] * self.channels
        corner = self._first_pixel[image] + row * self.stride * width + col * self.stride * self.channels
        flat = corner[:, None, None] + self._patch_rows * width[:, None, None] + self._strip
        return self._pixels[flat].reshape(len(index), self.p)

    def _raw_moments(self, diagonal: bool) -> Moments:
        total: Moments | None = None
        for i in range(len(self._sides)):
            m = patch_moments(self._image(i)[None], self.patch, self.stride, 0, diagonal)
            total = merge(total, m)
        assert total is not None
        return Moments(total.n, total.mean * self.unit, total.second * self.unit**2)


def build(cfg: Any) -> Source:
    if cfg.path is None:
        raise InputError("data=images needs data.path=FOLDER with PNG, JPEG or TIFF files")
    files = choose_files(image_files(existing(cfg.path, "a folder of images")), cfg)
    if cfg.patch == 0:
        return _whole_images(files, cfg)
    return RaggedPatchSource("images", files, cfg)


def _whole_images(files: list[Path], cfg: Any) -> PatchSource:
    """data.patch=0: each image is one row, so all must have one square size."""
    headers = [header(file) for file in files]
    shape = headers[0][:2]
    odd = next((i for i, h in enumerate(headers) if h[:2] != shape or h[0] != h[1]), None)
    if odd is not None:
        rows, cols = headers[odd][:2]
        raise InputError(f"data.patch=0 needs square images of one size; {files[odd]} is {rows} × {cols}")
    coloured, deep = any(h[2] for h in headers), all(h[3] for h in headers)
    images = np.stack([decode(file, coloured, deep) for file in files])
    chosen = {**vars_of(cfg), "images": None, "half": "all", "select": "first"}
    return patch_source("images", images, type("Chosen", (), chosen))


def vars_of(cfg: Any) -> dict[str, Any]:
    """The fields of a data group that concern patches, whatever object holds them."""
    names = ("grey", "patch", "stride", "padding", "seed", "standardise", "epsilon", "whiten", "scale_input")
    return {name: getattr(cfg, name) for name in names}

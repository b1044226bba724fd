"""Pictures in files: their headers before decoding, and their pixels as a viewer shows them."""

import contextlib
import itertools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.on_disk.progress import paced
from sigmapca_cli.data.readers.tiff import TIFF
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import reason
from sigmapca_cli.system.untrusted_files import need_memory

NODATA = 42113  # GDAL's tag of the value that stands for no data
ORIENTATION = 0x0112
TURNED = (5, 6, 7, 8)  # orientations that exchange rows and columns
BYTES, WORDS, WIDE = 8, 16, 32
DECODED, LUMINANCE = 12.0, 32.0
"""Bytes of memory for a pixel: while its picture is decoded, and besides while its colours become a luminance."""


@dataclass(frozen=True)
class Picture:
    """A picture in a file: rows and columns as a viewer shows them, whether it has colours, and bits per channel."""

    path: Path
    page: int
    rows: int
    cols: int
    coloured: bool
    bits: int  # 8, 16, or 32 for signed, 32-bit and floating point pixels, which have no known range

    @property
    def named(self) -> str:
        """The file, and the page if it is not the first."""
        return f"{self.path}, page {self.page + 1}," if self.page else str(self.path)


SUFFIXES = {".png", ".jpg", ".jpeg", ".tif", ".tiff"}
"""Ends of the names of images."""


@contextmanager
def opened(path: Path, most: int | None) -> Iterator[Any]:
    """Open the file by Pillow, without decoding; `most`: largest number of pixels, by default Pillow's limit."""
    from PIL import Image, UnidentifiedImageError

    before = Image.MAX_IMAGE_PIXELS
    try:
        # Pillow refuses pictures above twice its limit, and prints a warning above the limit.
        Image.MAX_IMAGE_PIXELS = before if most is None else max(most // 2, 1)
        with warnings.catch_warnings(), contextlib.ExitStack() as stack:
            warnings.simplefilter("ignore")  # of tags that it skips
            try:
                # Opened by name, Pillow maps uncompressed TIFFs into memory, with the wrong width if they are rotated.
                image = stack.enter_context(Image.open(stack.enter_context(path.open("rb"))))
            except Image.DecompressionBombError:
                raise too_large(path, most or 2 * (before or 0)) from None
            except UnidentifiedImageError:  # its words show the Python object of the open file
                with path.open("rb") as file:
                    tiff = file.read(4) in TIFF
                if tiff:
                    raise InputError(
                        f"{path} is a TIFF of several bands or of a type that no picture has: data=array "
                        "data.rows=[0,1] reads each pixel as a row of bands"
                    ) from None
                if path.suffix.lower() not in SUFFIXES:
                    raise InputError(
                        f"{path} is no image: `sigmapca data {path}` says what reads it"
                    ) from None
                raise InputError(
                    f"{path} has the name of an image, but its content is of no image format: remove or replace it"
                ) from None
            except Exception as error:  # Pillow's decoders raise many types
                raise InputError(
                    f"{path} is not a readable image ({reason(error)}): remove or replace it"
                ) from None
            yield image
    finally:
        Image.MAX_IMAGE_PIXELS = before


def too_large(path: Path, most: int) -> InputError:
    """Return the error for a picture above the limit, which may be intended."""
    return InputError(
        f"{path} has more than {most / 1e6:.0f} megapixels: if you trust it, raise the limit, data.max_pixels=NUMBER"
    )


def pictures_of(path: Path, cfg: DataConfig) -> list[Picture]:
    """Return the pictures of a file, from its headers; each page of a TIFF is one. Raise InputError for other files."""
    with opened(path, cfg.max_pixels) as image:
        found: list[Picture] = []
        try:
            pages = getattr(image, "n_frames", 1) if image.format == "TIFF" and cfg.recognise else 1
            for page in range(pages):
                image.seek(page)
                found.append(_header(path, page, image, cfg))
        except Exception as error:  # Pillow's decoders raise many types
            where = f"{path}, page {len(found) + 1}," if found else str(path)
            what = f"{where} is truncated or damaged ({reason(error)}): remove or replace it"
            raise InputError(what) from None
        return found


def _header(path: Path, page: int, image: Any, cfg: DataConfig) -> Picture:
    cols, rows = image.size
    if image.format != "TIFF" and cfg.recognise:  # Pillow turns a TIFF itself
        with contextlib.suppress(Exception):  # a broken note does not make the picture unreadable
            if int(image.getexif().get(ORIENTATION, 1)) in TURNED:
                rows, cols = cols, rows
    coloured = image.mode not in ("1", "L", "LA", "I", "F") and not image.mode.startswith("I;16")
    return Picture(path, page, rows, cols, coloured, _bits(image))


def _bits(image: Any) -> int:
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return WORDS
    return WIDE if image.mode in ("I", "F") else BYTES


def decoded(pictures: Sequence[Picture], coloured: bool, bits: int, cfg: DataConfig) -> Iterator[NDArray]:
    """Yield the upright pixels (rows, cols, 3 or 1) of pictures; a file of many pages is opened once for all of them.

    They are uint8, uint16 if all pictures have 16 bits, or float32 for wide ones. Transparent pixels are blended with
    black, the colour of zero padding. Raise InputError if the largest does not fit in memory.
    """
    largest = max(pictures, key=lambda picture: picture.rows * picture.cols)
    each = DECODED + (LUMINANCE if coloured and cfg.grey else 0)
    need_memory(each * largest.rows * largest.cols, largest.named, "make it smaller")
    for path, pages in itertools.groupby(announced(pictures), lambda picture: picture.path):
        with opened(path, cfg.max_pixels) as image:
            for picture in pages:
                yield _decoded(picture, image, coloured, bits, cfg)


def _decoded(picture: Picture, image: Any, coloured: bool, bits: int, cfg: DataConfig) -> NDArray:
    from PIL import ImageOps

    try:
        image.seek(picture.page)
        if cfg.recognise and image.format != "TIFF":
            ImageOps.exif_transpose(image, in_place=True)
        if cfg.recognise:
            _refuse_nodata(picture, image)
        pixels = _pixels(image, coloured, bits, cfg.recognise)
    except InputError:
        raise
    except Exception as error:  # Pillow's decoders raise many types
        if type(error).__name__ == "DecompressionBombError":
            raise too_large(picture.path, cfg.max_pixels or 0) from None
        what = f"{picture.named} is truncated or damaged ({reason(error)}): remove or replace it"
        raise InputError(what) from None
    if pixels.shape[:2] != (picture.rows, picture.cols):
        raise InputError(f"{picture.named} has another size than its header states: remove or replace it")
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        raise InputError(f"{picture.named} has pixels that are NaN or infinite: repair or remove it")
    return pixels


def _refuse_nodata(picture: Picture, image: Any) -> None:
    """Raise InputError for pixels without data in a picture of GDAL: patches would hold their value as brightness."""
    try:
        value = float(image.tag_v2[NODATA].strip("\0 "))
    except (AttributeError, KeyError, ValueError):
        return
    stored = np.asarray(image)
    missing = int(
        np.count_nonzero(np.isnan(stored) if np.isnan(value) else stored == stored.dtype.type(value))
    )
    if missing:
        raise InputError(
            f"{picture.named}: {missing} of {stored.size} pixels have the value {value:g}, which stands for no data: "
            "fill them or cut them off; data.recognise=false takes them as they are"
        )


def _pixels(image: Any, coloured: bool, bits: int, blend: bool) -> NDArray:
    from PIL import Image

    if bits == WIDE:
        return np.asarray(image).astype(np.float32)[..., None]
    if bits == WORDS:
        return np.asarray(image).astype(np.uint16)[..., None]
    if _bits(image) == WORDS:
        pixels = (np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)[..., None]
        return np.repeat(pixels, 3, axis=2) if coloured else pixels
    if blend and image.has_transparency_data:
        black = Image.new("RGBA", image.size, (0, 0, 0, 255))
        image = Image.alpha_composite(black, image.convert("RGBA")).convert("RGB")
    pixels = np.asarray(image.convert("RGB" if coloured else "L"))
    return pixels.reshape(*pixels.shape[:2], -1)


def common_bits(pictures: Sequence[Picture]) -> int:
    """Return the bits to decode all pictures to; raise InputError if pixels without a known range mix with others."""
    wide = [p for p in pictures if p.bits == WIDE]
    if wide and len(wide) < len(pictures):
        other = next(p for p in pictures if p.bits != WIDE)
        raise InputError(
            f"{wide[0].named} has signed, 32-bit or floating point pixels, {other.named} has {other.bits} bits: "
            "convert them to one type"
        )
    return min(p.bits for p in pictures)


def announced(pictures: Sequence[Picture]) -> Iterator[Picture]:
    """Yield the pictures; after two seconds warn how long all will take, if it is long, and show a progress bar."""
    sizes = [picture.rows * picture.cols for picture in pictures]
    words = "{left} more pictures to decode: about {time} left"
    return paced(pictures, sizes, sum(sizes), words, len(pictures))

"""data=natural: the two photographs that scikit-learn ships, cut into 32 × 32 tiles; needs no download."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.images.patches import PatchSource, patch_source
from sigmapca_cli.system.errors import InputError

TILE = 32
PHOTOGRAPHS = ("china.jpg", "flower.jpg")


def photographs() -> list[NDArray[np.uint8]]:
    """The two pictures (427, 640, 3); found without importing scikit-learn, which takes a second."""
    from PIL import Image

    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("data=natural needs scikit-learn's sample photographs: pip install scikit-learn")
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "images"
    missing = [name for name in PHOTOGRAPHS if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder / missing[0]} is missing: reinstall scikit-learn, or choose another data set"
        )
    return [np.asarray(Image.open(folder / name).convert("RGB")) for name in PHOTOGRAPHS]


def tiles(image: NDArray, side: int = TILE) -> NDArray:
    """(rows · cols, side, side, C) tiles in reading order; a rest at the right or lower edge is left out."""
    rows, cols = image.shape[0] // side, image.shape[1] // side
    cut = image[: rows * side, : cols * side].reshape(rows, side, cols, side, -1)
    return cut.transpose(0, 2, 1, 3, 4).reshape(rows * cols, side, side, -1)


def build(cfg: DataConfig) -> PatchSource:
    """520 tiles, so 532,480 patches at stride 1 with "same" padding."""
    return patch_source("natural", np.concatenate([tiles(image) for image in photographs()]), cfg)

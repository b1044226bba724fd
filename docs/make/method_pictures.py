"""Draws docs/methods/NAME.png from stored runs: python docs/make/method_pictures.py FOLDER_OF_RUNS

One finished run on image patches for each method; its first 16 filters in the order and with the signs of the run.
"""

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from sigmapca_cli.figures.filters import as_images, as_rgb
from sigmapca_cli.storage.find import find_runs
from sigmapca_cli.storage.read import StoredRun

DOCS = Path(__file__).resolve().parents[1]
SHOWN, COLUMNS, GAP, ZOOM = 16, 8, 1, 5


def picture(run: StoredRun) -> bytes:
    """Return the first filters of a run as a PNG with at most 256 colours, every weight a square of 5 × 5 pixels."""
    images = as_rgb(as_images(run.directions, run.patch_shape))[:SHOWN]
    _, height, width, _ = images.shape
    columns = min(COLUMNS, len(images))
    lines = -(-len(images) // columns)
    page = np.ones((lines * (height + GAP) - GAP, columns * (width + GAP) - GAP, 3))
    for i, image in enumerate(images):
        top, left = (i // columns) * (height + GAP), (i % columns) * (width + GAP)
        page[top : top + height, left : left + width] = image
    small = Image.fromarray(np.round(255 * page).astype(np.uint8)).quantize(256, dither=Image.Dither.NONE)
    file = io.BytesIO()
    small.resize((small.width * ZOOM, small.height * ZOOM), Image.Resampling.NEAREST).save(
        file, "PNG", optimize=True
    )
    return file.getvalue()


def main(folder: str) -> None:
    """Draw the newest finished run of each method."""
    runs = {found.model: found.folder for found in find_runs(folder) if found.status == "finished"}
    for name, place in sorted(runs.items()):
        (DOCS / "methods" / f"{name}.png").write_bytes(picture(StoredRun.open(place)))
    print(f"{len(runs)} pictures in {DOCS / 'methods'}")


if __name__ == "__main__":
    main(*sys.argv[1:])

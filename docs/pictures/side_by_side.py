"""Draws the filters of two runs as grids beside each other: python side_by_side.py RUN TITLE RUN TITLE OUT.png"""

import sys
from pathlib import Path

import numpy as np

from sigmapca_cli.figures.filters import as_images, as_rgb
from sigmapca_cli.figures.save import new_figure, save
from sigmapca_cli.storage.read import StoredRun

COLUMNS, GAP = 8, 1


def mosaic(run: StoredRun) -> np.ndarray:
    """The filters of a run, in order of σ, as one picture with white gaps."""
    images = as_rgb(as_images(run.directions, run.patch_shape))
    k, height, width, _ = images.shape
    lines = -(-k // COLUMNS)
    page = np.ones((lines * (height + GAP), COLUMNS * (width + GAP), 3))
    for i, image in enumerate(images):
        top, left = (i // COLUMNS) * (height + GAP), (i % COLUMNS) * (width + GAP)
        page[top : top + height, left : left + width] = image
    return page


def main(first: str, one: str, second: str, other: str, out: str) -> None:
    """Two panels."""
    figure = new_figure(11, 3.1)
    for i, (folder, title) in enumerate(((first, one), (second, other))):
        axes = figure.add_subplot(1, 2, i + 1)
        axes.imshow(mosaic(StoredRun.open(folder)), interpolation="nearest")
        axes.set_title(title, fontsize=11)
        axes.axis("off")
    save(figure, Path(out), formats=("png",))


if __name__ == "__main__":
    main(*sys.argv[1:])

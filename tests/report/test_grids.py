"""Filter pictures hold the weights: pixel for pixel, or as lines that lose no peak."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from sigmapca_cli.figures.filters import as_images, as_rgb
from sigmapca_cli.report.gallery import MOST_POINTS, filter_grid


def pixels(svg: str) -> np.ndarray:
    """The RGBA pixels of the picture inside."""
    (data,) = re.findall(r"base64,([^\"]*)", svg)
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"))


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_each_weight_is_one_pixel(channels: int):
    shape = (6, 4, channels)
    W = np.random.default_rng(0).normal(size=(24 * channels, 11))
    svg = filter_grid(W, np.ones(11), shape)
    found = pixels(svg)
    wanted = np.round(255 * as_rgb(as_images(W, shape)))
    corners = re.findall(r'<rect class="frame" x="(\d+)" y="(\d+)" width="4" height="6"', svg)
    assert len(corners) == 11
    for image, (x, y) in zip(wanted, corners, strict=True):
        patch = found[int(y) : int(y) + 6, int(x) : int(x) + 4]
        assert (patch[..., :3] == image).all() and (patch[..., 3] == 255).all()
    assert (found[..., 3] == 255).sum() == 11 * 24  # gaps are see-through


def test_a_palette_makes_the_picture_smaller_and_hardly_other():
    W = np.random.default_rng(1).normal(size=(32 * 32 * 3, 16))
    full, coarse = filter_grid(W, None, (32, 32, 3)), filter_grid(W, None, (32, 32, 3), palette=64)
    assert len(coarse) < 0.5 * len(full)
    difference = np.abs(pixels(full)[..., :3].astype(int) - pixels(coarse)[..., :3])
    assert difference[pixels(full)[..., 3] > 0].mean() < 30


def test_flat_and_zero_filters_are_drawn():
    W = np.stack([np.zeros(9), np.ones(9), -np.ones(9)], axis=1)
    found = pixels(filter_grid(W, None, (3, 3, 1)))
    levels = set(found[found[..., 3] > 0][:, 0].tolist())
    assert levels == {128, 255, 0}


def test_lines_keep_the_farthest_weight():
    W = np.zeros((5000, 1))
    W[1234] = 1.0
    (text,) = re.findall(r'<polyline[^>]*points="([^"]*)"', filter_grid(W, None, None))
    heights = np.array([float(point.split(",")[1]) for point in text.split()])
    assert len(heights) == MOST_POINTS
    assert (heights < heights.max() - 20).sum() == 1


def test_few_features_are_bars():
    svg = filter_grid(np.eye(4)[:, :3], np.ones(3), None)
    assert svg.count('class="bar"') == 12 and svg.count("σ 1<") == 3

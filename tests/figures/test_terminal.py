"""Filters in a terminal: the colours are the pixels, and a terminal without them gets words."""

import io

import numpy as np
from rich.console import Console

from sigmapca_cli.figures import print_filters


def console(**options):
    options = {
        "force_terminal": True,
        "color_system": "truecolor",
        "width": 40,
        "legacy_windows": False,
    } | options
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    return Console(file=file, _environ={}, **options)


def printed(W, sigma, shape, **options):
    target = console(**options)
    print_filters(W, sigma, shape, target)
    target.file.flush()
    return target.file.buffer.getvalue().decode(target.file.encoding)


def test_two_pixels_a_character_in_their_colours():
    W = np.array([[1.0], [-1.0], [0.0], [0.5]])
    text = printed(W, [2.5], (2, 2, 1))
    assert text.count("▀") == 2
    assert "38;2;255;255;255;48;2;128;128;128m▀" in text
    assert "38;2;0;0;0;48;2;191;191;191m▀" in text
    assert "2.5" in text


def test_lines_wrap_at_the_width_of_the_terminal():
    W = np.random.default_rng(0).standard_normal((121, 5))
    text = printed(W, np.arange(5, 0, -1), (11, 11, 1), width=40)
    assert text.count("▀") == 5 * 11 * 6
    longest = max(len(line) for line in _plain(text).splitlines())
    assert longest <= 40


def test_words_without_colour_terminal_or_patches():
    W = np.random.default_rng(0).standard_normal((4, 2))
    W[2, 0] = -7
    for options in ({"no_color": True}, {"force_terminal": False}, {"color_system": None}):
        text = printed(W, [2.0, 1.0], (2, 2, 1), **options)
        assert "▀" not in text and "\x1b" not in text
        assert "2:-7.000" in text
    assert "2:-7.000" in printed(W, [2.0, 1.0], None)


def _plain(text):
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)

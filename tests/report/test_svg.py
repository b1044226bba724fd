"""Charts: round ticks inside their range, lines inside their frame, means that stay means."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmapca_cli.report.charts import (
    HEIGHT,
    MOST_POINTS,
    WIDTH,
    Series,
    colours,
    decades,
    line_chart,
    thinned,
    ticks,
)

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(NUMBERS, st.floats(1e-6, 1e6))
def test_ticks_are_round_and_inside(low: float, span: float):
    high = low + span
    found = np.array(ticks(low, high))
    slack = 1e-6 * span + 1e-9 * abs(low)
    assert 1 <= len(found) <= 7
    assert found.min() >= low - slack and found.max() <= high + slack
    if len(found) > 1:
        step = (found[-1] - found[0]) / (len(found) - 1)
        mantissa = step / 10 ** np.floor(np.log10(step) + 1e-6)
        assert np.isclose(mantissa, [1, 2, 5], rtol=1e-3).any()


@given(st.floats(1e-6, 1e3), st.floats(3, 1e6))
def test_ticks_of_a_log_scale_lie_inside(low: float, factor: float):
    found = decades(low, low * factor)
    assert 1 <= len(found) <= 7
    assert all(low <= value <= low * factor for value in found)


@given(st.lists(NUMBERS, min_size=1, max_size=30), st.booleans())
def test_lines_stay_inside_the_picture(values: list[float], log: bool):
    y = np.exp(np.array(values) / 1e5) if log else np.array(values)
    chart = line_chart([Series(np.arange(len(y)) + 0.0, y, "#000", dots=True)], "x", "y", log=log)
    points = [part.split(",") for text in re.findall(r'points="([^"]*)"', chart) for part in text.split()]
    points += re.findall(r'cx="([^"]*)" cy="([^"]*)"', chart)
    assert len(points) >= len(y)
    for a, b in points:
        assert 0 <= float(a) <= WIDTH and 0 <= float(b) <= HEIGHT


def test_a_chart_keeps_order_and_proportion():
    chart = line_chart(
        [Series(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]), "#000")], "x", "y", (0, 4)
    )
    (text,) = re.findall(r'points="([^"]*)"', chart)
    x, y = np.array([point.split(",") for point in text.split()], dtype=float).T
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert (y[0] - y[1]) * 4 == pytest.approx(y[0] - y[2], abs=0.5)  # up is less on a screen


def test_thinning_keeps_the_end_and_the_level():
    rng = np.random.default_rng(0)
    x = np.arange(5000.0)
    y = 3 + rng.normal(size=5000)
    y[17] = np.nan
    few_x, few_y = thinned(x, y)
    assert len(few_x) == len(few_y) <= MOST_POINTS
    assert few_x[-1] > 4900 and np.isfinite(few_y).all()
    assert few_y.mean() == pytest.approx(3, abs=0.05) and few_y.std() < 0.2
    assert thinned(x[:10], y[:10])[1].tolist() == y[:10].tolist()


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_colours_differ_and_show_on_white_and_on_black(n: int):
    found = colours(n)
    assert len(set(found)) == n
    for colour in found:
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        luminance = linear @ [0.2126, 0.7152, 0.0722]
        assert 1.05 / (luminance + 0.05) >= 3  # WCAG 1.4.11, on white
        assert (luminance + 0.05) / 0.0589 >= 3  # and on the dark page

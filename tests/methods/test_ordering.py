"""Order by index, from random starts, with both optimizers: what docs/methods.md says of every ordered method."""

import importlib.util
import json
from pathlib import Path

import pytest
from mechanisms import every

ROOT = Path(__file__).resolve().parents[2]
STORED = json.loads((ROOT / "docs" / "results" / "ordering.json").read_text("utf-8"))


def benchmark():
    """benchmarks/ordering.py as a module."""
    spec = importlib.util.spec_from_file_location("ordering_benchmark", ROOT / "benchmarks" / "ordering.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ORDERING = benchmark()
ROWS = [(method, optimizer) for method in ORDERING.METHODS for optimizer in ("adam", "sgd")]
SURE = [row for row in ROWS if STORED["methods"][row[0]][row[1]]["ordered"] == STORED["seeds"]]
UNSURE = [row for row in ROWS if row not in SURE]


def test_every_ordered_method_was_measured_with_both_optimizers():
    assert list(STORED["methods"]) == list(ORDERING.METHODS)
    assert all(
        len(row[o]["least"]) == STORED["seeds"] for row in STORED["methods"].values() for o in ("adam", "sgd")
    )


@pytest.mark.parametrize(("method", "optimizer"), every(SURE, SURE[:1]), ids=lambda v: v)
def test_a_method_that_is_said_to_order_does_so_from_a_random_start(method, optimizer):
    """Most are in order after half of the steps; the others get all of them."""
    few = (
        ORDERING.aligned(method, optimizer, 1, steps=n).min() for n in (ORDERING.STEPS // 2, ORDERING.STEPS)
    )
    assert any(least > 0.97 for least in few)


@pytest.mark.parametrize(("method", "optimizer"), every(UNSURE[::4], []), ids=lambda v: v)
def test_a_method_that_is_said_not_to_order_is_measured_to_fail(method, optimizer):
    """From the first start that failed; a page that called it ordered would be wrong."""
    least = STORED["methods"][method][optimizer]["least"]
    first = next(i for i, value in enumerate(least) if value < ORDERING.ALIGNED)
    assert ORDERING.aligned(method, optimizer, seeds=1, first=first, steps=1500).min() < ORDERING.ALIGNED

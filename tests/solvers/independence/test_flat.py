"""Photographs: pairs that are flat on all rows hold no descent up, and two halves of the images end in one minimum."""

import pytest

import sigmapca_cli as sp
from sigmapca_cli.evaluation.agreement import agreement


@pytest.mark.full
def test_patches_of_photographs_come_to_rest(tmp_path):
    """The third moments of part of the rows show curvatures that all rows do not have: 300 steps went round there."""
    run = sp.train("natural", k=32, solver="independence", outputs=tmp_path)
    assert run.attrs["converged"] and run.evaluation["tau"] == 0.1
    assert run.evaluation["iterations"] < 150


@pytest.mark.full
def test_halves_of_the_photographs_give_the_same_filters(tmp_path):
    """A first stage on 2,000 rows, and steps of half a radian, ended in other minima: .93."""
    even, odd = (
        sp.train("natural", k=32, solver="independence", data__half=half, outputs=tmp_path)
        for half in ("even", "odd")
    )
    assert even.attrs["converged"] and odd.attrs["converged"]
    assert agreement(even.filters, odd.filters).mean > 0.985

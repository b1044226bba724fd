"""A pair that looks like a saddle on the rows of the Hessian, and is flat on all rows, holds no descent up."""

import pytest

import sigmapca_cli as sp


@pytest.mark.full
def test_patches_of_photographs_come_to_rest(tmp_path):
    """The third moments of part of the rows show curvatures that all rows do not have: 300 steps went round there."""
    run = sp.train("natural", k=32, solver="independence", outputs=tmp_path)
    assert run.attrs["converged"] and run.evaluation["tau"] == 0.1
    assert run.evaluation["iterations"] < 150

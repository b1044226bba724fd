"""One representative of each mechanism in every run of the tests, all methods under `make full`."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

METHODS = (
    "nlpca",  # reconstruction with σ of the batch, the NumPy step
    "nlpca_trainable",  # σ is trained
    "nlpca_latent_wtw",  # a loss of the components, V beside W
    "linear_ae",  # any loss, by autograd
    "nested_dropout",  # steps draw
    "gha",  # steps made by hand
    "lica",  # a second rotation
    "easi",  # a serial update of an unmixing matrix
    "rica",  # overcomplete ICA's loss
    "bigradient",  # a constraint in the update
)
"""Trained methods that together take every way through the steps."""


def every(cases: Iterable[Any], ordinary: Sequence[Any]) -> list[Any]:
    """Return the cases for `parametrize`: those in `ordinary` always run, the others under `make full`.

    A case of several arguments is a tuple.
    """
    cases = list(cases)
    missing = [case for case in ordinary if case not in cases]
    assert not missing, f"no such case: {missing}"
    return [case if case in ordinary else _full(case) for case in cases]


def _full(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.full)

"""Data that the tests of commands train on."""

import pytest

SMALL = ("data=planted", "data.n=4000", "data.p=16", "data.k=4", "data.group=2", "k=4")


@pytest.fixture
def small() -> tuple[str, ...]:
    """Overrides of a data set that trains in a blink."""
    return SMALL

"""Names of columns: when they identify a column, and when they are set aside."""

import pytest

from sigmapca_cli.sources.columns import identifying_names


@pytest.mark.parametrize(
    ("names", "identify"),
    [
        (["a", "b"], True),
        ((), True),
        (["0", "0"], False),
        (["a", "b", "a"], False),
        (["a", ""], False),
        (None, False),
    ],
)
def test_names_identify_columns_if_all_are_different_and_none_is_empty(names, identify):
    assert identifying_names(names) == (list(names) if identify else None)

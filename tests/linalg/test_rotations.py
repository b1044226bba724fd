"""Orthogonal matrices: random ones, the nearest one, and a schedule of disjoint pairs."""

import itertools

import numpy as np
import pytest

from sigmapca_cli.linalg.rotations import disjoint_pairs, nearest_orthonormal, random_orthonormal


@pytest.mark.parametrize("k", [1, 2, 3, 6, 7])
def test_every_pair_comes_once_and_the_pairs_of_a_round_are_disjoint(k):
    rounds = disjoint_pairs(k)
    pairs = [pair for i, j in rounds for pair in zip(i, j, strict=True)]
    assert sorted(pairs) == list(itertools.combinations(range(k), 2))
    assert all(len({*i, *j}) == 2 * len(i) for i, j in rounds)


def test_the_nearest_orthonormal_columns_of_such_columns_are_themselves():
    Q = random_orthonormal(7, 3, 1)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(nearest_orthonormal(Q), Q, atol=1e-12)
    assert not np.allclose(Q, random_orthonormal(7, 3, 2))

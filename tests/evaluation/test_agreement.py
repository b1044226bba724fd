"""Agreement is 1 for the same filters in any order, sign and scale, and the rotation between solutions is
found.
"""

import numpy as np
import pytest
from solver_helpers import orthonormal

from sigmapca_cli.evaluation.agreement import agreement, agreement_matrix, rotation_between, rotation_matches
from sigmapca_cli.system.errors import InputError


def test_the_same_filters_agree_whatever_their_order_sign_and_scale():
    A = orthonormal(30, 5)
    order = [3, 0, 4, 1, 2]
    found = agreement(A, A[:, order] * [1, -2, 1e-9, 4, -5])
    assert found.mean == pytest.approx(1)
    np.testing.assert_array_equal(np.array(order)[found.partner], np.arange(5))


def test_a_component_without_partner_is_nan():
    A = orthonormal(30, 5)
    found = agreement(A, A[:, [4, 2]])
    assert found.mean == pytest.approx(1)
    np.testing.assert_array_equal(np.isnan(found.per_component), [True, True, False, True, False])
    np.testing.assert_array_equal(found.partner, [-1, -1, 1, -1, 0])


def test_random_filters_reach_only_the_chance_level():
    values = [agreement(orthonormal(50, 8, s), orthonormal(50, 8, s + 100)).mean for s in range(20)]
    assert np.mean(values) == pytest.approx(
        agreement(orthonormal(50, 8), orthonormal(50, 8, 1)).chance, abs=0.02
    )


def test_matrix_is_symmetric_with_ones_on_its_diagonal():
    solutions = [orthonormal(10, 3, seed) for seed in (0, 0, 1)]
    matrix = agreement_matrix(solutions)
    np.testing.assert_allclose(matrix, matrix.T)
    np.testing.assert_allclose(np.diag(matrix), 1)
    assert matrix[0, 1] == pytest.approx(1) and matrix[0, 2] < 0.9


def test_a_rotation_within_the_subspace_is_recovered():
    A, R = orthonormal(12, 4), orthonormal(4, 4, seed=3)
    found, residual = rotation_between(A, A @ R)
    np.testing.assert_allclose(found, R, atol=1e-12)
    assert residual < 1e-12


def test_what_leaves_the_subspace_is_the_residual():
    Q = orthonormal(12, 6)
    c, s = np.cos(0.3), np.sin(0.3)
    _, residual = rotation_between(Q[:, :3], c * Q[:, :3] + s * Q[:, 3:])
    assert residual == pytest.approx(s)


def test_matches_are_the_large_entries_largest_first():
    R = np.array([[0.9, 0.1], [-0.3, 0.19], [0.2, -0.97]])
    assert rotation_matches(R) == [[(0, 0.9), (1, -0.3)], [(2, -0.97)]]


def test_filters_of_other_data_are_refused():
    with pytest.raises(InputError, match="12 and of 10 features"):
        agreement(orthonormal(12, 2), orthonormal(10, 2))

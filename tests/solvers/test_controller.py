"""Which step comes next, on equations whose every root is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from sigmapca_cli.solvers.newton import steps
from sigmapca_cli.solvers.newton.controller import Controller
from sigmapca_cli.solvers.newton.solve import _run, _turning

ROOT = -0.8


class Bottleneck:
    """One pair, at the angle t: S = ((t − place)² + depth)(t + 0.8), least at place without being zero there."""

    count, matrix_free = 0, False

    def __init__(self, depth, place):
        self.depth, self.place = depth, place

    def angle(self, R):
        return np.arctan2(R[1, 0], R[0, 0])

    def at(self, R):
        t = self.angle(R)
        S = ((t - self.place) ** 2 + self.depth) * (t - ROOT)
        one = np.array([[0.0, 1.0], [1.0, 0.0]])
        return SimpleNamespace(
            R=R, S=np.array([[0, S], [-S, 0]]), H=one, K=one, sigma=np.ones(2), relative=abs(S)
        )

    def system(self, point):
        u = self.angle(point.R) - self.place
        J = np.array([[2 * u * (self.angle(point.R) - ROOT) + u**2 + self.depth]])
        return steps.DenseJacobian(J, np.ones(1))

    def remeasure(self, R, sigma, iteration):
        return False

    def unstable(self, point):
        return None

    def add_rows(self):
        return False


@pytest.mark.parametrize("depth", [2e-4, 3e-4, 5e-4, 7e-4, 1e-3, 1e-2])
def test_a_least_residual_that_is_no_root_is_passed(depth):
    """Newton's step from behind the bottleneck leads back: with it, some of these went round for 100 iterations."""
    for place in np.arange(-6, 5) / 20:
        stage, history = Bottleneck(depth, place), []
        start = steps.rotate(np.eye(2), np.array([0.4]))
        R, converged = _run(stage, start, 1e-6, 40, history, Controller(False))
        assert converged and abs(stage.angle(R) - ROOT) < 1e-4, (place, len(history))


def test_a_least_residual_below_the_bound_of_folds_is_passed_once_all_rows_are_in_the_jacobian():
    """Residual 4e-5 at the bottleneck, above the tolerance."""
    stage, history = Bottleneck(5e-5, 0.0), []
    R, converged = _run(stage, steps.rotate(np.eye(2), np.array([0.4])), 1e-6, 40, history, Controller(False))
    assert converged and abs(stage.angle(R) - ROOT) < 1e-4


def test_a_pair_without_a_stationary_angle_is_named():
    class Turning(Bottleneck):
        def at(self, R):
            point = super().at(R)
            point.S, point.relative = np.array([[0, 2e-2], [-2e-2, 0]]), 2e-2
            return point

        def system(self, point):
            return steps.DenseJacobian(np.array([[1e-2]]), np.ones(1))

    control = Controller(False)
    _, converged = _run(Turning(0.0, 0.0), np.eye(2), 1e-6, 60, [], control)
    note = _turning(control.turned, np.array([1, 0]))
    assert not converged and "components 1 and 2 rotated by" in note
    assert "components 1 and 3 rotated by 4.0 rad" in _turning(np.array([0, 0, 4.0]), np.array([2, 0, 1]))
    assert not _turning(np.array([3.0]), np.array([0, 1])) and not _turning(0.0, np.array([0, 1]))

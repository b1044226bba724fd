"""Minimise C_τ over rotations: steps of all pairs at once, Newton's by conjugate gradients, then with one kept Hessian.

Far from the answer every pair takes the step of independent components that do not act on each other; it needs no more
sums over rows than the gradient, and leads away from a pair of negative curvature.

Then the variables are D^½θ, D the absolute curvature of every pair, in which the Hessian of independent components is
near the identity, so that a step takes one or two products. Where the Hessian has a direction of negative curvature,
the step goes along it (Steihaug 1983). Once steps are small, one Hessian is kept and corrected by the change of the
gradient (L-BFGS; Nocedal & Wright 2006, 7.1 and 7.2), as Picard corrects its pairwise one (Ablin, Cardoso & Gramfort
2018).

Gaussian components of equal variance have their lowest C at a rotation that chance decides, and many of them take
hundreds of steps to it. So after some work, pairs that neither variances nor shapes tell apart turn no further.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.independence.contrast import Contrast, Point
from sigmapca_cli.solvers.independence.curvature import Curvature
from sigmapca_cli.solvers.independence.null import told_apart
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.newton.jacobian import pack
from sigmapca_cli.solvers.newton.steps import limited, rotate
from sigmapca_cli.system.row_shards import agreed

Array = np.ndarray

LARGEST_ANGLE = 0.5
"""Largest angle of a step unless given, radians."""
ESCAPE_ANGLE = 0.3
"""Angle of a step along a direction of negative curvature, radians."""
PAIRWISE_TO = 0.1
"""Angle still to go at which steps of all pairs at once end, radians."""
LEAST_SHARE = 0.2
"""They also end when less than this part of a step lowers C_τ enough."""
KEPT_BELOW = 0.05
"""Angle still to go below which one Hessian is kept."""
PRODUCTS = 40
"""Largest number of products with the Hessian in one step."""
ACCURACY = 0.05
"""A step solves Newton's equation to this part of the gradient, once it is small."""
MEMORY = 10
"""Number of changes of the gradient that correct the kept Hessian."""
SADDLE = -0.02
"""A stationary point is a saddle if an eigenvalue of D^−½HD^−½ is below this."""
FLAT = 0.002
"""A direction is flat if the curvature along it is below this, in the same variables."""
WHOLE = 120
"""Largest number of pairs for which all eigenvalues are computed (k = 16)."""
WORK = 2e9
"""Rows times pairs, about, of the steps on one set of rows in which all pairs turn, also those that nothing holds."""
ESCAPES = 5
"""Number of saddles that are left before the descent gives up."""
FELT = 0.01
"""A step along negative curvature that raises the log-likelihood by less leads nowhere: a pair is flat, no saddle."""
ROUNDING = 1e-13
"""C_τ counts as not larger if it grows by less than this."""

Step = tuple[int, int, float, float]
"""Iteration, rows, C_τ and the largest angle still to go."""


@dataclass(frozen=True)
class End:
    """How a descent ended: its last point, the largest angle still to go, and whether that is a minimum."""

    point: Point
    angle: float
    converged: bool


@dataclass
class Kept:
    """A Hessian that is kept, with the last steps and the changes of the gradient that they made.

    turning (pairs,): 1 for the pairs that turn, 0 for the others.
    """

    curvature: Curvature
    turning: Array
    moves: list[tuple[Array, Array, float]]

    def remember(self, theta: Array, change: Array) -> None:
        """Add a step and the change of the gradient, if it shows positive curvature."""
        if (slope := float(theta @ change)) > 0:
            self.moves = [*self.moves, (theta, change, 1 / slope)][-MEMORY:]

    def step(self, gradient: Array, accuracy: float, leaving: bool) -> tuple[Array, bool]:
        """Return the quasi-Newton step, and whether it follows negative curvature; `leaving`: whether it may."""
        rest, shares = gradient.copy(), []
        for theta, change, inverse in reversed(self.moves):
            shares.append(inverse * (theta @ rest))
            rest -= shares[-1] * change
        step, negative = newton_step(self.curvature, rest, self.turning, accuracy, leaving)
        for (theta, change, inverse), share in zip(self.moves, reversed(shares), strict=True):
            step -= (share + inverse * (change @ step)) * theta
        return step, negative


def newton_step(
    curvature: Curvature, gradient: Array, turning: Array, accuracy: float, leaving: bool
) -> tuple[Array, bool]:
    """Return θ with Hθ ≈ −gradient by conjugate gradients, and whether it goes along negative curvature.

    turning (pairs,): 1 for the pairs that turn; the gradient of the others is 0. leaving: whether it may go along it;
    else it ends before, at the least with the step of independent pairs.
    """
    root = np.sqrt(curvature.scale)
    x, rest = np.zeros(len(root)), -gradient / root
    direction, size = rest.copy(), float(rest @ rest)
    goal = accuracy**2 * size
    for _ in range(PRODUCTS):
        if size <= goal or size == 0:
            break
        product = turning * curvature(direction / root) / root
        bend = float(direction @ product)
        if bend <= FLAT * float(direction @ direction):
            if x.any() and (bend > -FLAT * float(direction @ direction) or not leaving):
                break  # flat: nothing is lost without it
            if not leaving:
                return direction / root, False
            along = direction / root
            along *= ESCAPE_ANGLE / np.abs(along).max()
            return x / root + along, True
        length = size / bend
        x += length * direction
        rest -= length * product
        size, before = float(rest @ rest), size
        direction = rest + (size / before) * direction
    return x / root, False


def least_curvature(curvature: Curvature, turning: Array) -> tuple[float, Array]:
    """Return the smallest eigenvalue of D^−½HD^−½ over the pairs that turn, and its direction θ, largest entry 1."""
    root = np.sqrt(curvature.scale)
    pairs = len(root)
    if pairs <= WHOLE:
        values, vectors = np.linalg.eigh(curvature.whole() / np.outer(root, root))
        value, vector = float(values[0]), vectors[:, 0]
    else:
        from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # half a second to import

        rest = 1 - turning
        scaled = LinearOperator(
            (pairs, pairs),
            lambda x: turning * curvature(turning * x / root) / root + rest * x,
            dtype=np.float64,
        )
        begin = np.random.default_rng(0).standard_normal(pairs) * turning
        try:
            values, vectors = eigsh(scaled, 1, which="SA", v0=begin, ncv=10, maxiter=20, tol=0.05)
            value, vector = float(values[0]), vectors[:, 0] * turning
        except ArpackNoConvergence:
            value, vector = 0.0, begin
    theta = vector / root
    return value, theta / np.abs(theta).max()


def turning_pairs(contrast: Contrast, point: Point, work: float) -> Array:
    """Return 1 for each pair that turns, 0 for the others, (pairs,); work: rows times k² of the steps so far."""
    free = np.ones(len(point.R) * (len(point.R) - 1) // 2)
    if contrast.S is not None or work < WORK or len(free) <= WHOLE:
        return free
    told = pack(told_apart(point, contrast.rows.effective)).astype(np.float64)
    return told if len(free) - told.sum() > WHOLE else free


def descend(
    contrast: Contrast,
    support: Rows,
    R: Array,
    tol: float,
    limit: int,
    history: list[Step],
    *,
    largest: float = LARGEST_ANGLE,
    check: bool,
) -> End:
    """Minimise C_τ from R until the largest angle still to go is below tol radians.

    contrast: C_τ on the rows. support: rows of the Hessian's third moments. largest: largest angle of a step, radians.
    check: leave a saddle at the end.
    """
    if len(R) == 1:  # one axis has nothing to turn against
        point = contrast.at(R)
        history.append((len(history), contrast.rows.n, point.value, 0.0))
        return End(point, 0.0, True)
    point = pairwise(contrast, contrast.at(R), limit, history, largest)
    before, each = len(history), float(contrast.rows.n) * len(R) ** 2

    def fresh_at(point: Point) -> Kept:
        turning = turning_pairs(contrast, point, (len(history) - before + 1) * each)
        return Kept(Curvature(point, support), turning, [])

    kept = fresh_at(point)
    escapes, fresh, leaving = ESCAPES if check else 0, True, True
    while True:
        if not kept.turning.any():
            history.append((len(history), contrast.rows.n, point.value, 0.0))
            return End(point, 0.0, True)
        gradient = point.gradient * kept.turning
        angle = float(np.abs(gradient / kept.curvature.scale).max())
        theta, negative = kept.step(gradient, float(np.clip(np.sqrt(angle), ACCURACY, 0.3)), leaving)
        going = float(np.abs(theta).max())
        history.append((len(history), contrast.rows.n, point.value, going))
        settled = angle <= tol and (negative or going <= tol)
        if settled and not check:
            return End(point, going, True)
        if settled:
            value, direction = least_curvature(Curvature(point, support), kept.turning)
            if value > SADDLE or escapes == 0:
                return End(point, going, value > SADDLE)
            escapes, theta, negative, leaving = escapes - 1, ESCAPE_ANGLE * direction, True, True
        if len(history) >= limit:
            return End(point, going, False)
        there, share = search(contrast, point, limited(theta, largest))
        if negative and angle <= tol and gained(contrast, point, there) < FELT:
            return End(point, angle, True)
        if negative and share < LEAST_SHARE and angle > tol:
            # Of all rows the curvature is not negative there: from here the rest of the step goes first.
            leaving = False
        elif there is None and fresh:
            return End(point, going, going <= 100 * tol)
        if there is None or negative or going > KEPT_BELOW:
            point = point if there is None else there
            kept, fresh = fresh_at(point), True
            continue
        kept.remember(share * limited(theta, largest), there.gradient * kept.turning - gradient)
        point, fresh = there, False


def gained(contrast: Contrast, point: Point, there: Point | None) -> float:
    """Return by how much a step raises the log-likelihood of all rows; 0 without a step.

    Curvature comes from part of the rows: of a pair that hardly anything holds it may be negative where that of all
    rows is not.
    """
    return 0.0 if there is None else contrast.rows.effective * (point.value - there.value)


def pairwise(contrast: Contrast, point: Point, limit: int, history: list[Step], largest: float) -> Point:
    """Return the point after steps −gradient/|curvature| of all pairs at once, while nearly whole steps lower C_τ."""
    share = 1.0
    while share > LEAST_SHARE and len(history) < limit:
        theta = np.clip(-point.gradient / point.scale, -largest, largest)
        going = float(np.abs(theta).max())
        if going <= PAIRWISE_TO:
            break
        history.append((len(history), contrast.rows.n, point.value, going))
        there, share = search(contrast, point, theta)
        point = there or point
    return point


def search(contrast: Contrast, point: Point, theta: Array) -> tuple[Point | None, float]:
    """Return the point after the longest part of θ that lowers C_τ enough, and that part; None if none does."""
    slope, share = float(point.gradient @ theta), 1.0
    slack = ROUNDING * (1 + abs(point.value))
    for _ in range(12):
        there = contrast.at(agreed(rotate(point.R, share * theta)))
        if there.value <= point.value + 1e-4 * share * min(slope, 0.0) + slack:
            return there, share
        # the parabola through the value and the slope here and the value there
        fitted = -slope * share**2 / (2 * (there.value - point.value - slope * share))
        share = float(np.clip(fitted, 0.1 * share, 0.5 * share))
    return None, 0.0

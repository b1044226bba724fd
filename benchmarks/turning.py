"""Has nonlinear PCA a stable solution where the Newton solver sees a pair turn without end?

    SIGMAPCA_DATA=data python benchmarks/turning.py [a]

The even half of 500 CIFAR-10 images, k = 32, 25,000 rows, from PCA. The flow θ′ = −S/D is followed in small steps,
800 with δ always that of the rotation, where it climbs no function, then 3,200 more in three ways: δ held, so that it
climbs J(·; δ); δ following slowly; δ following at once. Columns: the step; max |S| with the δ in use and with its own,
relative; how far δ is from its own; how far the pair that went farthest has turned, radians. The end and the range of
S over the second half go to docs/results/turning.json.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from stored import keep

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.solvers.newton import jacobian as jac
from sigmapca_cli.solvers.newton import merit, steps
from sigmapca_cli.solvers.newton.jacobian import measure
from sigmapca_cli.solvers.newton.scores import lookup
from sigmapca_cli.solvers.newton.stage import Rows
from sigmapca_cli.solvers.rows.parallel import threads
from sigmapca_cli.solvers.rows.projection import project

KEY, K, ROWS, OWN, STEPS, EVERY = ("scaled_tanh", "true"), 32, 25_000, 800, 4000, 400
PACE, WIDEST = 0.5, 0.1


def flow(rows: Rows, a: np.ndarray, follow: float) -> dict[str, object]:
    """Print the flow and return its end; after step OWN δ goes a share `follow` of the way to its own each step."""
    seen: list[list[float]] = []
    R, turned, delta = np.eye(K), np.zeros(K * (K - 1) // 2), np.zeros(K)
    for step in range(STEPS):
        C = R.T @ rows.C @ R
        sigma = np.sqrt(np.diag(C))
        moments = measure(rows.Y, R / sigma, lookup(*KEY), a)
        own = 4 * merit.mean_primitive(rows.Y, R / sigma, merit.primitive_of(*KEY), a) - moments.m
        delta = own if step < OWN else delta + follow * (own - delta)
        S = jac.residual(moments, sigma)
        change = C * (sigma**2 * (own - delta))[:, None]
        held = S - (change - change.T) / np.outer(sigma, sigma) ** 2
        D = steps.preconditioner(*jac.curvature(moments, sigma))
        theta = np.clip(-PACE * jac.pack(held) / D, -WIDEST, WIDEST)
        turned += theta
        if step % EVERY == EVERY - 1:
            scale, most = np.mean(np.abs(moments.m) + np.abs(moments.c)), int(np.abs(turned).argmax())
            i, j = (int(index[most]) + 1 for index in np.triu_indices(K, 1))
            gap = np.abs(own - delta).max() / np.abs(own).max()
            sizes = [float(np.abs(part).max() / scale) for part in (held, S)]
            seen.append(sizes)
            print(
                f"  {step + 1}: {sizes[0]:.1e} {sizes[1]:.1e} {gap:.1e} {i}, {j}: {turned[most]:.2f}",
                flush=True,
            )
        R = steps.rotate(R, theta)
    later = [own for _, own in seen[len(seen) // 2 :]]
    return {
        "held": f"{sizes[0]:.0e}",
        "own": f"{sizes[1]:.3f}",
        "least": f"{min(later):.3f}",
        "greatest": f"{max(later):.3f}",
        "apart": f"{gap:.0%}".replace("%", " %"),
        "turned": f"{abs(turned[most]):.1f}",
        "sigmas": ", ".join(f"{sigma[index]:.1f}" for index in (i - 1, j - 1)),
    }


def main() -> None:
    """The three ways."""
    a = np.full(K, float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
    path = os.environ.get("SIGMAPCA_DATA", "data")
    _, Y, _, _ = project(data.build(DataConfig(name="cifar10", path=path, images=500, half="even")), K)
    rows = Rows.spaced(Y, ROWS, 4096, K)
    found: dict[str, object] = {}
    with threads(None):
        for follow in (0.0, 0.003, 1.0):
            print(f"delta follows at {follow:g} a step")
            found[f"{follow:g}"] = flow(rows, a, follow)
    keep("turning", **{f"a = {a[0]:g}": found})


if __name__ == "__main__":
    main()

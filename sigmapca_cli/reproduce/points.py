"""Points in the plane: which a separates light tails and which heavy ones."""

from __future__ import annotations

from dataclasses import replace

from sigmapca_cli.reproduce import draw
from sigmapca_cli.reproduce.experiment import ABOUT_A, Claim, Experiment
from sigmapca_cli.reproduce.plan import Panel
from sigmapca_cli.reproduce.signals import OURS, SEEDS, SEPARATED


def nonlinear(a: str) -> Panel:
    """Nonlinear PCA with one a."""
    return Panel(
        f"a{a}", "nonlinear PCA, h = tanh(z)" if a == "1" else f"nonlinear PCA, a = {a}", (f"a={a}",)
    )


def separates(a: str, kind: str) -> Claim:
    """This a finds the axes."""
    return replace(finds(f"a{a}", f"a = {a} recovers the {kind} axes"), not_for=ABOUT_A)


def fails(key: str, text: str) -> Claim:
    """These axes are not found."""
    return replace(finds(key, text), asked=f"< {SEPARATED}", not_for=ABOUT_A)


def fastica(kind: str) -> Claim:
    """FastICA finds the axes."""
    return finds("fastica", f"FastICA recovers the {kind} axes")


def finds(key: str, text: str) -> Claim:
    """The axes are found."""
    measure = "matched |cos| with the true axes"
    return Claim(text, measure, f"≥ {SEPARATED}", lambda r: float(r.measure(key, "mcc")))


def panels(first: str, *others: str) -> tuple[Panel, ...]:
    """Linear PCA, the a that suits, FastICA, then the other values."""
    return (
        Panel("linear", "linear PCA", ("model=pca_svd",)),
        nonlinear(first),
        Panel("fastica", "FastICA", ("model=fastica",)),
        *map(nonlinear, others),
    )


UNIFORM = Experiment(
    "points-uniform",
    "Figure: uniform points (sub-Gaussian)",
    "1,000 points, uniform with equal variances, rotated by 45°; the components that each method recovers.",
    panels("1", "0.5", "2", "3", "4"),
    (
        fails("linear", "Linear PCA fails to recover the uniform axes"),
        separates("1", "uniform"),
        separates("0.5", "uniform"),
        fastica("uniform"),
        fails("a2", "a = 2 does not recover the uniform axes"),
        fails("a3", "a = 3 does not recover the uniform axes"),
        Claim.of_loss(0.165, "a1", "a = 1"),
    ),
    draw.point_panels,
    images=False,
    ours=OURS,
    seeds=SEEDS,
)

LAPLACE = Experiment(
    "points-laplace",
    "Figure: Laplace points (super-Gaussian)",
    "1,000 points, Laplace with equal variances, rotated by 45°; the components that each method recovers.",
    panels("3", "0.5", "1", "2", "4"),
    (
        fails("linear", "Linear PCA fails to recover the Laplace axes"),
        separates("3", "Laplace"),
        separates("4", "Laplace"),
        fastica("Laplace"),
        fails("a1", "a = 1 does not recover the Laplace axes"),
        Claim(
            "a = 2 recovers the Laplace axes less well than a = 3",
            "matched |cos| with the true axes, a = 2 less a = 3",
            "< 0.0",
            lambda r: float(r.measure("a2", "mcc") - r.measure("a3", "mcc")),
            not_for=ABOUT_A,
        ),
    ),
    draw.point_panels,
    images=False,
    ours=OURS,
    seeds=SEEDS,
)

EXPERIMENTS = (UNIFORM, LAPLACE)

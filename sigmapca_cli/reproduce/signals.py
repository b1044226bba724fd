"""Small data: which mixtures of time signals each method can take apart, and which a separates points in the plane."""

from __future__ import annotations

from dataclasses import replace

from sigmapca_cli.reproduce import draw
from sigmapca_cli.reproduce.experiment import ABOUT_A, Claim, Experiment
from sigmapca_cli.reproduce.plan import Panel

RECOVERED, MIXED, SEPARATED = 0.98, 0.95, 0.99
# A run takes a fraction of a second.
SEEDS = 5
# Small data: what the recipe for images is for larger ones, from the experiment's random start: so few steps do not
# leave the saddle at the eigenvectors.
OURS = ("optimizer.tangent=true", "optimizer.schedule=cosine")

LINEAR = Panel("linear", "linear PCA", ("model=pca_svd",))
NONLINEAR = Panel("nonlinear", "nonlinear PCA, a = 0.8")
LICA = Panel("lica", "two-layer nonlinear PCA", ("model=lica",))
FASTICA = Panel("fastica", "FastICA", ("model=fastica",))
NAMES = {
    "linear": "Linear PCA",
    "nonlinear": "Nonlinear PCA",
    "lica": "The two-layer model",
    "fastica": "FastICA",
}


def recovers(key: str) -> Claim:
    """All three sources are recovered."""
    text = f"{NAMES[key]} recovers all three signals"
    measure = "smallest matched |corr| with a source"
    return Claim(text, measure, f"≥ {RECOVERED}", lambda r: float(r.source_correlation(key).min()))


def mixes(key: str, text: str) -> Claim:
    """Some sources stay mixed."""
    measure = "smallest matched |corr| with a source"
    return Claim(text, measure, f"< {MIXED}", lambda r: float(r.source_correlation(key).min()))


def variances(key: str) -> Claim:
    """The variances of the sources are recovered."""
    text = f"{NAMES[key]} recovers the variances"
    measure = "largest relative difference of a component's variance from its source's"
    return Claim(text, measure, "≤ 0.05", lambda r: r.variance_error(key))


def renormalised() -> Claim:
    """The paper's way from linear ICA to nonlinear PCA: E_*Σ⁻¹ with columns of unit norm, ordered by their variance."""
    return Claim(
        "FastICA's unmixing, renormalised to unit norm, is nonlinear PCA's W",
        "matched |cos| between the two",
        f"≥ {SEPARATED}",
        lambda r: r.agreement("fastica", "nonlinear"),
    )


def experiment(
    name: str, title: str, caption: str, panels: tuple[Panel, ...], claims: tuple[Claim, ...]
) -> Experiment:
    """An experiment on signals."""
    return Experiment(
        name, title, caption, panels, claims, draw.signal_panels, images=False, ours=OURS, seeds=SEEDS
    )


ORTHOGONAL = experiment(
    "signals-orthogonal",
    "Figure: signals, orthogonal mixing",
    "Sine, square and sawtooth, the last two of one variance, mixed by a rotation.",
    (LINEAR, NONLINEAR, FASTICA),
    (
        Claim(
            "Linear PCA separates the sine, whose variance is distinct",
            "|corr| with the sine",
            f"≥ {RECOVERED}",
            lambda r: float(r.source_correlation("linear")[0]),
        ),
        Claim(
            "Linear PCA mixes square and sawtooth, which have the same variance",
            "larger |corr| of the two",
            f"< {MIXED}",
            lambda r: float(r.source_correlation("linear")[1:].max()),
        ),
        recovers("nonlinear"),
        variances("nonlinear"),
        renormalised(),
        Claim.of_loss(3.30, "nonlinear"),
    ),
)

NON_ORTHOGONAL = experiment(
    "signals-non-orthogonal",
    "Figure: signals, non-orthogonal mixing",
    "The three signals, of distinct variances, mixed by a matrix that is no rotation.",
    (LINEAR, NONLINEAR, LICA, FASTICA),
    (
        mixes("linear", "Linear PCA does not recover the signals"),
        mixes("nonlinear", "Nonlinear PCA does not recover the signals"),
        recovers("lica"),
        recovers("fastica"),
    ),
)

SAME_VARIANCE = experiment(
    "signals-same-variance",
    "Figure: signals, all of the same variance",
    "The three signals scaled to one variance and mixed by a rotation.",
    (LINEAR, NONLINEAR, FASTICA),
    (
        mixes("linear", "Linear PCA is unable to separate signals of the same variance"),
        recovers("nonlinear"),
        recovers("fastica"),
    ),
)

DISTINCT_VARIANCE = experiment(
    "signals-distinct-variance",
    "Figure: signals, all of distinct variances",
    "The three signals with their own variances, mixed by a rotation.",
    (LINEAR, NONLINEAR, FASTICA),
    (
        recovers("linear"),
        recovers("nonlinear"),
        recovers("fastica"),
        variances("linear"),
        variances("nonlinear"),
        renormalised(),
        Claim.of_loss(4.03, "nonlinear"),
    ),
)


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

EXPERIMENTS = (ORTHOGONAL, NON_ORTHOGONAL, SAME_VARIANCE, DISTINCT_VARIANCE, UNIFORM, LAPLACE)

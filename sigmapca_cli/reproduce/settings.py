"""Figures that turn one setting: σ trained, the scale of the input, the scale of tanh."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.figures.histograms import BINS, RANGE
from sigmapca_cli.figures.save import BLUE, RED, new_figure, tidy
from sigmapca_cli.reproduce import draw
from sigmapca_cli.reproduce.experiment import ABOUT_A, CONSTRUCTED, Claim, Experiment
from sigmapca_cli.reproduce.plan import Panel, halves
from sigmapca_cli.reproduce.results import Missing, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sigma_growth(results: Results, late: str, early: str) -> float:
    """Mean trained σ of one run over that of another."""
    return results.ratio(late, early, "trained_sigma")


# The experiment's own file is the run with the penalty.
FREE_SIGMA = "sigma.l2=0"
FROM_DATA = ("model=nlpca", FREE_SIGMA)

TRAINABLE_SIGMA = Experiment(
    "trainable-sigma",
    "Figure: trainable σ",
    "With σ trained by the loss itself, with and without a penalty on its square.",
    (
        Panel("epoch3", "3 epochs, no penalty", ("epochs=3", FREE_SIGMA)),
        Panel("epoch10", "10 epochs, no penalty", (FREE_SIGMA,)),
        Panel("penalty", "10 epochs, L2 penalty 1e-3 on σ", ()),
        Panel("data3", "3 epochs, σ estimated from the data", (*FROM_DATA, "epochs=3")),
        Panel("data10", "10 epochs, σ estimated from the data", FROM_DATA),
    ),
    (
        Claim(
            "Without a penalty σ keeps growing",
            "mean trained σ after 10 epochs over that after 3",
            "≥ 1.1",
            lambda r: sigma_growth(r, "epoch10", "epoch3"),
        ),
        Claim(
            "Without a penalty σ grows beyond the data's standard deviations",
            "largest trained σ over the data's std of the same component",
            "≥ 1.5",
            lambda r: float(
                np.max(r.measure("epoch10", "trained_sigma")) / np.max(np.asarray(r.run("epoch10").sigma))
            ),
            ours=True,
        ),
        Claim(
            "With the penalty σ stays smaller",
            "mean trained σ with the penalty over that without",
            "≤ 0.9",
            lambda r: sigma_growth(r, "penalty", "epoch10"),
            ours=True,
        ),
        Claim(
            "Without a penalty filters degenerate between epochs 3 and 10",
            "mean negentropy after 10 epochs over that after 3",
            "< 1.0",
            lambda r: r.ratio("epoch10", "epoch3", "negentropy"),
        ),
        Claim(
            "With the penalty filters do not degenerate",
            "mean negentropy after 10 epochs with the penalty over that after 3 without",
            "≥ 0.95",
            lambda r: r.ratio("penalty", "epoch3", "negentropy"),
        ),
        Claim(
            "With σ estimated from the data filters do not degenerate",
            "mean negentropy after 10 epochs over that after 3",
            "≥ 0.95",
            lambda r: r.ratio("data10", "data3", "negentropy"),
        ),
    ),
    draw.grid_of(3, 3.2),
)

SCALES = ("0.01", "100", "1000")


def scale_claim(text: str, prefix: str, asked: str) -> Claim:
    """Filters of three scales are the same, or are not."""
    pairs = list(combinations([f"{prefix}{s}" for s in SCALES], 2))
    measure = "smallest matched |cos| between the filters of two scales"
    return Claim(
        text, measure, asked, lambda r: min(r.agreement(a, b) for a, b in pairs), not_for=CONSTRUCTED
    )


INPUT_SCALE = Experiment(
    "input-scale",
    "Figure: scaling of the input",
    "Nonlinear PCA with σ estimated from the data, on inputs of three scales.",
    (
        *(Panel(f"nlpca{s}", f"{s} x", (f"data.scale_input={s}",)) for s in SCALES),
        *(
            Panel(f"rica{s}", f"RICA, β = 1, {s} x", ("model=rica", "model.beta=1", f"data.scale_input={s}"))
            for s in SCALES
        ),
    ),
    (
        scale_claim(
            "Nonlinear PCA finds the same filters whatever the scale of the input", "nlpca", "≥ 0.99"
        ),
        Claim(
            "Nonlinear PCA finds the same filters at 100 and 1000 times the input",
            "matched |cos| between the two",
            "≥ 0.99",
            lambda r: r.agreement("nlpca100", "nlpca1000"),
            ours=True,
            not_for=CONSTRUCTED,
        ),
        scale_claim("RICA with β = 1 does not", "rica", "< 0.99"),
    ),
    draw.grid_of(3, 3.2),
)

TANH_SCALES = (1, 2, 3, 4, 6, 8, 10, 14, 18, 22, 26, 30)
# Those whose agreement between halves a claim is about.
HALVED = (1, 3, 4, 6, 8, 10, 14, 30)
SHOWN_COMPONENTS = 15


def draw_tanh_scale(results: Results) -> Figure:
    """Twelve grids of filters; below, agreement and negentropy against a, and the first 15 distributions."""
    figure = new_figure(10.4, 11.2)
    parts: Any = figure.subfigures(3, 1, height_ratios=[4.9, 2.6, 3.7])
    upper, middle, lower = parts
    for i, a in enumerate(TANH_SCALES):
        axes = upper.add_subplot(3, 4, i + 1)
        draw.filter_panel(axes, results, f"a{a}")
        draw.caption(axes, i, f"a = {a}", 30)
    try:
        curves(middle, results)
        distributions(lower, results, "a4")
    except Missing as missing:
        draw.empty(middle.add_subplot(), str(missing))
    return figure


def curves(figure, results: Results) -> None:  # type: ignore[no-untyped-def]
    """Agreement between halves of the images, and mean negentropy, against a; linear PCA for comparison."""
    pca = [results.agreement("pca")] * len(TANH_SCALES)
    lines = {"nonlinear PCA": [results.agreement(f"a{a}") for a in TANH_SCALES], "linear PCA": pca}
    name = "matched |cos| between halves"
    draw.curve_panel(figure.add_subplot(1, 2, 1), TANH_SCALES, lines, "a", name)
    value = [results.mean(f"a{a}", "negentropy") for a in TANH_SCALES]
    lines = {
        "nonlinear PCA": value,
        "linear PCA": [results.mean("pca", "negentropy")] * len(TANH_SCALES),
    }
    draw.curve_panel(figure.add_subplot(1, 2, 2), TANH_SCALES, lines, "a", "mean negentropy")


def distributions(figure, results: Results, key: str) -> None:  # type: ignore[no-untyped-def]
    """Densities of the first components beside a Gaussian."""
    W = results.run(key).filters
    assert W is not None  # a finished run
    Y = results.rows(key, 50_000) @ W[:, :SHOWN_COMPONENTS]
    z = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    edges = np.linspace(-RANGE, RANGE, BINS + 1)
    grid = np.linspace(-RANGE, RANGE, 201)
    normal = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    kurtosis = results.measure(key, "kurtosis")
    for i in range(z.shape[1]):
        axes = figure.add_subplot(3, 5, i + 1)
        density = np.histogram(z[:, i], edges)[0] / (len(z) * (edges[1] - edges[0]))
        axes.stairs(density, edges, fill=True, color=BLUE, alpha=0.45, linewidth=0)
        axes.plot(grid, normal, color=RED, linewidth=0.9)
        axes.set_title(f"{i + 1}   kurtosis {kurtosis[i]:+.2g}", fontsize=7, pad=2)
        axes.set(xlim=(-RANGE, RANGE), yticks=[])
        tidy(axes)
        axes.tick_params(labelsize=6, labelbottom=i >= 10)


TANH_SCALE = Experiment(
    "tanh-scale",
    "Figures: the scale of tanh, and the distributions of the components",
    "Filters for twelve values of a in a·tanh(z/a); agreement between disjoint halves of the images and "
    "negentropy against a; the distributions of the first 15 components at a = 4 beside a Gaussian (red).",
    (
        *(Panel(f"a{a}", f"a = {a}", (f"a={a}",), once=a > 14) for a in TANH_SCALES),
        Panel("pca", "linear PCA", ("model=pca_svd",), shown=False),
        *(panel for a in TANH_SCALES for panel in halves(f"a{a}", f"a={a}", once=a not in HALVED)),
        *halves("pca", "model=pca_svd"),
    ),
    (
        Claim(
            "Separation starts at a = 2",
            "mean negentropy at a = 2 over that at a = 1",
            "≥ 1.02",
            lambda r: r.ratio("a2", "a1", "negentropy"),
            not_for=ABOUT_A,
        ),
        Claim(
            "Filters separate from a = 3 on: they are reproduced better than those of linear PCA",
            "smallest matched |cos| between halves for a = 3 … 14, less linear PCA's",
            "> 0.0",
            lambda r: min(r.agreement(f"a{a}") for a in (3, 4, 6, 8, 10, 14)) - r.agreement("pca"),
            not_for=ABOUT_A,
        ),
        Claim(
            "By slowly raising a the filters pass smoothly from one set to the next",
            "smallest matched |cos| between neighbouring a of 1, 2, 3, 4, 6, 8, 10 and 14",
            "≥ 0.8",
            lambda r: min(r.agreement(f"a{a}", f"a{b}") for a, b in pairwise((1, 2, 3, 4, 6, 8, 10, 14))),
            not_for=ABOUT_A,
        ),
        Claim(
            "By slowly raising a the filters leave those of linear PCA",
            "matched |cos| with linear PCA's filters, a = 1 less a = 4",
            "> 0.0",
            lambda r: r.agreement("a1", "pca") - r.agreement("a4", "pca"),
            not_for=ABOUT_A,
        ),
        Claim(
            "a = 3 … 14 separates better than a = 1",
            "smallest matched |cos| between halves for a = 3 … 14, less that of a = 1",
            "> 0.0",
            lambda r: min(r.agreement(f"a{a}") for a in (3, 4, 6, 8, 10, 14)) - r.agreement("a1"),
            not_for=ABOUT_A,
            ours=True,
        ),
        Claim(
            "Filters degenerate beyond a = 14",
            "matched |cos| between halves at a = 30, less the best of a = 3 … 14",
            "< -0.01",
            lambda r: r.agreement("a30") - max(r.agreement(f"a{a}") for a in (3, 4, 6, 8, 10, 14)),
            not_for=ABOUT_A,
        ),
        Claim(
            "The components are mostly super-Gaussian",
            "share of the first 15 components with positive excess kurtosis (a = 4)",
            "≥ 0.8",
            lambda r: float(np.mean(r.measure("a4", "kurtosis")[:SHOWN_COMPONENTS] > 0)),
        ),
    ),
    draw_tanh_scale,
)

EXPERIMENTS = (TRAINABLE_SIGMA, INPUT_SCALE, TANH_SCALE)

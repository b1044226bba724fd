"""The four small plots of the paper's theory, and what it says about them. They need no data and no run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.figures.save import BLACK, BLUE, GREEN, GREY, RED, new_figure, tidy
from sigmapca_cli.reproduce.experiment import Claim, Experiment
from sigmapca_cli.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
BETAS = (0.1, 0.5, 1.0, 1.5)
STEPS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
COLOURS = (BLUE, GREEN, BLACK, RED, GREY, BLUE)


def sigma_score(z: Array) -> Array:
    """z·f(z) with f(z) = z·h²(z) + h(z), h = tanh: the gradient of a trained σ is about σ(z² − zf(z))  (paper, Σ)."""
    h = np.tanh(z)
    return z * (z * h**2 + h)


def sparsity(y: Array, beta: float, squash: Callable[[Array], Array] = np.sign) -> Array:
    """β₀·sign(y) − y, or β₀·tanh(y) − y: the part of RICA's gradient that moves y  (paper, L1 sparsity)."""
    return beta * squash(y) - y


def eigenvalue_map(lam: Array, beta: float) -> Array:
    """f_β(λ) = (1 + β)²λ − 2(1 + β)βλ² + β²λ³ = λ(1 + β − βλ)²: an eigenvalue of WᵀW after W ← W − βW(WᵀW − I)."""
    return lam * (1 + beta - beta * lam) ** 2


def gaussian_mean(of: Callable[[Array], Array]) -> float:
    """E of(ν), ν standard normal, by Gauss–Hermite quadrature with 80 nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return float(weights @ of(nodes) / weights.sum())


def scale_kept(a: float) -> float:
    """√var(a·tanh(ν/a)), ν standard normal; the mean is 0."""
    return float(np.sqrt(gaussian_mean(lambda z: (a * np.tanh(z / a)) ** 2)))


def crossings(beta: float) -> int:
    """How often β₀·tanh(y) − y is zero."""
    y = np.linspace(-5, 5, 20_002)  # does not hit 0
    signs = np.sign(sparsity(y, beta, np.tanh))
    return int(np.count_nonzero(np.diff(signs)))


def inflections(beta: float) -> int:
    """How often the curvature of β₀·tanh(y) − y changes its sign."""
    y = np.linspace(-5, 5, 20_002)
    second = -2 * beta * np.tanh(y) / np.cosh(y) ** 2
    return int(np.count_nonzero(np.diff(np.sign(second))))


def leaves_interval(beta: float) -> float:
    """The largest f_β(λ) for λ in ]0, 1]."""
    return float(eigenvalue_map(np.linspace(1e-4, 1, 10_000), beta).max())


def draw(results: Results) -> Figure:
    """Four panels: zf(z) beside z², β₀ sign(y) − y, the eigenvalue map, and a·tanh(x/a) beside three densities."""
    figure = new_figure(10.4, 6.4)
    axes = [figure.add_subplot(2, 3, i + 1) for i in range(5)]
    z = np.linspace(-3, 3, 601)
    lines(axes[0], z, {"zf(z)": sigma_score(z), "z²": z**2, "zf(z) − z²": sigma_score(z) - z**2}, "z")
    lines(axes[1], z, {f"{b:g} sign(y) − y": sparsity(z, b) for b in BETAS}, "y")
    lines(axes[2], z, {f"{b:g} tanh(y) − y": sparsity(z, b, np.tanh) for b in BETAS}, "y")
    lam = np.linspace(0, 1.6, 400)
    lines(axes[3], lam, {f"β = {b:g}": eigenvalue_map(lam, b) for b in STEPS}, "λ")
    densities(axes[4], z)
    return figure


def lines(axes: Axes, x: Array, curves: dict[str, Array], label: str) -> None:
    """Curves over one axis."""
    for (name, y), colour in zip(curves.items(), COLOURS, strict=False):
        axes.plot(x, y, color=colour, linewidth=1.1, label=name)
    axes.axhline(0, color=GREY, linewidth=0.4)
    axes.set_xlabel(label, fontsize=8)
    axes.legend(fontsize=6, frameon=False)
    tidy(axes)


def densities(axes: Axes, x: Array) -> None:
    """Uniform, Gaussian and Laplace densities of unit variance, and a·tanh(x/a) for a = 1 and 4."""
    uniform = np.where(np.abs(x) <= np.sqrt(3), 1 / np.sqrt(12), 0.0)
    gaussian = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    laplace = np.exp(-np.sqrt(2) * np.abs(x)) / np.sqrt(2)
    lines(axes, x, {"uniform": uniform, "Gaussian": gaussian, "Laplace": laplace}, "x")
    for a, style in ((1, "--"), (4, ":")):
        axes.plot(x, a * np.tanh(x / a) / 4, style, color=GREY, linewidth=1, label=f"{a} tanh(x/{a}), /4")
    for edge in (-2, 2):
        axes.axvline(edge, color=GREY, linewidth=0.4)
    axes.legend(fontsize=6, frameon=False)


THEORY = Experiment(
    "theory",
    "Small plots of the theory",
    "zf(z) beside z²; β₀ sign(y) − y and β₀ tanh(y) − y; the map of the eigenvalues of WᵀW; densities of unit variance "
    "and a·tanh(x/a), a quarter of its height.",
    (),
    (
        Claim(
            "zf(z) ≈ z² for |z| < 1",
            "largest |zf(z) − z²| for |z| ≤ 1",
            "≤ 0.1",
            lambda _: float(
                np.abs(sigma_score(np.linspace(-1, 1, 401)) - np.linspace(-1, 1, 401) ** 2).max()
            ),
        ),
        Claim(
            "With β ≤ ½ the eigenvalues stay in ]0, 1]",
            "largest f_β(λ), λ in ]0, 1], β up to ½",
            "≤ 1.0",
            lambda _: max(leaves_interval(b) for b in (0.1, 0.25, 0.4, 0.5)),
        ),
        Claim(
            "With β > ½ they leave it",
            "largest f_β(λ), λ in ]0, 1], β = 0.75",
            "> 1.0",
            lambda _: leaves_interval(0.75),
            ours=True,
        ),
        Claim(
            "Convergence is fastest at β = ½",
            "|f′_β(1)| = |1 − 2β| at ½, less the least at 0.25, 0.4, 0.6 and 0.75",
            "< 0.0",
            lambda _: abs(1 - 2 * 0.5) - min(abs(1 - 2 * b) for b in (0.25, 0.4, 0.6, 0.75)),
        ),
        Claim(
            "√var(tanh ν) ≈ 0.62 for a standard normal ν",
            "difference from 0.62",
            "≤ 0.01",
            lambda _: abs(scale_kept(1) - 0.62),
        ),
        Claim(
            "√var(3 tanh(ν/3)) ≈ 0.90",
            "difference from 0.90",
            "≤ 0.01",
            lambda _: abs(scale_kept(3) - 0.90),
        ),
        Claim(
            "The asymmetric scale is about 1.6",
            "difference of 1/√var(tanh ν) from 1.6",
            "≤ 0.05",
            lambda _: abs(1 / scale_kept(1) - 1.6),
        ),
        Claim(
            "β₀ tanh(y) − y has a single inflection point for β₀ ≤ 1 and two for β₀ > 1",
            "inflection points at β₀ = 1.5",
            "≥ 2",
            lambda _: inflections(1.5),
        ),
        Claim(
            "β₀ tanh(y) − y is zero once for β₀ ≤ 1 and three times for β₀ > 1",
            "zeros at β₀ = 1.5 less those at 1",
            "≥ 2",
            lambda _: crossings(1.5) - crossings(1.0),
            ours=True,
        ),
    ),
    draw,
    images=False,
    seeds=1,
)

EXPERIMENTS = (THEORY,)

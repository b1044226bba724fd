"""Draws docs/pictures/identifiability.png: which axes of a plane the data identify, and by what. `make pictures`."""

from pathlib import Path

import numpy as np

from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.figures.save import BLUE, GREY, ORANGE, new_figure, save
from sigmapca_cli.solvers.main_loss.fit import newton_fit

ANGLE = np.deg2rad(30)
TRUE = np.array(
    [[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]]
)  # columns are the directions
N = 4000


def sources(kind: str, spread: tuple[float, float]) -> np.ndarray:
    """Independent unit-variance numbers (N, 2), stretched to these standard deviations."""
    rng = np.random.default_rng(3)
    root = np.sqrt(3)
    unit = rng.normal(size=(N, 2)) if kind == "Gaussian" else rng.uniform(-root, root, size=(N, 2))
    return (unit - unit.mean(0)) / unit.std(0) * spread


def pca(x: np.ndarray) -> np.ndarray:
    """Columns: eigenvectors of the covariance."""
    return np.linalg.eigh(np.cov(x.T))[1][:, ::-1]


def nonlinear_pca(x: np.ndarray) -> np.ndarray:
    """Columns: the filters of the Newton solver."""
    source = MemorySource("plane", x, Standardisation(standardise="none"))
    return newton_fit(source, 2, 0.8)[0].W


def away(axes: np.ndarray) -> float:
    """Degrees between the axes found and the true ones, whatever their order and sign."""
    cosine = np.abs(axes.T @ TRUE).max(axis=0).min()
    return float(np.rad2deg(np.arccos(min(cosine, 1.0))))


def draw(axes, x: np.ndarray, title: str) -> None:
    """Points, true directions (grey), those of PCA (orange) and of nonlinear PCA (blue)."""
    axes.plot(*x[:1500].T, ".", color="#bbbbbb", markersize=1.5, zorder=0)
    found = (
        (TRUE, GREY, 4.4, "-", "true"),
        (pca(x), ORANGE, 3.5, "-", "PCA"),
        (nonlinear_pca(x), BLUE, 2.6, "--", ""),
    )
    words = []
    for directions, colour, length, style, name in found:
        for w in directions.T:
            axes.plot(*np.outer([-length, length], w).T, style, color=colour, linewidth=1.8)
        if name != "true":
            words.append(f"{name or 'nonlinear PCA'} {away(directions):.0f}° off")
    axes.set(xlim=(-5, 5), ylim=(-5, 5), aspect="equal", xticks=[], yticks=[])
    axes.set_title(f"{title}\n{', '.join(words)}", fontsize=9)


def main() -> None:
    """Three panels."""
    figure = new_figure(9, 3.5)
    cases = (
        ("Gaussian, σ = 2 and 1:\nvariance tells the axes", "Gaussian", (2.0, 1.0)),
        ("uniform, σ = 1.5 and 1.5:\nonly independence does", "uniform", (1.5, 1.5)),
        ("Gaussian, σ = 1.5 and 1.5:\nnothing does", "Gaussian", (1.5, 1.5)),
    )
    for i, (title, kind, spread) in enumerate(cases):
        draw(figure.add_subplot(1, 3, i + 1), sources(kind, spread) @ TRUE.T, title)
    lines = [
        figure.axes[0].plot([], [], style, color=c)[0]
        for c, style in ((GREY, "-"), (ORANGE, "-"), (BLUE, "--"))
    ]
    figure.legend(
        lines, ["true directions", "PCA", "nonlinear PCA"], loc="outside lower center", ncols=3, fontsize=9
    )
    save(figure, Path(__file__).with_suffix(".png"), formats=("png",))


if __name__ == "__main__":
    main()

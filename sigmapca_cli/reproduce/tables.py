"""The two summary tables: every method of the catalogue on the same patches."""

from __future__ import annotations

from sigmapca_cli.methods.catalogue import CATALOGUE, LINEAR, NONLINEAR
from sigmapca_cli.reproduce import draw
from sigmapca_cli.reproduce.experiment import ABOUT_A, Claim, Experiment
from sigmapca_cli.reproduce.images import separates
from sigmapca_cli.reproduce.plan import Panel


def rows_of(family: str) -> list[str]:
    """Return the methods of the paper's table of a family, in its order; others of the family are in no table."""
    rows = [row for row in CATALOGUE.values() if row.family == family and row.row is not None]
    return [row.name for row in sorted(rows, key=lambda row: row.row or 0)]


LINEAR_ROWS, NONLINEAR_ROWS = rows_of(LINEAR), rows_of(NONLINEAR)
SUBSPACE_ONLY = ("linear_ae", "subspace")
CONTROLS = ("nlpca_conventional", "nlpca_trainable_no_sg")
ALIGNED = 0.9


def row_panel(number: int, name: str, *more: str) -> Panel:
    """One row of a table."""
    return Panel(name, f"{number}: {name}\n{CATALOGUE[name].equation}", (f"model={name}", *more))


def finds_eigenvectors(name: str) -> Claim:
    """A method that aligns its axes."""
    return Claim(
        f"{name} finds the eigenvectors",
        "matched |cos| with the eigendecomposition",
        f"≥ {ALIGNED}",
        lambda r: r.agreement(name, "pca_svd"),
    )


def finds_subspace(name: str) -> tuple[Claim, Claim]:
    """A method that finds the subspace and no axes in it."""
    return (
        Claim(
            f"{name} finds the PCA subspace",
            "explained variance over that of PCA",
            "≥ 0.99",
            lambda r: r.ratio(name, "pca_svd", "explained_variance"),
        ),
        Claim(
            f"{name} leaves the axes arbitrary",
            "matched |cos| with the eigenvectors, less that of random axes in the subspace",
            "≤ 0.1",
            lambda r: r.agreement(name, "pca_svd") - r.subspace_chance("pca_svd"),
        ),
    )


LINEAR_SUMMARY = Experiment(
    "linear-summary",
    "Table: summary of linear PCA methods",
    "The fourteen linear methods, from a random start: a start at the eigenvectors would prove nothing.",
    tuple(
        row_panel(i, name, *(() if name == "pca_svd" else ("init=orthogonal",)))
        for i, name in enumerate(LINEAR_ROWS, 1)
    ),
    (
        *(claim for name in SUBSPACE_ONLY for claim in finds_subspace(name)),
        *(finds_eigenvectors(n) for n in LINEAR_ROWS if n not in (*SUBSPACE_ONLY, "pca_svd")),
    ),
    draw.grid_of(4, 2.6, 0.6),
    # From a random start the last eigenvectors take long: ten times the authors' rate, which the schedule then lowers.
    ours=("lr=0.01",),
    quick=("epochs=19",),  # of few images: as many steps as three of all
)


def fails(name: str) -> Claim:
    """A negative control, which should find nothing."""
    return Claim(
        f"{name} finds no meaningful filters",
        "matched |cos| with the main method, less that of random axes in one subspace",
        "≤ 0.1",
        lambda r: r.agreement(name, "nlpca") - r.subspace_chance("nlpca"),
    )


NONLINEAR_SUMMARY = Experiment(
    "nonlinear-summary",
    "Table: summary of nonlinear PCA methods",
    "The twenty-four nonlinear methods; rows 1 and 2 are negative controls and start at random.",
    (
        *(
            row_panel(i, name, *(("init=orthogonal",) if name in CONTROLS else ()))
            for i, name in enumerate(NONLINEAR_ROWS, 1)
        ),
        Panel("pca", "", ("model=pca_svd",), shown=False),
    ),
    (
        *(fails(name) for name in CONTROLS),
        *(separates(name, "pca", f"{name} separates") for name in NONLINEAR_ROWS if name not in CONTROLS),
        Claim(
            "h′ = 1 leaves the filters alike where σ is estimated from the data",
            "matched |cos| of rows 9 and 10, less that of row 9 between two seeds",
            "≥ -0.05",
            lambda r: r.agreement("nlpca", "nlpca_modified_derivative") - r.between_seeds("nlpca"),
            not_for=ABOUT_A,
        ),
    ),
    draw.grid_of(4, 2.6, 0.6),
)

EXPERIMENTS = (LINEAR_SUMMARY, NONLINEAR_SUMMARY)

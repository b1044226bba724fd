"""Rows in time: `python benchmarks/ordered.py kinds` compares methods, and `recordings` does on sounds and EEG;
`coverage` is about the certificate, `halves` about the halves.

`kinds` and `recordings` need pyriemann and python-picard. Each keeps its table, as lines of Markdown, in
docs/results/ordered.json.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import stored  # noqa: E402
from solver_helpers import matched  # noqa: E402
from source_kinds import projected, series  # noqa: E402

from sigmapca_cli.solvers.independence.errors import errors  # noqa: E402
from sigmapca_cli.solvers.independence.rows import Rows  # noqa: E402
from sigmapca_cli.solvers.independence.solve import solve  # noqa: E402
from sigmapca_cli.solvers.independence.spectra import spectra_of  # noqa: E402

SAMPLES = 4
WHITE = np.zeros(5)


def rows(kind, n, seed):
    """Return rows (n, 8) of five series, the directions E (8, 5), noise .05; "white" kinds have no memory."""
    rng = np.random.default_rng(seed)
    E = np.linalg.qr(rng.normal(size=(8, 8)))[0][:, :5]
    if kind == "3 Gaussian, 2 Laplace":
        S = np.column_stack([series("Gaussian", n, seed)[:, :3], series("laplace", n, seed + 100)[:, 3:]])
    elif kind.startswith("white "):
        S = series(kind.removeprefix("white "), n, seed, WHITE)
    else:
        S = series(kind, n, seed)
    X = S @ E.T + 0.05 * rng.normal(size=(n, 8))
    return X - X.mean(0), E


def white(Y):
    return Y / Y.std(0)


def by_pham(Y):
    """Joint diagonalisation of the spectral matrices of whitened rows (pyriemann's ajd_pham): SOBI in frequencies."""
    from pyriemann.geometry.ajd import ajd_pham

    V = ajd_pham(spectra_of(white(Y)))[0]  # V S Vᵀ is diagonal for the spectra S of the whitened rows
    return Y.std(0)[:, None] * np.linalg.inv(V)


def sobi(Y, lags=100):
    """Joint diagonalisation of lagged covariances of whitened rows (Belouchrani et al. 1997), by Jacobi rotations."""
    from pyriemann.geometry.ajd import rjd

    Z = white(Y)
    C = [Z[lag:].T @ Z[: len(Z) - lag] / len(Z) for lag in range(1, min(lags, len(Z) // 10))]
    return rjd(np.array([c + c.T for c in C]) / 2)[0] * Y.std(0)[:, None]


def fastica(Y):
    from sklearn.decomposition import FastICA

    found = FastICA(whiten="unit-variance", random_state=0, max_iter=1000).fit(Y)
    return found.mixing_


def picard_extended(Y):
    from picard import picard

    K, W, _ = picard(Y.T, extended=True, ortho=True, random_state=0)
    return np.linalg.pinv(W @ K)


def ours(spectra, tau):
    return lambda Y: solve(Y, tau, spectra=spectra_of(Y) if spectra else None).R


METHODS = {
    "PCA": lambda Y: np.eye(Y.shape[1]),
    "FastICA": fastica,
    "picard": picard_extended,
    "SOBI": sobi,
    "ajd_pham": by_pham,
    "C₁, variances": ours(False, 1.0),
    "C₁, spectra": ours(True, 1.0),
}
KINDS = ("Gaussian", "laplace", "3 Gaussian, 2 Laplace", "white laplace")


def kinds():
    """Print mean matched |cos| with the directions; the columns of a mixing matrix are normalised."""
    lines = [f"| series | n | {' | '.join(METHODS)} |", f"|---|---|{'---|' * len(METHODS)}"]
    for kind in KINDS:
        for n in (2000, 10_000):
            scores = np.zeros((SAMPLES, len(METHODS)))
            for seed in range(SAMPLES):
                X, E = rows(kind, n, seed)
                Y, P = projected(X, 5)
                for at, method in enumerate(METHODS.values()):
                    scores[seed, at] = matched(P @ method(Y), E)
            lines.append(f"| {kind} | {n} | {' | '.join(f'{s:.4f}' for s in scores.mean(0))} |")
            print(lines[-1], flush=True)
    kept("kinds", lines)


def by_ours_on_white(spectra):
    """Linear ICA: a rotation of whitened components. The columns of the mixing matrix are returned."""

    def directions(Y):
        Z = white(Y)
        return Y.std(0)[:, None] * solve(Z, 1.0, spectra=spectra_of(Z) if spectra else None).R

    return directions


def recordings():
    """Print mean matched |cos| with the mixing patterns of the made sounds and of the made EEG, whose mixing is not
    orthogonal: every method is linear ICA on the leading principal components."""
    from sigmapca_cli.data.samples.fields import make

    methods = {
        **{name: METHODS[name] for name in ("FastICA", "picard", "SOBI", "ajd_pham")},
        "C₁ on white rows": by_ours_on_white(False),
        "C₁ on white rows, spectra": by_ours_on_white(True),
    }
    lines = [f"| recording | {' | '.join(methods)} |", f"|---|{'---|' * len(methods)}"]
    for field in ("sound", "eeg"):
        scores = np.zeros((SAMPLES, len(methods)))
        for seed in range(SAMPLES):
            sample = make(field, seed)
            made: Any = sample.content
            X = (
                np.column_stack(list(made.tracks.values()))
                if field == "sound"
                else made.drop(columns="time").to_numpy()
            )
            truth = sample.truth.to_numpy()
            Y, P = projected(X, truth.shape[1])
            for at, method in enumerate(methods.values()):
                scores[seed, at] = matched(P @ method(Y), truth / np.linalg.norm(truth, axis=0))
        lines.append(f"| {field} | {' | '.join(f'{s:.4f}' for s in scores.mean(0))} |")
        print(lines[-1], flush=True)
    kept("recordings", lines)


def coverage(samples=60):
    """Print how often an interval of 1.96 errors holds the true angle: k = p = 4 series."""
    lines = ["| series | n | with spectra | without | identified |", "|---|---|---|---|---|"]
    phi, sigma = np.array([0.95, 0.8, 0.4, -0.5]), np.array([2.0, 1.8, 1.0, 0.9])
    for kind in ("Gaussian", "laplace"):
        for n in (2000, 5000):
            inside: tuple[list[bool], list[bool]] = ([], [])
            told: list[bool] = []
            for seed in range(samples):
                S = series(kind, n, seed, phi, sigma)
                S -= S.mean(0)
                for at, spectra in enumerate((spectra_of(S), None)):
                    R = nearest_to_identity(solve(S, 1.0, spectra=spectra, starts=1).R)
                    found = errors(Rows.of(S), R, 1.0, ordered=True, spectra=spectra)
                    pairs = np.triu_indices(4, 1)
                    ok = found.identified[pairs]
                    angle = ((R - R.T) / 2)[pairs]
                    inside[at] += (np.abs(angle) < 1.96 * found.angle[pairs])[ok].tolist()
                    told += ok.tolist() if at == 0 else []
            numbers = [f"{np.mean(one):.3f}" if one else "–" for one in inside]
            lines.append(f"| {kind} | {n} | {numbers[0]} | {numbers[1]} | {np.mean(told):.3f} |")
            print(lines[-1], flush=True)
    kept("coverage", lines)


def nearest_to_identity(R):
    """Return R with its columns in the order and with the signs that are nearest to the identity."""
    from scipy.optimize import linear_sum_assignment

    order = linear_sum_assignment(-np.abs(R))[1]
    R = R[:, order]
    return R * np.sign(np.diag(R))


def halves():
    """Print the agreement of halves of series of one spectrum, which have no axes: even and odd rows, and stretches."""
    from sigmapca_cli.evaluation.agreement import matched_cosine
    from sigmapca_cli.linalg.rotations import matches

    lines = ["| n | even and odd | two stretches | chance |", "|---|---|---|---|"]
    for n in (2000, 10_000):
        found = []
        for seed in range(SAMPLES):
            S = series("Gaussian", n, seed, np.full(5, 0.98), np.ones(5))
            halved = [(S[::2], S[1::2]), (S[: n // 2 - n // 100], S[n // 2 + n // 100 :])]
            found.append(
                [matches(*(solve(part - part.mean(0), 1.0).R for part in two)).mean() for two in halved]
            )
        numbers = " | ".join(f"{x:.4f}" for x in np.mean(found, axis=0))
        lines.append(f"| {n} | {numbers} | {matched_cosine(5, 5):.4f} |")
        print(lines[-1], flush=True)
    kept("halves", lines)


def kept(name, lines):
    """Store a table as lines of Markdown."""
    stored.keep("ordered", **{name: lines})


if __name__ == "__main__":
    {"kinds": kinds, "recordings": recordings, "coverage": coverage, "halves": halves}[sys.argv[1]]()

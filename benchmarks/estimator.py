"""The estimator beside the command on the same rows, and a grid search beside scikit-learn's PCA: seconds, in turn.

python benchmarks/estimator.py [fit|search] [REPEATS]
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from timing import SIGMAPCA, Row, in_turn, process, ratio, row, timed

from sigmapca_cli.sklearn import SigmaPCA

K = 8


def planted(n: int, p: int = 256) -> np.ndarray:
    """Rows of 32 Laplace sources of falling variance, with noise."""
    g = np.random.default_rng(0)
    X = (g.laplace(size=(n, 32)) * np.linspace(3, 1, 32)) @ g.standard_normal((32, p))
    return X + 0.1 * g.standard_normal((n, p))


def fit(repeats: int) -> Row:
    """A fit to 200,000 × 256, and the whole command with the same solver on the file of the rows."""
    with tempfile.TemporaryDirectory() as folder:
        X = planted(200_000)
        np.save(Path(folder) / "x.npy", X)
        words = ("data=array", f"data.path={folder}/x.npy", f"k={K}", "solver=independence")
        command = process(*SIGMAPCA, "train", *words, "if_exists=new", folder=folder)
        found = in_turn({"fit": timed(lambda: SigmaPCA(K).fit(X)), "command": command}, repeats)
    return row("fit 200,000 × 256", found, ratio=round(ratio(found, "fit", "command"), 2))


def search(repeats: int) -> Row:
    """GridSearchCV of 4 settings × 3 folds on 20,000 × 256, by τ here and by the number of components for PCA."""
    X = planted(20_000)
    ours = GridSearchCV(SigmaPCA(K), {"tau": [0, 0.1, 0.5, 1]}, cv=3)
    peer = GridSearchCV(PCA(K), {"n_components": [2, 4, 6, 8]}, cv=3)
    found = in_turn({"sigma": timed(lambda: ours.fit(X)), "pca": timed(lambda: peer.fit(X))}, repeats)
    return row("search 4 × 3 of 20,000 × 256", found, ratio=round(ratio(found, "sigma", "pca"), 2))


def main() -> None:
    """Time what is asked for, and print a row of each."""
    names = [name for name in sys.argv[1:] if not name.isdigit()] or ["fit", "search"]
    repeats = int(next((name for name in sys.argv[1:] if name.isdigit()), "3"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            print({"fit": fit, "search": search}[name](repeats))


if __name__ == "__main__":
    main()

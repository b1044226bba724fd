"""Write the notebook sigma_pca.ipynb with the outputs of its cells: python examples/notebook/make.py

The cells are here, as text. They run in this process, in an empty folder; no Jupyter is needed. A test runs them again.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("sigma_pca.ipynb")

CELLS = (
    (
        "markdown",
        """# σ-PCA in Python

Linear PCA finds directions by their variance. Where two variances are equal, its axes are arbitrary. σ-PCA finds
orthonormal directions by variance *and* independence, and says of each axis whether the data determine it.""",
    ),
    (
        "code",
        """import numpy as np

import sigmapca_cli as sp

g = np.random.default_rng(0)
E = np.linalg.qr(g.standard_normal((8, 4)))[0]  # four orthonormal directions in eight dimensions
sources = g.laplace(size=(4000, 4)) * [3, 3, 1.5, 1.5]  # two and two of equal variance
X = sources @ E.T + 0.05 * g.standard_normal((4000, 8))""",
    ),
    (
        "markdown",
        """## Train

`sp.train` runs what the command `sigmapca train` runs, and makes the same folder. A notebook shows the run: its
filters, its standard deviations, and later the sentences of its certificate.""",
    ),
    ("code", 'run = sp.train(X, k=4, a="auto", solver="newton")\nrun'),
    (
        "markdown",
        """## Which axes do the data identify?

All four, although two pairs of variances are equal: the sources are not Gaussian.""",
    ),
    ("code", "run.certificate()"),
    ("markdown", "Compared with the planted directions. Linear PCA mixes those of equal variance:"),
    (
        "code",
        """from sklearn.decomposition import PCA

def cosines(W):
    return np.abs(W.T @ E).max(axis=0).round(3)

print("sigma-PCA ", cosines(run.filters))
print("linear PCA", cosines(PCA(4).fit(X).components_.T))""",
    ),
    ("markdown", "On Gaussian data of equal variance there is nothing to find, and the certificate says so:"),
    (
        "code",
        'sp.train(g.standard_normal((4000, 8)), k=3, a=4, solver="newton").certificate()',
    ),
    (
        "markdown",
        """## Apply it

`transform` gives components of unit variance; `inverse_transform` goes back to rows.""",
    ),
    (
        "code",
        """Y = run.transform(X)
print(Y.shape, Y.std(axis=0).round(3), "error", np.abs(run.inverse_transform(Y) - X).max().round(1))""",
    ),
    ("code", 'run.plot("spectrum")'),
    (
        "markdown",
        """## Beside scikit-learn

`sp.SigmaPCA` is an estimator. `run.to_sklearn()` makes one of a run; `partial_fit` takes rows in parts.""",
    ),
    (
        "code",
        """from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pipeline = make_pipeline(StandardScaler(), sp.SigmaPCA(4)).fit(X)
parts = sp.SigmaPCA(4)
for part in np.split(X, 4):
    parts.partial_fit(part)
print(pipeline.transform(X).shape, cosines(parts.components_.T))""",
    ),
    ("markdown", "## Many runs\n\nEvery run is on disk. `sp.runs` lists them, also those of the command."),
    (
        "code",
        """for a in (0.8, 2, 8):
    sp.train(X, k=4, a=a, steps=600, if_exists="skip")
sp.runs(where="a>0").to_pandas()[["model", "a", "k", "converged", "loss", "explained_variance"]].round(4)""",
    ),
    (
        "markdown",
        """## A layer in a network

`sp.nn.SigmaPCA` is a module of torch. Its filters equal those of the command on the same batches.""",
    ),
    (
        "code",
        """import torch

rows = torch.tensor(X, dtype=torch.float32)
layer = sp.nn.SigmaPCA(8, 4).init_pca(rows)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
layer.constrain_after(optimizer)
for _ in range(8):
    for batch in rows[torch.randperm(len(rows))].split(128):
        optimizer.zero_grad()
        layer.loss(batch).backward()
        optimizer.step()
print(layer)
print(cosines(layer.filters.detach().numpy()).round(2))""",
    ),
)


def executed() -> list[dict[str, Any]]:
    """Return the cells of the notebook with their outputs, run one after the other in a new folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count, before = [], 0, os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, (kind, source) in enumerate(CELLS):
                cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
                cell["source"] = source.splitlines(keepends=True)
                if kind == "code":
                    count += 1
                    cell |= {"execution_count": count, "outputs": outputs(source, names, count)}
                cells.append(cell)
        finally:
            os.chdir(before)
    return cells


def outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run one cell; return what it printed, and its last expression as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(tree, f"cell {count}", "exec"), names)
        value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names) if last else None  # type: ignore[attr-defined]
    found: list[dict[str, Any]] = []
    if text.getvalue():
        lines = text.getvalue().splitlines(keepends=True)
        found.append({"output_type": "stream", "name": "stdout", "text": lines})
    if value is not None:
        shown = {
            "output_type": "execute_result",
            "execution_count": count,
            "metadata": {},
            "data": data(value),
        }
        found.append(shown)
    return found


def data(value: Any) -> dict[str, Any]:
    """Return the forms of a value that a notebook stores."""
    forms: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        forms["text/html"] = value._repr_html_().splitlines(keepends=True)
    if hasattr(value, "_repr_png_"):
        forms["image/png"] = base64.b64encode(value._repr_png_()).decode()
    return forms


def notebook() -> dict[str, Any]:
    """Return the notebook, format 4.5."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    language = {"name": "python", "version": ".".join(map(str, sys.version_info[:2]))}
    metadata = {"kernelspec": kernel, "language_info": language}
    return {"cells": executed(), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n")
    print(NOTEBOOK)

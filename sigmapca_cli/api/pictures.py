"""What notebooks show: a figure, a run as a small page, and a certificate as sentences."""

from __future__ import annotations

import base64
import io
import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.evaluation.certificate import Certificate
from sigmapca_cli.storage.find import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SIGMAS = 16


class Picture:
    """A figure that a notebook shows and a program saves.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What is drawn.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"<Picture, {width:g} × {height:g} inches: save(path) writes it>"

    def _repr_png_(self) -> bytes:
        return png(self.figure)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figure to a file.

        Parameters
        ----------
        path : str or PathLike
            Name of the file; its suffix (png, pdf or svg) says the format.

        Returns
        -------
        Path
            The file, replaced in one step.

        Raises
        ------
        InputError
            If the suffix is another one.
        """
        from sigmapca_cli.figures.save import save
        from sigmapca_cli.system.errors import InputError

        kind = Path(path).suffix.lstrip(".").lower()
        if kind not in ("png", "pdf", "svg"):
            raise InputError(f"{os.fspath(path)}: give a name that ends in .png, .pdf or .svg")
        return save(self.figure, Path(path), (kind,))[0]


def png(figure: Figure, dpi: int = 110) -> bytes:
    """Return a figure as PNG."""
    from sigmapca_cli.figures.save import drawn_in_all_scripts

    buffer = io.BytesIO()
    with drawn_in_all_scripts(figure):
        figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def numbers(run: Any) -> dict[str, str]:
    """Return what is said of a run in one line: model, sizes, and how good it is."""
    attrs, evaluation = run.attrs, run.evaluation
    found = {
        "status": run.status,
        "model": attrs.get("model"),
        "data": attrs.get("data"),
        **{name: attrs.get(name) for name in ("n", "p", "k", "a", "seed")},
        "converged": None if attrs.get("converged") is None else "yes" if attrs["converged"] else "no",
        "explained variance": evaluation.get("explained_variance"),
        "MCC": evaluation.get("mcc"),
    }
    return {
        name: f"{value:.4g}" if isinstance(value, float) else str(value)
        for name, value in found.items()
        if value is not None and value != ""
    }


def page(run: Any) -> str:
    """Return a run in HTML: its numbers, its filters, σ, and the sentences of a certificate that is known."""
    facts = " · ".join(f"{escape(name)} <b>{escape(value)}</b>" for name, value in numbers(run).items())
    parts = [f"<div><code>{escape(shortened(run.folder))}</code></div><div>{facts}</div>"]
    if run.filters is not None and run.sigma is not None:
        from sigmapca_cli.figures.run import draw

        figure: Any = draw("filters", run, None)
        image = base64.b64encode(png(figure)).decode()
        parts.append(f'<img alt="filters" style="max-width:100%" src="data:image/png;base64,{image}">')
        parts.append(f"<div>σ: {sigmas(run.spreads)}</div>")
    if sentences := run.sentences:
        parts.append("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in sentences) + "</ul>")
    elif run.filters is not None:
        parts.append("<div>run.certificate() says which axes the data identify.</div>")
    return f'<div style="line-height:1.6">{"".join(parts)}</div>'


def sigmas(values: Any) -> str:
    """Return standard deviations as text, the first of many."""
    few = ", ".join(f"{value:.4g}" for value in np.asarray(values)[:MOST_SIGMAS])
    return few + (f", … ({len(values)} in all)" if len(values) > MOST_SIGMAS else "")


class CertificateOfRun(Certificate):
    """A certificate that prints as sentences."""

    @property
    def sentences(self) -> list[str]:
        """Return which axes are identified, and why the others are not, in sentences."""
        from sigmapca_cli.evaluation.words import explain

        return explain(self)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in self.sentences) + "</ul>"

"""`sigmapca show RUN`: one run in the terminal."""

from typing import Any

import typer

from sigmapca_cli.cli.tables import table
from sigmapca_cli.system.text import printable


def show(
    run: str = typer.Argument("last", help="A run: folder, name, beginning of its hash, or last."),
    filters: int = typer.Option(64, "--filters", min=0, help="How many filters to draw."),
    every: bool = typer.Option(False, "--all", help="All weights, features × filters, not the largest."),
    config: bool = typer.Option(False, "--config", help="Print the whole configuration as YAML."),
) -> None:
    """Print facts, then filters."""
    from rich.console import Console

    from sigmapca_cli.evaluation.words import answers
    from sigmapca_cli.figures.filters import pixels_of
    from sigmapca_cli.figures.terminal import print_filters
    from sigmapca_cli.storage.find import resolve
    from sigmapca_cli.storage.read import StoredRun

    found = StoredRun.open(resolve(run))
    if config:
        print(printable(found.config_yaml, keep="\n\t"), end="")
        return
    console = Console(markup=False, emoji=False)
    attrs = found.attrs
    console.print(printable(f"{found.folder}"), highlight=False, soft_wrap=True)
    facts = [f"status {found.status}"]
    facts += [
        f"{name} {attrs[name]}" for name in ("model", "data", "n", "p", "k", "a", "seed") if name in attrs
    ]
    console.print("  ".join(facts), highlight=False)
    if attrs.get("missing_values"):
        done = {"drop": "rows left out", "mean": "filled by the mean", "ppca": "filled by probabilistic PCA"}
        what = done.get(str(attrs.get("missing")), "")
        told = f"{attrs['missing_values']} missing values in {attrs['missing_rows']} rows: {what}"
        console.print(told, highlight=False)
    if "clipped_values" in attrs:
        told = f"{attrs['clipped_values']} values clipped to the quantiles {attrs['clip']} and 1 - {attrs['clip']}"
        console.print(told, highlight=False)
    if (converged := attrs.get("converged")) not in (None, ""):
        angle = found.evaluation.get("angle")
        told = "" if angle is None else f": at most {float(angle):.2g} rad to go"
        console.print(("converged" if converged else "not converged") + told, highlight=False)
    if told := answers(found.evaluation):
        console.print(told, highlight=False)
    if attrs.get("error"):
        console.print(attrs["error"], highlight=False)
    scalars = [f"{name} {value:.5g}" for name, value in found.evaluation.items() if isinstance(value, float)]
    if scalars:
        console.print("  ".join(scalars), highlight=False)
    names = found.names and [printable(name) for name in found.names]
    W, sigma = found.directions, found.spreads
    if W is not None and sigma is not None and (filters or every):
        console.print()
        if every:
            print(weights(W, sigma, names))
            return
        print_filters(W, sigma, pixels_of(found), console, filters, names)


def weights(W: Any, sigma: Any, names: list[str] | None) -> str:
    """A line a feature, with its weight in every filter; the last line has σ."""
    from sigmapca_cli.figures.titles import format_sigma

    features = names or [str(i) for i in range(len(W))]
    lines = [[name, *(f"{w:+.3f}" for w in row)] for name, row in zip(features, W, strict=True)]
    header = ["feature", *(f"filter_{i + 1}" for i in range(W.shape[1]))]
    return table(header, [*lines, ["σ", *(format_sigma(float(s)) for s in sigma)]])

"""`sigmapca plot RUN`: figures of a run, for the screen and for print."""

from typing import Any

import typer

from sigmapca_cli.cli.opening import open_run
from sigmapca_cli.cli.outputs import claim, drawings, files_of_run
from sigmapca_cli.system.errors import InputError

# The names that figures.run draws, which is not imported for a help text.
FIGURES = (
    "filters", "curves", "spectrum", "patterns", "loadings", "topographies", "scree", "histograms", "scores", "biplot",
    "signals", "scatter", "certificate",
)  # fmt: skip
WHAT = f"{', '.join(FIGURES)}; repeatable."


def plot(
    run: str = typer.Argument("last", help="A run: folder, name, beginning of its hash, or last."),
    what: list[str] = typer.Option(None, "--what", help=WHAT),
    output: str = typer.Option(None, "--output", "-o", help="Folder for the files; default: <run>/figures."),
    width: float = typer.Option(None, "--width", help="Inches, such as 3.5 for a column of a journal."),
    formats: str = typer.Option(None, "--format", metavar="LIST", help="png,pdf,svg; default: png,pdf."),
    dpi: int = typer.Option(150, "--dpi", help="Pixels per inch of a PNG."),
    title: bool = typer.Option(True, "--title/--no-title", help="Whether a title stands above."),
    colour: str = typer.Option(
        None,
        "--colour",
        "--color",
        metavar="COLUMN",
        help="scores, biplot: colour rows by this column of their file.",
    ),
    components: str = typer.Option(
        None, "--components", metavar="1,2", help="scores, biplot: which two; default: 1,2."
    ),
    x_label: str = typer.Option(
        None, "--x-label", metavar="TEXT", help="filters: what numbers in the names of columns are."
    ),
    rotate: str = typer.Option(
        None, "--rotate", metavar="METHOD", help="loadings: as of `loadings --rotate`."
    ),
    force: bool = typer.Option(False, "--force", help="Replace files that exist."),
) -> None:
    """Write the figures that suit the run, or those named, and say where they are."""
    from pathlib import Path

    from sigmapca_cli.figures.run import plot_run
    from sigmapca_cli.figures.style import KNOWN_FORMATS, style_of
    from sigmapca_cli.storage.find import shortened

    style = style_of(
        formats, components, width=width, dpi=dpi, titled=title, colour=colour, x_label=x_label, rotate=rotate
    )
    named = what or (["scores"] if colour or components else None)
    found = open_run(run)
    folder = Path(output) if output else found.folder / "figures"
    if output and folder.suffix[1:] in KNOWN_FORMATS:
        raise InputError(
            f"-o {output}: the figures go to a folder, each to a file named after it; name the folder, and choose by "
            f"--what NAME --format {folder.suffix[1:]}"
        )
    if output:
        claim(drawings(folder, named or FIGURES, style.formats), reads=files_of_run(found), force=force)
    for path in plot_run(found, folder, named, source_of(found), style):
        print(shortened(path))


def source_of(run: Any) -> Any:
    """Return the data of a run; None, and a line that says so, where they cannot be read or are others.

    Filters, curves and spectrum need no data: a run copied from a cluster can still be drawn.
    """
    from sigmapca_cli.data import build
    from sigmapca_cli.data.stored import data_of

    try:
        source = build(data_of(run))
    except InputError as problem:
        print(f"without the data, so fewer figures: {problem}")
        return None
    if run.filters is not None and source.p != len(run.filters):
        print(
            f"without the data, so fewer figures: they have {source.p} features, the run {len(run.filters)}"
        )
        return None
    return source

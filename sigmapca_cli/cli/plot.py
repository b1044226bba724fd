"""`sigmapca plot RUN`: figures of a run, PNG and PDF."""

import typer

# The names that figures.run draws, which is not imported for a help text.
FIGURES = ("filters", "curves", "spectrum", "histograms", "signals", "scatter", "certificate")
WHAT = f"{', '.join(FIGURES)}; repeatable."


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("plot", help="Draw a run: filters, curves, spectrum (PNG, PDF).")(plot)


def plot(
    run: str = typer.Argument("last", help="A run: folder, name, beginning of its hash, or last."),
    what: list[str] = typer.Option(None, "--what", help=WHAT),
    output: str = typer.Option(None, "--output", "-o", help="Folder for the files; default: <run>/figures."),
    force: bool = typer.Option(False, "--force", help="Replace files that exist."),
) -> None:
    """Write the figures that suit the run, or those named, and say where they are."""
    from pathlib import Path

    from sigmapca_cli.cli.opening import open_run
    from sigmapca_cli.cli.outputs import claim, drawings, files_of_run
    from sigmapca_cli.data import build
    from sigmapca_cli.data.stored import data_config
    from sigmapca_cli.figures.run import plot_run
    from sigmapca_cli.storage.find import shortened
    from sigmapca_cli.system.errors import InputError

    found = open_run(run)
    folder = Path(output) if output else found.folder / "figures"
    if output:
        claim(drawings(folder, what or FIGURES), reads=files_of_run(found), force=force)
    source = None
    try:
        source = build(data_config(found.config))
    except InputError as problem:
        # Filters, curves and spectrum need no data: a run copied from a cluster can still be drawn.
        print(f"without the data, so fewer figures: {problem}")
    if source is not None and found.filters is not None and source.p != len(found.filters):
        print(
            f"without the data, so fewer figures: they have {source.p} features, the run {len(found.filters)}"
        )
        source = None
    for path in plot_run(found, folder, what or None, source=source):
        print(shortened(path))

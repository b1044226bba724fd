"""`sigmapca plot RUN`: figures of a run, PNG and PDF."""

import typer


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("plot", help="Draw a run's filters, curves and σ spectrum (PNG and PDF).")(plot)


def plot(
    run: str = typer.Argument("last", help="A run: folder, name, beginning of its hash, or last."),
    what: list[str] = typer.Option(None, "--what", help="Only this figure (may be repeated)."),
    output: str = typer.Option(None, "--output", "-o", help="Folder for the files; default: <run>/figures."),
) -> None:
    """Write the figures and say where they are."""
    from pathlib import Path

    from sigmapca_cli.errors import InputError
    from sigmapca_cli.figures.run import plot_run
    from sigmapca_cli.runs.find import resolve, shortened
    from sigmapca_cli.runs.read import Run

    found = Run.open(resolve(run))
    if found.filters is None:
        raise InputError(f"{found.folder}: this run has no filters yet (status {found.status})")
    for path in plot_run(found, Path(output) if output else found.folder / "figures", what or None):
        print(shortened(path))

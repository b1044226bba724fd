"""`sigmapca report RUN_OR_SWEEP…`: one HTML file about runs."""

from pathlib import Path

import typer

from sigmapca_cli.cli.outputs import claim
from sigmapca_cli.system.errors import InputError


def report(
    runs: list[str] = typer.Argument(
        ["last"], metavar="[RUN...]", help="Runs, or folders that hold runs (a sweep)."
    ),
    output: str = typer.Option(
        None,
        "--output",
        "-o",
        metavar="FILE",
        help="Default: report.html in the run's or the sweep's folder.",
    ),
    force: bool = typer.Option(False, "--force", help="Replace the file when it exists."),
) -> None:
    """Write the file and say where it is."""
    if output and Path(output).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{output}: a report is an HTML file; give a name that ends in .html")
    from sigmapca_cli.report.build import write_report
    from sigmapca_cli.storage.find import shortened

    target = Path(output) if output else default_path(runs)
    if output or len(runs) > 1:  # an older report within a folder of runs is replaced without asking
        claim(target, force=force)
    path = write_report(runs, target)
    print(f"{shortened(path)}  {path.stat().st_size / 1e6:.2f} MB")


def default_path(runs: list[str]) -> Path:
    """Beside the run or the sweep; for several of them here."""
    from sigmapca_cli.storage.find import resolve

    if len(runs) > 1:
        return Path("report.html")
    folder = Path(runs[0])
    return (folder if folder.is_dir() else resolve(runs[0])) / "report.html"

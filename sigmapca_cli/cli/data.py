"""`sigmapca download` and `sigmapca data FILE`."""

import typer

from sigmapca_cli.cli.outputs import claim
from sigmapca_cli.cli.tables import print_json
from sigmapca_cli.system.errors import InputError


def download(
    name: str = typer.Argument(..., help="cifar10, cifar100 or mnist."),
    folder: str = typer.Option(None, "--folder", help="Default: $SIGMAPCA_DATA, else data/."),
) -> None:
    """Fetch with a progress bar, check, move into place."""
    import sys
    from pathlib import Path

    from sigmapca_cli.data.download import fetch_dataset
    from sigmapca_cli.data.locate import data_roots

    root = Path(folder) if folder else data_roots()[-1]
    if not sys.stderr.isatty():
        print(fetch_dataset(name, root))
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    with Progress(BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)
        path = fetch_dataset(name, root, lambda done, total: bar.update(task, completed=done, total=total))
    print(path)


def data(
    path: str = typer.Argument(..., metavar="FILE", help="A file, folder or pattern that data= reads."),
    keys: list[str] = typer.Argument(None, metavar="data.KEY=VALUE", help="How it is read, as in train."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object."),
    components: bool = typer.Option(
        False, "--components", help="Eigenvalues, and how many components by several rules."
    ),
    figure: str = typer.Option(
        None,
        "--figure",
        metavar="STEM",
        help="Draw a mosaic, the signals, or with --components the scree: STEM.png, .pdf.",
    ),
    key: str = typer.Option(None, "--key", help="npz, mat: which variable."),
    dataset: str = typer.Option(None, "--dataset", help="h5: which data set."),
    force: bool = typer.Option(False, "--force", help="Replace figures that exist."),
) -> None:
    """Describe it."""
    from sigmapca_cli.cli.apply import as_options, changes
    from sigmapca_cli.cli.data_page import component_lines, page
    from sigmapca_cli.cli.halves import halves
    from sigmapca_cli.data.describe.describe import describe, silence_warnings
    from sigmapca_cli.data.readers.remembered import remembering
    from sigmapca_cli.figures.save import targets

    if figure:
        claim(targets(figure), reads=[path], force=force)
    options = changes(keys, key, dataset)
    with remembering():
        try:
            facts, suggestion = describe(path, **options)
        except InputError as problem:
            raise InputError(as_options(str(problem))) from None
        if not components:
            facts |= halves(facts, suggestion)
    if as_json:
        print_json(facts)
    elif components:
        print("\n".join(component_lines(facts)))
    else:
        print("\n".join(page(facts)))
    if figure and components:
        from sigmapca_cli.figures.data import plot_eigenvalues

        print("\n".join(map(str, plot_eigenvalues(facts, path, figure))))
    elif figure:
        from sigmapca_cli.figures.data import plot_data

        with silence_warnings():  # what there is to say has been said
            files = plot_data(path, figure, **options)
        print("\n".join(map(str, files)))

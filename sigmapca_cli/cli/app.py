"""The Typer application: one thin file a command, imported when it runs."""

import typer

from sigmapca_cli import __version__
from sigmapca_cli.cli import (
    apply,
    compare,
    data,
    evaluate,
    loadings,
    log,
    models,
    partial,
    path,
    plot,
    prepare,
    report,
    reproduce,
    rerun,
    runs,
    sample,
    show,
    train,
)

app = typer.Typer(
    name="sigmapca",
    no_args_is_help=True,
    add_completion=False,  # Typer's own takes `model=nl` apart and puts a space behind `lr=`
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn identifiable linear transformations: linear PCA, nonlinear PCA, linear ICA (σ-PCA).",
    epilog="Errors are one line; add --debug for a traceback. Exit status: 0 done, 1 failed, 2 bad usage or "
    "input, 75 stopped and resumable, 130 Ctrl-C.",
)


def print_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        print(f"sigmapca {__version__}")
        raise typer.Exit


def install_completion(shell: str | None) -> None:
    """Install completion and leave."""
    if shell:
        from sigmapca_cli.cli.completion_scripts import install

        print(install(shell))
        raise typer.Exit


def show_completion(shell: str | None) -> None:
    """Print the script and leave."""
    if shell:
        from sigmapca_cli.cli.completion_scripts import script

        print(script(shell), end="")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=print_version, is_eager=True, help="Print the version."
    ),
    install: str = typer.Option(
        None,
        "--install-completion",
        metavar="SHELL",
        callback=install_completion,
        is_eager=True,
        help="Complete with TAB in bash, zsh or fish.",
    ),
    show: str = typer.Option(
        None,
        "--show-completion",
        metavar="SHELL",
        callback=show_completion,
        is_eager=True,
        help="Print the script that does it.",
    ),
) -> None:
    """Options that stand before the command."""


for module in (
    train,
    rerun,
    runs,
    show,
    plot,
    report,
    evaluate,
    compare,
    log,
    apply,
    loadings,
    models,
    prepare,
    partial,
    data,
    sample,
    path,
    reproduce,
):
    module.add(app)

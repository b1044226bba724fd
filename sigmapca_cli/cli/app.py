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
from sigmapca_cli.cli.static_help import TrainCommand

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


COMMANDS = (
    (train.train, "Train a model and write its run directory."),
    (rerun.rerun, "Repeat a run; say whether the result is identical."),
    (runs.runs, "List runs, newest last."),
    (show.show, "Show one run with its filters in the terminal."),
    (plot.plot, "Draw a run: filters, scree, scores … (PNG, PDF, SVG)."),
    (report.report, "Write one HTML file about a run or a sweep."),
    (evaluate.evaluate, "Compute the metrics of runs and store them."),
    (compare.compare, "Match the filters of two or more runs."),
    (compare.stability, "Which components come back in every run (ICASSO)."),
    (log.log, "Show stored runs in TensorBoard, MLflow, W&B."),
    (apply.transform, "Write components of new rows, each of variance 1."),
    (apply.reconstruct, "Write rows back, or without some components."),
    (apply.export, "Write a solution for other programs: ONNX, MNE, npz …"),
    (loadings.loadings, "Write or print the loadings: features × components."),
    (models.models, "List the methods with their equations."),
    (prepare.extract_patches, "Prepare patches of images as one file."),
    (prepare.mix_signals, "Prepare mixed signals with their truth."),
    (prepare.sample_points, "Prepare rotated 2-D points."),
    (partial.partial, "Write the sums of a part of the rows, for data=moments."),
    (data.download, "Fetch cifar10, cifar100 or mnist; resumes."),
    (data.data, "Show a data file, and how to train on it."),
    (sample.sample, "Write data of a field, with the truth beside."),
    (path.path, "Follow τ, λ or a on two halves of the data."),
    (reproduce.reproduce, "Reproduce the paper's figures, with verdicts."),
)
"""The commands in the order of the help, which names them by their functions."""

for command, words in COMMANDS:
    app.command(help=words, cls=TrainCommand if command is train.train else None)(command)

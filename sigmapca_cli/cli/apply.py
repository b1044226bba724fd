"""`transform`, `reconstruct` and `export`: a run's solution applied to new arrays, or handed to other programs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer


def add(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("transform", help="Write the components of new rows.")(transform)
    app.command("reconstruct", help="Write the rows back from components.")(reconstruct)
    app.command("export", help="Write a solution as .npz, .safetensors or .onnx.")(export)


RUN = typer.Argument(..., help="A run: folder, name, beginning of its hash, or last.")
INPUT = typer.Argument(..., metavar="INPUT", help="What data= reads: a table, pictures, WAV files, a folder.")
COMPONENTS = typer.Argument(..., metavar="INPUT", help="Components: npy, csv, h5 …")
OUTPUT = typer.Argument(..., metavar="OUTPUT", help="npy, h5 (data set `x`), csv or wav, by its suffix.")
KEYS = typer.Argument(None, metavar="data.KEY=VALUE", help="Where the file differs from the training data.")
KEY = typer.Option(None, "--key", help="npz, mat: which variable.")
DATASET = typer.Option(None, "--dataset", help="h5: which data set.")
FORCE = typer.Option(False, "--force", help="Replace the file when it exists.")


def transform(
    run: str = RUN, input: str = INPUT, output: str = OUTPUT, keys: list[str] = KEYS, key: str = KEY,
    dataset: str = DATASET, force: bool = FORCE,
) -> None:  # fmt: skip
    """components = ((raw − mean)/scale [@ whitening]) @ encoder, streamed; the file is read as the run's data were."""
    from sigmapca_cli.cli.opening import open_run
    from sigmapca_cli.cli.outputs import Form, claim, files_of_run
    from sigmapca_cli.solution.new_rows import new_source
    from sigmapca_cli.solution.solution import Solution, told_incomplete
    from sigmapca_cli.system.errors import InputError

    opened = open_run(run)
    claim(output, reads=[input], keeps=files_of_run(opened), force=force)
    solution = Solution.of(opened)
    try:
        source = new_source(opened, input, changes(keys, key, dataset), aligned=True)
    except InputError as problem:  # here they are options
        raise InputError(as_options(str(problem))) from None
    k = solution.forward.shape[1]
    names = [f"component_{i + 1}" for i in range(k)] if opened.names else None
    form = Form(source.n, k, names, source.labels, source.sample_rate)
    write(solution.stream(source), output, form)
    if source.incomplete is not None:
        print(f"  {told_incomplete(int(source.incomplete.sum()))}")


def reconstruct(
    run: str = RUN, input: str = COMPONENTS, output: str = OUTPUT, keys: list[str] = KEYS, key: str = KEY,
    dataset: str = DATASET, force: bool = FORCE,
) -> None:  # fmt: skip
    """raw ≈ components @ decoder · scale + mean, streamed."""
    from sigmapca_cli.cli.opening import open_run
    from sigmapca_cli.cli.outputs import Form, claim, files_of_run
    from sigmapca_cli.data.matrix.arrays import build
    from sigmapca_cli.solution.new_rows import NewData
    from sigmapca_cli.solution.solution import ROWS, Solution
    from sigmapca_cli.system.errors import InputError

    opened = open_run(run)
    claim(output, reads=[input], keeps=files_of_run(opened), force=force)
    solution = Solution.of(opened)
    try:
        given = {"name": "array", "standardise": "none", **changes(keys, key, dataset)}
        source = build(NewData(path=input, **given))
    except InputError as problem:
        raise InputError(as_options(str(problem))) from None
    if source.p != len(solution.decoder):
        raise InputError(f"{input}: rows of {source.p} numbers, this run needs {len(solution.decoder)}")
    blocks = (solution.invert(y) for y in source.blocks(ROWS, raw=True))
    write(blocks, output, Form(source.n, len(solution.mean), opened.names, source.labels))


def changes(keys: list[str] | None, key: str | None, dataset: str | None) -> dict[str, Any]:
    """What the command says about the file, as fields of the data group."""
    from sigmapca_cli.cli.keys import data_keys

    options = {name: value for name, value in (("key", key), ("dataset", dataset)) if value}
    return {**data_keys(keys or []), **options}


def write(blocks: Iterable[Any], output: str, form: Any) -> None:
    """Write blocks of rows, aside and moved into place."""
    from sigmapca_cli.cli.outputs import writer

    with writer(Path(output), form) as append:
        for block in blocks:
            append(block)
    print(f"{output}: {form.n} × {form.k}")


def export(
    run: str = RUN,
    output: str = typer.Argument(..., metavar="FILE", help="NAME.npz, NAME.safetensors or NAME.onnx."),
    force: bool = FORCE,
) -> None:
    """Write the file."""
    from sigmapca_cli.cli.opening import open_run
    from sigmapca_cli.cli.outputs import claim, files_of_run
    from sigmapca_cli.solution.export import export as exported

    opened = open_run(run)
    claim(output, keeps=files_of_run(opened), force=force)
    print(exported(opened, output))


def as_options(text: str) -> str:
    """Words about keys of the configuration, for a command where they are arguments and options."""
    for key, option in (("data.path=", ""), ("data.key=", "--key "), ("data.dataset=", "--dataset ")):
        text = text.replace(key, option)
    return text.rstrip()

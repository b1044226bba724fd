"""`transform`, `reconstruct` and `export`: a run's solution applied to new arrays, or handed to other programs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from sigmapca_cli.cli.opening import open_run
from sigmapca_cli.cli.outputs import Form, claim, files_of_run, writer
from sigmapca_cli.system.errors import InputError

RUN = typer.Argument(..., help="A run: folder, name, beginning of its hash, or last.")
INPUT = typer.Argument(..., metavar="INPUT", help="What data= reads: a table, pictures, WAV files, a folder.")
COMPONENTS = typer.Argument(..., metavar="INPUT", help="Components: npy, csv, h5 …")
OUTPUT = typer.Argument(
    ..., metavar="OUTPUT", help="npy, h5 (data set `x`), csv, parquet or wav, by its suffix."
)
KEYS = typer.Argument(None, metavar="data.KEY=VALUE", help="Where the file differs from the training data.")
KEY = typer.Option(None, "--key", help="npz, mat: which variable.")
DATASET = typer.Option(None, "--dataset", help="h5: which data set.")
WITHOUT = typer.Option(
    None, "--without", metavar="1,3", help="Remove these components; INPUT is then rows, as for transform."
)
FORCE = typer.Option(False, "--force", help="Replace the file when it exists.")


def transform(
    run: str = RUN, input: str = INPUT, output: str = OUTPUT, keys: list[str] = KEYS, key: str = KEY,
    dataset: str = DATASET, force: bool = FORCE,
) -> None:  # fmt: skip
    """components = ((raw − mean)/scale [@ whitening]) @ encoder, streamed; the file is read as the run's data were."""
    opened, solution = opened_for(run, input, output, force)
    source = rows_of(opened, input, changes(keys, key, dataset))
    k = solution.forward.shape[1]
    names = component_names(k) if opened.names else None
    form = Form(source.n, k, names, index_of(opened, input, output, source), source.sample_rate)
    write_rows(solution.stream(source), output, form, source)


def reconstruct(
    run: str = RUN, input: str = COMPONENTS, output: str = OUTPUT, keys: list[str] = KEYS, key: str = KEY,
    dataset: str = DATASET, force: bool = FORCE, without: str = WITHOUT,
) -> None:  # fmt: skip
    """raw ≈ components @ decoder · scale + mean, streamed; or raw rows less some components."""
    if without is not None:
        remove(run, input, output, keys, key, dataset, without, force)
        return
    from sigmapca_cli.solution.new_rows import NewData
    from sigmapca_cli.solution.solution import ROWS_AT_ONCE

    opened, solution = opened_for(run, input, output, force)
    try:
        given = {"name": "array", "standardise": "none", **changes(keys, key, dataset)}
        source = build_components(NewData(path=input, **given), len(solution.decoder))
    except InputError as problem:
        raise InputError(as_options(str(problem))) from None
    if source.p != len(solution.decoder):
        raise InputError(f"{input}: rows of {source.p} numbers, this run needs {len(solution.decoder)}")
    blocks = (solution.invert(y) for y in source.blocks(ROWS_AT_ONCE, raw=True))
    write(blocks, output, Form(source.n, len(solution.mean), opened.names, labelled(source)))


def build_components(cfg: Any, k: int) -> Any:
    """The components in a file: by the names that transform writes beside those of rows, else all columns."""
    from dataclasses import replace

    from sigmapca_cli.data.matrix.arrays import build

    try:
        return build(replace(cfg, expected=component_names(k)))
    except InputError:
        return build(cfg)


def component_names(k: int) -> list[str]:
    """Names of the columns that hold components."""
    return [f"component_{i + 1}" for i in range(k)]


def labelled(source: Any) -> dict[str, Any]:
    """The index that was left out of a table, under no name."""
    return {} if source.labels is None else {"": source.labels}


def index_of(run: Any, input: str, output: str, source: Any) -> dict[str, Any]:
    """What rows are called, for a table with names: the index of the file, and columns that training left out."""
    from sigmapca_cli.solution.new_rows import row_names

    if Path(output).suffix not in (".csv", ".parquet"):
        return {}
    return labelled(source) | row_names(run, input, source.n)


def remove(
    run: str, input: str, output: str, keys: list[str], key: str, dataset: str, without: str, force: bool
) -> None:
    """Write rows, read as for transform, less the components that `without` numbers from 1: x − Σ y_i b_i."""
    opened, solution = opened_for(run, input, output, force)
    removed = numbered(without, len(solution.back))
    source = rows_of(opened, input, changes(keys, key, dataset))
    index = index_of(opened, input, output, source)
    form = Form(source.n, len(solution.mean), opened.names, index, source.sample_rate, as_loud=True)
    write_rows(solution.stream_without(source, removed), output, form, source)


def numbered(words: str, k: int) -> list[int]:
    """Return components that a user numbers from 1, as in "1,3", counted from 0. Raise InputError for others."""
    parts = [part.strip() for part in words.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= k for part in parts) or len(set(parts)) < len(parts):
        raise InputError(f"--without {words}: give components from 1 to {k}, each once, as in --without 1,3")
    return [int(part) - 1 for part in parts]


def changes(keys: list[str] | None, key: str | None, dataset: str | None) -> dict[str, Any]:
    """What the command says about the file, as fields of the data group."""
    from sigmapca_cli.cli.keys import data_keys

    options = {name: value for name, value in (("key", key), ("dataset", dataset)) if value}
    return {**data_keys(keys or []), **options}


def write(blocks: Iterable[Any], output: str, form: Any) -> None:
    """Write blocks of rows, aside and moved into place."""
    with writer(Path(output), form) as append:
        for block in blocks:
            append(block)
    print(f"{output}: {form.n} × {form.k}")


def opened_for(run: str, input: str, output: str, force: bool) -> tuple[Any, Any]:
    """Return a run and its solution, once a file that is made from another one may be written."""
    from sigmapca_cli.solution.solution import Solution

    opened = open_run(run)
    claim(output, reads=[input], keeps=files_of_run(opened), force=force)
    return opened, Solution.of(opened)


def rows_of(run: Any, input: str, given: dict[str, Any]) -> Any:
    """Return the rows of a file, read as the run's own. given: what the command says about the file."""
    from sigmapca_cli.solution.new_rows import new_source

    try:
        return new_source(run, input, given, aligned=True)
    except InputError as problem:  # here they are options
        raise InputError(as_options(str(problem))) from None


def write_rows(blocks: Iterable[Any], output: str, form: Any, source: Any) -> None:
    """Write what was made of the rows of a source, and say which of them are incomplete."""
    from sigmapca_cli.solution.solution import told_incomplete

    write(blocks, output, form)
    if source.incomplete is not None:
        print(f"  {told_incomplete(int(source.incomplete.sum()))}")


def export(
    run: str = RUN,
    output: str = typer.Argument(
        ..., metavar="FILE", help="NAME.npz, NAME.safetensors, NAME.onnx or NAME-ica.fif."
    ),
    force: bool = FORCE,
) -> None:
    """Write the file."""
    from sigmapca_cli.solution.export import export as exported

    opened = open_run(run)
    claim(output, keeps=files_of_run(opened), force=force)
    print(exported(opened, output))


def as_options(text: str) -> str:
    """Words about keys of the configuration, for a command where they are arguments and options."""
    for key, option in (("data.path=", ""), ("data.key=", "--key "), ("data.dataset=", "--dataset ")):
        text = text.replace(key, option)
    return text.rstrip()

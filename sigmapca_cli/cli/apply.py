"""`transform`, `reconstruct` and `export`: a run's solution applied to new arrays, or handed to other programs."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer


def add(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("transform", help="Write the components of new rows.")(transform)
    app.command("reconstruct", help="Write the rows back from components.")(reconstruct)
    app.command("export", help="Write a solution as .npz, .safetensors or .onnx.")(export)


RUN = typer.Argument(..., help="A run: folder, name, beginning of its hash, or last.")
INPUT = typer.Argument(..., metavar="INPUT", help="npy, npz, csv, tsv, h5, parquet, mat or a prepared file.")
OUTPUT = typer.Argument(..., metavar="OUTPUT", help="npy, h5 (data set `x`) or csv, by its suffix.")
KEY = typer.Option(None, "--key", help="npz, mat: which variable.")
DATASET = typer.Option(None, "--dataset", help="h5: which data set.")
FORCE = typer.Option(False, "--force", help="Replace the file when it exists.")
ROWS = 8192


def transform(
    run: str = RUN, input: str = INPUT, output: str = OUTPUT, key: str = KEY, dataset: str = DATASET,
    force: bool = FORCE,
) -> None:  # fmt: skip
    """components = ((raw − mean)/scale [@ whitening]) @ encoder, streamed."""
    mean, forward, _ = maps(run)
    stream(input, output, len(mean), forward.shape[1], lambda x: (x - mean) @ forward, (key, dataset), force)


def reconstruct(
    run: str = RUN, input: str = INPUT, output: str = OUTPUT, key: str = KEY, dataset: str = DATASET,
    force: bool = FORCE,
) -> None:  # fmt: skip
    """raw ≈ components @ decoder · scale + mean, streamed."""
    mean, _, back = maps(run)
    stream(input, output, back.shape[0], len(mean), lambda y: y @ back + mean, (key, dataset), force)


def export(
    run: str = RUN,
    output: str = typer.Argument(..., metavar="FILE", help="NAME.npz, NAME.safetensors or NAME.onnx."),
    force: bool = FORCE,
) -> None:
    """Write the file."""
    from sigmapca_cli.cli.opening import open_run
    from sigmapca_cli.export import export as exported

    refuse_existing(output, force)
    print(exported(open_run(run), output))


def maps(name: str) -> Any:
    """(mean, forward, back) of a run."""
    from sigmapca_cli.cli.opening import open_run
    from sigmapca_cli.export import affine, solution_arrays

    return affine(solution_arrays(open_run(name)))


def refuse_existing(output: str, force: bool) -> None:
    """What stands under the name of the output may be the user's data."""
    from sigmapca_cli.errors import InputError

    if Path(output).exists() and not force:
        raise InputError(f"{output}: exists; give another name, or --force to replace it")


def stream(
    input: str, output: str, wide: int, out_wide: int, function: Any, which: tuple, force: bool
) -> None:
    """Read INPUT block by block, map it, write OUTPUT aside and move it into place."""
    from sigmapca_cli.errors import InputError
    from sigmapca_cli.sources import build
    from sigmapca_cli.sources.config import DataConfig

    target = Path(output)
    refuse_existing(output, force)
    options = DataConfig(name="array", path=input, standardise="none", key=which[0], dataset=which[1])
    try:
        source = build(options)
    except InputError as problem:  # here they are options
        raise InputError(as_options(str(problem))) from None
    if source.p != wide:
        raise InputError(f"{input}: rows of {source.p} numbers, this run needs {wide}")
    with writer(target, source.n, out_wide) as write:
        for block in source.raw_blocks(ROWS):
            write(function(block))
    print(f"{target}: {source.n} × {out_wide}")


def as_options(text: str) -> str:
    """Words about keys of the configuration, for a command where they are arguments and options."""
    for key, option in (("data.path=", ""), ("data.key=", "--key "), ("data.dataset=", "--dataset ")):
        text = text.replace(key, option)
    return text.rstrip()


@contextlib.contextmanager
def writer(target: Path, n: int, k: int) -> Iterator[Any]:
    """Yields a function that appends (m, k) float64 blocks; the file appears whole or not at all."""
    from sigmapca_cli.errors import InputError

    kinds = {".npy": npy, ".h5": hdf5, ".hdf5": hdf5, ".csv": csv}
    if target.suffix not in kinds:
        raise InputError(f"{target}: cannot write {target.suffix or 'this'}; use one of {', '.join(kinds)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with kinds[target.suffix](aside, n, k) as write:
            yield write
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def npy(path: Path, n: int, k: int) -> Iterator[Any]:
    """float64, C order, written from start to end."""
    from numpy.lib import format as layout

    with open(path, "wb") as file:
        layout.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (n, k)})
        yield lambda block: file.write(block.astype("<f8").tobytes())


@contextlib.contextmanager
def hdf5(path: Path, n: int, k: int) -> Iterator[Any]:
    """One data set `x`."""
    import h5py

    # Nobody else knows this file yet; and a lock is what some network file systems do not have.
    with h5py.File(path, "w", locking=False) as file:
        data, place = file.create_dataset("x", (n, k), "f8"), [0]

        def write(block: Any) -> None:
            data[place[0] : place[0] + len(block)] = block
            place[0] += len(block)

        yield write


@contextlib.contextmanager
def csv(path: Path, n: int, k: int) -> Iterator[Any]:
    """Comma-separated, every digit kept."""
    import numpy as np

    with open(path, "w", encoding="ascii") as file:
        yield lambda block: np.savetxt(file, block, fmt="%.17g", delimiter=",")

"""What commands write: where they may, and rows written block by block, whole or not at all."""

import contextlib
import csv as csv_module
import fnmatch
import glob
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sigmapca_cli.system.errors import InputError


@dataclass
class Form:
    """What is written: (n, k) numbers, names of the columns where there are any, what rows are called, sample rate.

    index: columns of text that stand before the numbers, by name.
    """

    n: int
    k: int
    names: Sequence[str] | None = None
    index: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rate: float | None = None
    as_loud: bool = False  # of a sound: values between -1 and 1, of the loudness of the input


def claim(
    outputs: str | Path | Iterable[str | Path],
    *,
    reads: Sequence[Any] = (),
    keeps: Sequence[Any] = (),
    force: bool = False,
) -> None:
    """Refuse files that a command must not write: called by every command before it computes.

    reads: what it reads, files, folders, patterns, lists of them (as data.path has them), or None; keeps: likewise,
    what it does not read. force: whether the user allows to replace a file. Raise InputError if an output is one of
    these files or would be read as one, is a folder, exists without `force`, or its folder is missing.
    """
    for output in map(Path, [outputs] if isinstance(outputs, str | Path) else outputs):
        places = [*_flat(reads), *(_flat(keeps) if output.exists() else ())]
        if (place := next((p for p in map(str, places) if _holds(p, output)), None)) is not None:
            raise InputError(f"{output}: would change {place}, which is input; write to another place")
        if output.is_dir():
            raise InputError(f"{output}: is a folder; give the name of a file")
        if output.exists() and not force:
            raise InputError(f"{output}: exists; give another name, or --force to replace it")
        if not output.parent.is_dir():
            raise without_folder(output, output.parent)


def without_folder(place: Path, folder: Path) -> Exception:
    """Return the error of a place whose folder is missing: with the command that makes it, if one can."""
    if (file := next((above for above in (folder, *folder.parents) if above.is_file()), None)) is not None:
        return InputError(f"{place}: {file} is a file, not a folder: give another place")
    return InputError(f"{place}: its folder is missing: mkdir -p {shlex.quote(str(folder))}")


def drawings(folder: Path, names: Iterable[str], formats: tuple[str, ...] | None = None) -> list[Path]:
    """Return the files of figures in a folder, which is made if the one above it is there."""
    from sigmapca_cli.figures.save import make_folder, targets
    from sigmapca_cli.figures.style import FORMATS

    if not folder.parent.is_dir():
        raise without_folder(folder, folder)
    make_folder(folder)
    return [file for name in names for file in targets(folder / name, formats or FORMATS)]


def files_of_run(run: Any) -> list[Any]:
    """Return what a command that takes a run must not replace: the run's own files, and its data."""
    from sigmapca_cli.storage import format as fmt

    own = (fmt.RUN_FILE, fmt.CHECKPOINT_FILE, fmt.METRICS_FILE)
    return [run.path, *(run.folder / name for name in own), run.config.get("data", {}).get("path")]


def _flat(places: Any) -> Iterator[Any]:
    """Yield the single places of nested lists."""
    for place in places:
        if isinstance(place, str | Path):
            yield place
        elif place is not None:
            yield from _flat(place)


def _holds(place: str, output: Path) -> bool:
    """Return whether a file is, or would be, one of those that a path, folder or pattern stands for."""
    found = Path(place).expanduser()
    target = output.resolve()
    if found.is_dir():
        inside = (Path(top, name) for top, _, names in os.walk(found) for name in names)
        return target.is_relative_to(found.resolve()) or _is_any(output, inside)
    if found.exists() or not glob.has_magic(place):
        return target == found.resolve() or _is_any(output, [found])
    return fnmatch.fnmatch(str(target), os.path.abspath(found)) or _is_any(
        output, map(Path, glob.iglob(str(found), recursive=True))
    )


def _is_any(output: Path, files: Iterable[Path]) -> bool:
    """Return whether an existing file is one of these under another name: a link, or the same inode."""
    if not output.exists():
        return False
    one = output.stat()
    return any(os.path.samestat(one, file.stat()) for file in files if file.exists())


@contextlib.contextmanager
def writer(target: Path, form: Form) -> Iterator[Any]:
    """Yields a function that appends (m, k) float64 blocks; the file appears whole or not at all."""
    from sigmapca_cli.system.atomic import replacing  # takes time, and the list of commands needs none

    if target.suffix not in WRITERS:
        raise InputError(f"{target}: cannot write {target.suffix or 'this'}; use one of {', '.join(WRITERS)}")
    with replacing(target) as aside, WRITERS[target.suffix](aside, form) as write:
        yield write


@contextlib.contextmanager
def npy(path: Path, form: Form) -> Iterator[Any]:
    """float64, C order, written from start to end."""
    from numpy.lib import format as layout

    with open(path, "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (form.n, form.k)}
        layout.write_array_header_1_0(file, header)
        yield lambda block: file.write(block.astype("<f8").tobytes())


@contextlib.contextmanager
def hdf5(path: Path, form: Form) -> Iterator[Any]:
    """One data set `x`; its second dimension has the names as a scale."""
    import h5py

    # Nobody else knows this file yet; and a lock is what some network file systems do not have.
    with h5py.File(path, "w", locking=False) as file:
        data, place = file.create_dataset("x", (form.n, form.k), "f8"), [0]
        if form.names is not None:
            file["column"] = list(form.names)
            file["column"].make_scale("column")
            data.dims[1].attach_scale(file["column"])

        def write(block: Any) -> None:
            data[place[0] : place[0] + len(block)] = block
            place[0] += len(block)

        yield write


@contextlib.contextmanager
def csv(path: Path, form: Form) -> Iterator[Any]:
    """Comma-separated, every digit kept; names in the first line where there are any, and the index before the numbers.

    Names and the index stay as they are, so that the program reads its own file.
    """
    with open(path, "w", encoding="utf-8", newline="") as file:
        out, place = csv_module.writer(file, lineterminator="\n"), [0]
        if form.names is not None:
            out.writerow([*form.index, *form.names])

        def write(block: Any) -> None:
            texts = [[f"{value:.17g}" for value in row] for row in block.tolist()]
            if form.names is not None and form.index:
                rows = slice(place[0], place[0] + len(block))
                called = zip(*(column[rows] for column in form.index.values()), strict=True)
                texts = [[*labels, *row] for labels, row in zip(called, texts, strict=True)]
            out.writerows(texts)
            place[0] += len(block)

        yield write


@contextlib.contextmanager
def wav(path: Path, form: Form) -> Iterator[Any]:
    """One channel a column, 16 bits; components have no loudness of their own, so each is as loud as can be."""
    import numpy as np
    from scipy.io import wavfile

    if form.rate is None:
        raise InputError("the input is no sound: write .npy, .h5 or .csv")
    blocks: list[Any] = []
    yield blocks.append
    sound = np.concatenate(blocks)
    peak = np.abs(sound).max(axis=0) if not form.as_loud else np.maximum(np.abs(sound).max(), 1.0)
    scaled = np.rint(sound / np.where(peak > 0, peak, 1.0) * 32767).astype(np.int16)
    wavfile.write(path, round(form.rate), scaled)


@contextlib.contextmanager
def parquet(path: Path, form: Form) -> Iterator[Any]:
    """Columns with names; the index is that of pandas, which other programs see as columns."""
    import numpy as np
    import pandas

    from sigmapca_cli.system.packages import required

    required(f"{path}: writing Parquet", "pyarrow")
    blocks: list[Any] = []
    yield blocks.append
    names = form.names or [str(i) for i in range(form.k)]
    table = pandas.DataFrame(np.concatenate(blocks), columns=list(names))
    if form.index:
        called = [np.asarray(column) for column in form.index.values()]
        table.index = pandas.MultiIndex.from_arrays(called, names=[name or None for name in form.index])
    table.to_parquet(path)


WRITERS = {".parquet": parquet, ".npy": npy, ".h5": hdf5, ".hdf5": hdf5, ".csv": csv, ".wav": wav}

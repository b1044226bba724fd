"""Files that `transform` and `reconstruct` write block by block: whole or not at all."""

import contextlib
import csv as csv_module
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigmapca_cli.atomic import replacing
from sigmapca_cli.text import csv_cell


@dataclass
class Form:
    """What is written: (n, k) numbers, the names of the columns where there are any, labels of rows, sample rate."""

    n: int
    k: int
    names: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    rate: int | None = None


def refuse_existing(output: str, force: bool) -> None:
    """What stands under the name of the output may be the user's data."""
    from sigmapca_cli.errors import InputError

    if Path(output).exists() and not force:
        raise InputError(f"{output}: exists; give another name, or --force to replace it")


@contextlib.contextmanager
def writer(target: Path, form: Form) -> Iterator[Any]:
    """Yields a function that appends (m, k) float64 blocks; the file appears whole or not at all."""
    from sigmapca_cli.errors import InputError

    if target.suffix not in KINDS:
        raise InputError(f"{target}: cannot write {target.suffix or 'this'}; use one of {', '.join(KINDS)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as aside, KINDS[target.suffix](aside, form) as write:
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
    """Comma-separated, every digit kept; names in the first line and labels in the first column where there are any."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        out, place = csv_module.writer(file, lineterminator="\n"), [0]
        if form.names is not None:
            out.writerow([*([""] if form.labels is not None else []), *map(csv_cell, form.names)])

        def write(block: Any) -> None:
            texts = [[f"{value:.17g}" for value in row] for row in block.tolist()]
            if form.names is not None and form.labels is not None:
                labels = form.labels[place[0] : place[0] + len(block)]
                texts = [[str(csv_cell(label)), *row] for label, row in zip(labels, texts, strict=True)]
            out.writerows(texts)
            place[0] += len(block)

        yield write


@contextlib.contextmanager
def wav(path: Path, form: Form) -> Iterator[Any]:
    """One channel a component, 16 bits; components have no loudness of their own, so each is as loud as can be."""
    import numpy as np
    from scipy.io import wavfile

    from sigmapca_cli.errors import InputError

    if form.rate is None:
        raise InputError("the input is no sound: write .npy, .h5 or .csv")
    blocks: list[Any] = []
    yield blocks.append
    sound = np.concatenate(blocks)
    peak = np.abs(sound).max(axis=0)
    scaled = np.rint(sound / np.where(peak > 0, peak, 1.0) * 32767).astype(np.int16)
    wavfile.write(path, form.rate, scaled)


KINDS = {".npy": npy, ".h5": hdf5, ".hdf5": hdf5, ".csv": csv, ".wav": wav}

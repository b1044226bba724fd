"""Small valid files of every format that is read, as bytes: what the fuzzer takes apart."""

import gzip
import io
import os
import pickle
import struct
import tarfile
import tempfile
import wave
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from composing import composed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 4))


def npy(array: np.ndarray, pickled: bool = False) -> bytes:
    """One array as .npy; with `pickled`, of Python objects."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickled)
    return file.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive, of which an .npz is one kind."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(members: dict[str, bytes], mode: str = "w:gz") -> bytes:
    """A tar archive."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def idx(shape: tuple[int, ...] = (3, 28, 28), code: int = 8, items: int | None = None) -> bytes:
    """An IDX file; `items` values, whatever the header says."""
    count = int(np.prod(shape)) if items is None else items
    head = bytes([0, 0, code, len(shape)]) + b"".join(struct.pack(">I", side) for side in shape)
    return head + RNG.integers(0, 256, count).astype(np.uint8).tobytes()


def cifar_python(protocol: int = 2) -> bytes:
    """A pickled batch of three images."""
    batch = {
        b"data": RNG.integers(0, 256, (3, 3072)).astype(np.uint8),
        b"labels": [1, 2, 3],
        b"batch_label": b"x",
    }
    return pickle.dumps(batch, protocol)


def cifar_binary() -> bytes:
    """Three records."""
    return b"".join(bytes([i]) + RNG.integers(0, 256, 3072).astype(np.uint8).tobytes() for i in range(3))


def hdf5(**options: object) -> bytes:
    """One data set `x`."""
    import h5py

    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        file.create_dataset("x", data=X, **options)
        file.flush()
        return file.id.get_file_image()


def mat() -> bytes:
    """A MATLAB 5 file."""
    from scipy.io import savemat

    file = io.BytesIO()
    savemat(file, {"x": X}, do_compression=True)
    return file.getvalue()


def parquet() -> bytes:
    """Two columns of numbers."""
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": X[:, 0], "b": X[:, 1]}), file)
    return file.getvalue()


def wav(channels: int = 2) -> bytes:
    """A tenth of a second of noise."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((channels, 2, 8000, 0, "NONE", ""))
        sound.writeframes(RNG.integers(-9999, 9999, 800 * channels).astype("<i2").tobytes())
    return file.getvalue()


def image(kind: str) -> bytes:
    """A small colour picture."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (24, 24, 3)).astype(np.uint8)).save(file, kind)
    return file.getvalue()


def written(make: Callable[[Path], Path]) -> bytes:
    """The bytes of a file that a writer of the program leaves in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        return make(Path(folder)).read_bytes()


def prepared() -> bytes:
    """A file of `sample-points`."""
    from sigmapca_cli.data.cache.preparing import prepare
    from sigmapca_cli.data.config import DataConfig

    return written(lambda folder: prepare(DataConfig(name="points", n=20), folder / "points.h5"))


@cache
def run_file() -> bytes:
    """The run.h5 of a short training run."""
    from sigmapca_cli.composition.job import job_of
    from sigmapca_cli.runner.run import run

    small = (
        "data=planted",
        "data.n=64",
        "data.p=6",
        "data.k=2",
        "data.group=1",
        "k=2",
        "steps=4",
        "threads=1",
    )

    def make(folder: Path) -> Path:
        return Path(run(job_of(composed(f"run_dir='{folder / 'run'}'", *small)))) / "run.h5"

    return written(make)


def examples(default: int) -> int:
    """Return how many inputs each kind gets: a few, or in `make fuzz` its share of SIGMAPCA_FUZZ."""
    total = int(os.environ.get("SIGMAPCA_FUZZ") or 0)
    return -(-total // (len(SEEDS) + len(PACKED))) if total else default


def checkpoint() -> bytes:
    """Two arrays and a setting."""
    from sigmapca_cli.storage.checkpoint import save

    def make(folder: Path) -> Path:
        save(
            folder / "checkpoint.h5", {"W": X, "step": np.array(3)}, {"a": 1}, config_hash="c", data_hash="d"
        )
        return folder / "checkpoint.h5"

    return written(make)


def feather() -> bytes:
    """A data frame with an index, as pandas writes it."""
    import pandas

    return written(lambda folder: framed(pandas.DataFrame(X, columns=list("abcd")), folder))


def framed(frame: Any, folder: Path) -> Path:
    """The frame as a Feather file."""
    frame.to_feather(folder / "x.feather")
    return folder / "x.feather"


def safetensors() -> bytes:
    """Two tensors, one of them a matrix."""
    from safetensors.numpy import save

    return save({"x": X, "bias": X[0].copy()})


def netcdf() -> bytes:
    """Packed values with a fill value, and names on a dimension scale."""
    import h5py

    def make(folder: Path) -> Path:
        with h5py.File(folder / "x.nc", "w") as file:
            file["x"] = (X * 100).astype(np.int16)
            file["x"].attrs.update(_FillValue=np.int16(-9999), scale_factor=0.01, add_offset=2.0, units="K")
            file["station"] = [b"Oslo", b"Rome", b"Bern", b"Kyiv"]
            file["station"].make_scale("station")
            file["x"].dims[1].attach_scale(file["station"])
        return folder / "x.nc"

    return written(make)


def pages() -> bytes:
    """A TIFF of two pages with an orientation."""
    from PIL import Image

    file = io.BytesIO()
    first, second = (Image.fromarray(RNG.integers(0, 256, (9, 11), dtype=np.uint8)) for _ in range(2))
    exif = Image.Exif()
    exif[0x0112] = 6
    first.save(file, "TIFF", save_all=True, append_images=[second], exif=exif)
    return file.getvalue()


TABLE = ",höhe,b,kind\n" + "\n".join(f'{i},{i * 0.5},{-i},"a{i % 2}"' for i in range(8)) + "\n"
CSV = "a,b,c\n" + "\n".join(f"{i},{i * 0.5},{-i}" for i in range(8)) + "\n"
METRICS = "".join(f'{{"step": {i}, "loss": {9 - i}.5, "lr": 0.01}}\n' for i in range(6)).encode()

# Reader, name of the file, and valid files to start from.
SEEDS: dict[str, tuple[str, Callable[[], list[bytes]]]] = {
    "npy": ("x.npy", lambda: [npy(X), npy(X.astype(">f4")), npy(np.asfortranarray(X)), npy(X.astype("f2"))]),
    "npz": ("x.npz", lambda: [zipped({"x.npy": npy(X)}), zipped({"x.npy": npy(X)}, zipfile.ZIP_STORED)]),
    "csv": ("x.csv", lambda: [CSV.encode(), CSV.replace(",", "\t").encode(), CSV.replace(",", " ").encode()]),
    "table": (
        "x.csv",
        lambda: [TABLE.encode(), TABLE.encode("utf-16"), TABLE.replace(",", ";").replace(".", ",").encode("latin-1")],
    ),
    "feather": ("x.feather", lambda: [feather()]),
    "safetensors": ("x.safetensors", lambda: [safetensors()]),
    "netcdf": ("x.nc", lambda: [netcdf()]),
    "pages": ("x.tif", lambda: [pages()]),
    "h5": ("x.h5", lambda: [hdf5(), hdf5(chunks=(4, 4), compression="gzip"), hdf5(maxshape=(None, 4))]),
    "mat": ("x.mat", lambda: [mat()]),
    "parquet": ("x.parquet", lambda: [parquet()]),
    "wav": ("x.wav", lambda: [wav(), wav(3)]),
    "png": ("x.png", lambda: [image("PNG")]),
    "jpeg": ("x.jpg", lambda: [image("JPEG")]),
    "tiff": ("x.tif", lambda: [image("TIFF")]),
    "idx": ("train-images-idx3-ubyte", lambda: [idx(), gzip.compress(idx()), idx((4, 9, 9), 0x0B, 2 * 4 * 81)]),
    "cifar_python": ("data_batch_1", lambda: [cifar_python(2), cifar_python(4)]),
    "cifar_binary": ("data_batch_1.bin", lambda: [cifar_binary()]),
    "cifar_archive": (
        "cifar-10-python.tar.gz",
        lambda: [tarred({"c/data_batch_1": cifar_python()}), tarred({"data_batch_1.bin": cifar_binary()}, "w")],
    ),
    "prepared": ("p.h5", lambda: [prepared()]),
    "run": ("run.h5", lambda: [run_file(), unsealed(run_file())]),
    "metrics": ("metrics.jsonl", lambda: [METRICS]),
    "checkpoint": ("checkpoint.h5", lambda: [checkpoint()]),
}  # fmt: skip


def unsealed(content: bytes) -> bytes:
    """A run file as another program leaves it: no checksum keeps its bytes from the HDF5 library."""
    from sigmapca_cli.storage.files import NOTE

    return content[: content.rindex(NOTE)]


def sealed(content: bytes) -> bytes:
    """With a checksum that holds, so that it is the HDF5 part that is read."""
    from sigmapca_cli.storage.files import sealed

    return b"".join(sealed(content))


# Damage inside a sound packing: the checksum of a zip, gzip or run file would keep it from the reader.
PACKED: dict[str, tuple[str, str, Callable[[bytes], bytes]]] = {
    "npy in npz": ("npy", "x.npz", lambda content: zipped({"x.npy": content})),
    "idx in gzip": ("idx", "train-images-idx3-ubyte.gz", gzip.compress),
    "batch in tar": (
        "cifar_python",
        "cifar-10-python.tar.gz",
        lambda content: tarred({"c/data_batch_1": content}),
    ),
    "hdf5 in run": ("run", "run.h5", sealed),
    "hdf5 in checkpoint": ("checkpoint", "checkpoint.h5", sealed),
}


@cache
def seeds(kind: str) -> list[bytes]:
    """The valid files of a format."""
    return SEEDS[kind][1]()

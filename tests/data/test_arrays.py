"""Matrices from files of every format; what is refused, and how little memory large ones take."""

import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import array_sources
import h5py
import numpy as np
import pytest
from scipy.io import savemat

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.matrix import arrays
from sigmapca_cli.data.moments import accumulate
from sigmapca_cli.data.on_disk import row_file
from sigmapca_cli.system.errors import InputError, RunFailed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1, 2, 5] + [0, 10, -3]
source_of = partial(array_sources.source_of, standardise="feature")


def all_rows(source):
    return source.take(np.arange(source.n))


EXPECTED = (X - X.mean(axis=0)) / X.std(axis=0)


def write_csv(path, delimiter=",", header=None, X=X):
    np.savetxt(path, X, delimiter=delimiter, header=header or "", comments="")
    if not header:
        path.write_text(path.read_text().removeprefix("\n"))


def write_parquet(path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(pyarrow.table({f"c{j}": X[:, j] for j in range(3)}), path)


def write_hdf5(path, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("group/x", data=X, **options)
        file["vector"] = np.zeros(4)


FORMATS = {
    "a.npy": lambda path: np.save(path, X),
    "a.npz": lambda path: np.savez(path, X),
    "compressed.npz": lambda path: np.savez_compressed(path, X),
    "a.csv": write_csv,
    "header.csv": lambda path: write_csv(path, header="a,b b,c"),
    "a.tsv": lambda path: write_csv(path, "\t", "a\tb\tc"),
    "semicolon.csv": lambda path: write_csv(path, ";"),
    "a.txt": lambda path: write_csv(path, " "),
    "bom.csv": lambda path: path.write_text(
        "\ufeffa,b,c\n" + "\n".join(",".join(map(repr, map(float, r))) for r in X)
    ),
    "a.h5": write_hdf5,
    "chunked.h5": lambda path: write_hdf5(path, chunks=(7, 2), compression="gzip"),
    "a.mat": lambda path: savemat(path, {"x": X, "name": "text"}),
    "a.parquet": write_parquet,
    "wrong_suffix.csv": lambda path: path.write_bytes(npy_bytes(X)),
}


def npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_rows(tmp_path, name):
    path = tmp_path / name
    FORMATS[name](path)
    options = {"key": "x"} if name == "a.mat" else {}
    source = source_of(path, **options)
    np.testing.assert_allclose(all_rows(source), EXPECTED, atol=1e-6)
    np.testing.assert_allclose(source.covariance()[1], np.corrcoef(X.T), atol=1e-9)


ODD_LAYOUTS = {
    "big-endian": X.astype(">f8"),
    "big-endian float32": X.astype(">f4"),
    "Fortran order": np.asfortranarray(X),
    "negative strides": X[::-1, ::-1][::-1, ::-1],
    "int16": np.rint(X * 100).astype(np.int16),
    "big-endian int32": np.rint(X * 1000).astype(">i4"),
    "uint8": np.rint(X * 5 + 100).astype(np.uint8),
    "float16": X.astype(np.float16),
}


@pytest.mark.parametrize("layout", ODD_LAYOUTS)
@pytest.mark.parametrize("limit", [1 << 20, 0])
def test_odd_layouts_are_accepted(tmp_path, monkeypatch, layout, limit):
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", limit)
    data = ODD_LAYOUTS[layout]
    np.save(tmp_path / "a.npy", data)
    (tmp_path / "a.npy").chmod(0o444)
    wide = data.astype(np.float64)
    expected = (wide - wide.mean(axis=0)) / wide.std(axis=0)
    np.testing.assert_allclose(all_rows(source_of(tmp_path / "a.npy")), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["a.npy", "a.h5", "chunked.h5"])
def test_transpose_and_halves(tmp_path, name, monkeypatch):
    FORMATS[name](tmp_path / name)
    for limit in (row_file.MEMORY_LIMIT, 0):
        monkeypatch.setattr(row_file, "MEMORY_LIMIT", limit)
        source = source_of(tmp_path / name, transpose=True, standardise="none")
        np.testing.assert_allclose(all_rows(source) + source.mean, X.T, atol=1e-5)
        odd = source_of(tmp_path / name, half="odd", standardise="none")
        np.testing.assert_allclose(all_rows(odd) + odd.mean, X[1::2], atol=1e-5)
        np.testing.assert_allclose(np.concatenate(list(odd.blocks(7))) + odd.mean, X[1::2], atol=1e-5)


@pytest.mark.parametrize("name", ["a.npy", "a.h5", "chunked.h5"])
def test_streamed_from_disk_equals_in_memory(tmp_path, name, monkeypatch):
    FORMATS[name](tmp_path / name)
    memory = source_of(tmp_path / name)
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
    disk = source_of(tmp_path / name)
    index = RNG.integers(0, 40, 100)
    assert np.array_equal(memory.take(index), disk.take(index))
    np.testing.assert_allclose(memory.covariance()[1], disk.covariance()[1], atol=1e-12)


def test_threads_read_the_same_rows_from_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
    np.save(tmp_path / "a.npy", np.asfortranarray(X))
    source = source_of(tmp_path / "a.npy")
    batches = [RNG.integers(0, 40, 64) for _ in range(50)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(source.take, batches))
    for index, rows in zip(batches, together, strict=True):
        np.testing.assert_allclose(rows, EXPECTED[index], atol=1e-6)


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
    np.save(tmp_path / "a.npy", X)
    source = source_of(tmp_path / "a.npy")
    os.truncate(tmp_path / "a.npy", 300)
    with pytest.raises(RunFailed, match="was truncated"):
        source.take(np.arange(40))


def test_a_choice_among_several_arrays_is_asked_for(tmp_path):
    np.savez(tmp_path / "a.npz", one=X, two=X[:, :2])
    with pytest.raises(InputError, match=r"2 arrays \(one, two\): choose one with data\.key="):
        source_of(tmp_path / "a.npz")
    with pytest.raises(InputError, match=r"no 'three'; it has one, two"):
        source_of(tmp_path / "a.npz", key="three")
    assert source_of(tmp_path / "a.npz", key="two").p == 2


def with_values(*places):
    data = X.copy()
    for row, column, value in places:
        data[row, column] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (with_values((7, 2, np.nan)), "NaN at row 7, column 2, counted from 0: remove or replace"),
        (
            with_values((9, 0, np.inf), (30, 1, np.nan)),
            r"infinity at row 9, column 0, counted from 0 \(2 such values in 2 rows\)",
        ),
        (X.astype(np.complex64), "complex"),
        (X[0], r"1 dimensions \(3,\), needs 2: X\[:, None\]"),
        (X.reshape(10, 4, 3), "3 dimensions"),
        (np.float64(3), "0 dimensions"),
        (X[:1], "has 1 sample: at least 2"),
        (X[:0], "is empty, 0 × 3"),
        (X[:, :0], "is empty, 40 × 0"),
        (np.array([["a", "b"], ["c", "d"]]), "not numbers"),
        (np.array([["2020-01-01"] * 2] * 2, "M8[D]"), "not numbers"),
    ],
)
def test_unusable_values_are_refused_on_load(tmp_path, data, message):
    np.save(tmp_path / "a.npy", data)
    with pytest.raises(InputError, match=message) as caught:
        source_of(tmp_path / "a.npy")
    assert str(tmp_path / "a.npy") in str(caught.value) and "\n" not in str(caught.value)


def test_nan_is_found_in_data_streamed_from_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(arrays.ArraySource, "_block_size", lambda self: 8)
    np.save(tmp_path / "a.npy", with_values((17, 1, np.nan), (39, 2, np.inf), (18, 0, np.nan)))
    with pytest.raises(InputError, match=r"NaN at row 17, column 1, counted from 0 \(3 such"):
        source_of(tmp_path / "a.npy")
    with pytest.raises(InputError, match="NaN at row 17"):
        source_of(tmp_path / "a.npy", half="odd")


class Touch:
    def __reduce__(self):
        return exit, (3,)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_pickled_objects_are_never_loaded(tmp_path, suffix):
    data = np.array([[Touch(), 1], [2, 3]], dtype=object)
    path = tmp_path / f"a.{suffix}"
    np.save(path, data, allow_pickle=True) if suffix == "npy" else np.savez(path, data)
    with pytest.raises(InputError, match="never loaded"):
        source_of(path)


def test_header_can_be_forced(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n5,7\n6,9\n")
    assert source_of(tmp_path / "a.csv").n == 4
    assert source_of(tmp_path / "a.csv", header="yes").n == 3


@pytest.mark.parametrize(
    "name", ["a.npy", "a.npz", "compressed.npz", "a.h5", "chunked.h5", "a.mat", "a.parquet"]
)
@pytest.mark.parametrize("fraction", [0.0, 0.03, 0.5, 0.99])
def test_truncated_files_give_one_line_that_names_them(tmp_path, name, fraction):
    path = tmp_path / name
    FORMATS[name](path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * fraction)])
    with pytest.raises(InputError, match=name) as caught:
        source_of(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.npy", "a.h5", "a.mat", "a.parquet", "a.npz"])
def test_another_format_under_this_name_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"GIF89a nothing of the kind" * 40)
    with pytest.raises(InputError, match="is not a"):
        source_of(tmp_path / name)


def test_folder_and_missing_path_are_told(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        source_of(tmp_path)
    with pytest.raises(InputError, match=r"needs data\.path=FILE"):
        build(DataConfig(name="array"))


def test_the_hash_follows_content_and_options(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X)
    np.save(tmp_path / "c.npy", with_values((21, 1, 0.0)))
    for limit in (row_file.MEMORY_LIMIT, 0):
        monkeypatch.setattr(row_file, "MEMORY_LIMIT", limit)
        a, b, c = (source_of(tmp_path / f"{name}.npy").hash for name in "abc")
        assert a == b != c and a != source_of(tmp_path / "a.npy", epsilon=0.5).hash


STREAM = """
import resource, sys, numpy as np
from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source = build(DataConfig(name="array", path=sys.argv[1]))
generator = np.random.default_rng(0)
for _ in range(1000):
    assert not source.take(generator.integers(0, source.n, 128)).any()
print(source.n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_file_larger_than_the_memory_it_takes(tmp_path):
    """154 MB of data (a sparse file), read whole and gathered from: the process grows by far less."""
    shape = (600_000, 64)
    np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.float32, shape)
    command = [sys.executable, "-c", STREAM, str(tmp_path / "a.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    n, grown = map(int, done.stdout.split())
    assert n == 600_000 and grown < 120


def test_very_wide_rows_in_a_file_are_those_in_memory(tmp_path, monkeypatch):
    X = (np.random.default_rng(0).standard_normal((9, 50_000)) * 40 + 100).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    held = source_of(tmp_path / "x.npy")
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
    read = source_of(tmp_path / "x.npy")
    slices = read._gather(slice(2, 7))
    np.testing.assert_array_equal(slices[1:3, 5:900], X[3:5, 5:900])
    np.testing.assert_array_equal(slices[:, -3:], X[2:7, -3:])
    for moments in (held._raw_moments(True), read._raw_moments(True)):
        np.testing.assert_allclose(moments.mean, X.mean(0, np.float64), rtol=1e-13)
        np.testing.assert_allclose(moments.second, X.var(0, np.float64), rtol=1e-12)
    assert (held._raw_moments(True).second == read._raw_moments(True).second).all()
    W = np.random.default_rng(1).standard_normal((X.shape[1], 2))
    np.testing.assert_allclose(read.covariance()[1] @ W, held.covariance()[1] @ W, rtol=0, atol=1e-9)
    x = np.concatenate(list(held.blocks()))
    np.testing.assert_allclose(np.concatenate(list(read.project(W))), x @ W, rtol=0, atol=1e-3)
    X[8, 40_000] = np.nan
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(InputError, match=r"row 8.*column 40000"):
        source_of(tmp_path / "x.npy")


def test_a_feature_whose_squares_vanish_is_named_by_its_number_among_all(tmp_path):
    X = np.random.default_rng(0).standard_normal((9, 700))
    X[:, 650] *= 1e-170
    with pytest.raises(InputError, match=f"feature {650}"):
        accumulate.block_moments(X, diagonal=True)

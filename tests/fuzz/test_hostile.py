"""Files made to do harm: bombs, lies in headers, programs in pickles, paths that lead out of a folder."""

import gzip
import io
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from fuzz_corpus import X, cifar_python, npy, seeds, tarred, zipped
from fuzz_readers import read
from mechanisms import every
from shell import run_command

from sigmapca_cli.system.errors import InputError

pytestmark = [pytest.mark.usefixtures("limited", "watched"), pytest.mark.filterwarnings("ignore")]
ZEROS = bytes(1 << 20)


def refused(kind: str, path: Path, content: bytes) -> str:
    """The one line that a reader refuses the file with."""
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(kind, path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def header(shape: tuple[int, ...], descr: object = "<f8") -> bytes:
    """An .npy header that promises this shape, with nothing behind it."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    bomb = io.BytesIO()
    import zipfile

    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        member.write(header((5 << 13, 4096)))
        for _ in range(1280):
            member.write(ZEROS)
    assert len(bomb.getvalue()) < 8 << 20
    assert "GB of memory" in refused("npz", tmp_path / "x.npz", bomb.getvalue())


def test_a_gzip_bomb_is_unpacked_no_further_than_its_header_says(tmp_path):
    head = gzip.compress(bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 28, 28))
    bomb = head + 1280 * gzip.compress(ZEROS)  # one member after the other is one file
    assert "too long" in refused("idx", tmp_path / "train-images-idx3-ubyte.gz", bomb)
    honest = gzip.compress(bytes([0, 0, 8, 3]) + struct.pack(">III", 1 << 20, 1 << 10, 1 << 10))
    assert "GB of memory" in refused("idx", tmp_path / "train-images-idx3-ubyte.gz", honest)


def test_a_matlab_bomb_is_not_unpacked(tmp_path):
    import zlib

    from fuzz_corpus import mat

    honest = mat()
    start = 128 + 8  # behind the header and the tag of the one compressed element
    inner = zlib.decompress(honest[start:])
    sides = struct.pack("<ii", *X.shape)
    large = inner.replace(sides, struct.pack("<ii", 1 << 20, 1 << 12), 1)
    assert large != inner
    packed = zlib.compress(large)
    content = honest[:128] + struct.pack("<II", 15, len(packed)) + packed
    assert "GB of memory" in refused("mat", tmp_path / "x.mat", content)


@pytest.mark.parametrize("name", ["c/data_batch_1", "c/readme"])
def test_a_tar_bomb_is_not_unpacked(tmp_path, name):
    info = tarfile.TarInfo(name)
    info.size = 1 << 40
    archive = info.tobuf() + ZEROS
    assert "too many" in refused("cifar_archive", tmp_path / "cifar-10-python.tar.gz", gzip.compress(archive))


def test_a_sparse_hdf5_file_is_not_filled_with_zeros(tmp_path):
    import h5py

    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (1 << 40, 4), "f8", chunks=(1024, 4))
    assert "claims" in refused("h5", path, path.read_bytes())
    run = tmp_path / "run.h5"
    run.write_bytes(seeds("run")[1])
    with h5py.File(run, "r+") as file:
        del file["filters"]
        file.create_dataset("filters", (1 << 40, 4), "f8", chunks=(1024, 4))
    assert "claims" in refused("run", run, run.read_bytes())


@pytest.mark.parametrize(
    "shape", [(1 << 60, 4), (1 << 62, 1 << 62), (-1, 4), (2, 2, 2), (), (1 << 31, 1 << 31)]
)
def test_a_shape_that_is_a_lie(tmp_path, shape):
    refused("npy", tmp_path / "x.npy", header(shape) + bytes(64))
    refused("npz", tmp_path / "x.npz", zipped({"x.npy": header(shape) + bytes(64)}))


@pytest.mark.parametrize(
    "descr", ["|O", [("a", "<f8"), ("b", "|O")], "<U8", "<c16", "<M8[s]", "|V8", "(2,2)<f8"]
)
def test_types_that_are_no_numbers(tmp_path, descr):
    refused("npy", tmp_path / "x.npy", header((2, 2), descr) + bytes(256))


class Runs:
    """Leaves a file behind where its pickle is loaded."""

    def __reduce__(self):
        return os.mkdir, ("/tmp/sigmapca-was-here",)


def test_no_pickle_runs_anything(tmp_path):
    trace = Path("/tmp/sigmapca-was-here")
    assert not trace.exists()
    refused("npy", tmp_path / "x.npy", npy(np.array([Runs()], dtype=object), pickled=True))
    refused("npz", tmp_path / "x.npz", zipped({"x.npy": npy(np.array([Runs()], dtype=object), pickled=True)}))
    for protocol in range(6):
        refused("cifar_python", tmp_path / "data_batch_1", pickle.dumps({b"data": Runs()}, protocol))
    assert not trace.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02}r\xff\xff\xff\x7f.",  # a memo of 2³¹ places: sixteen gigabytes of nothing
        b"\x80\x04\x96\xff\xff\xff\xff\xff\x00\x00\x00.",  # a bytearray of a terabyte
        b"\x80\x02" + b"(" * 100_000 + b".",
        b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
        b"\x80\x02cnumpy\nndarray\n(K\xffK\xfftR.",
        b"\x80\x02cbuiltins\neval\n(U\x011tR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
        b"\x80\x02\x82\x01.",  # an extension code
        b"\x80\x02Pid\n.",  # a persistent id
    ],
)
def test_pickles_that_are_no_batches(tmp_path, program):
    refused("cifar_python", tmp_path / "data_batch_1", program)


def test_numpys_own_unpickling_is_never_reached(tmp_path):
    """A dtype whose state names fields beyond its size would make numpy read foreign memory."""
    honest = cifar_python(2)
    place = honest.index(b"NNN")  # no subtype, no names, no fields
    assert read("cifar_python", written(tmp_path / "data_batch_1", honest))[1].shape == (75, 75)
    spoilt = honest[:place] + b"NNU\x05evil!" + honest[place + 3 :]
    # The state is looked at for its byte order only.
    assert read("cifar_python", written(tmp_path / "data_batch_1", spoilt))[1].shape == (75, 75)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_an_archive_writes_nothing_wherever_its_members_point(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    archive = inside / "cifar-10-python.tar.gz"
    members = {"../../escaped/data_batch_1": cifar_python(), "/tmp/sigmapca-escaped": b"x"}
    file = io.BytesIO(tarred(members, "w"))
    with tarfile.open(fileobj=file, mode="a") as tar:
        link = tarfile.TarInfo("data_batch_2")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    archive.write_bytes(gzip.compress(file.getvalue()))
    read("cifar_archive", archive)
    assert [p.name for p in tmp_path.rglob("*")] == ["inside", archive.name]
    assert not Path("/tmp/sigmapca-escaped").exists()


def test_a_run_file_names_no_place_that_is_written_to(tmp_path):
    """What a run file says of paths, names and YAML is text: nothing is opened, written or built by it."""
    import h5py

    run = tmp_path / "run" / "run.h5"
    run.parent.mkdir()
    run.write_bytes(seeds("run")[1])
    with h5py.File(run, "r+") as file:
        del file["config"]
        file["config"] = "model: !!python/object/apply:os.mkdir [/tmp/sigmapca-was-here]"
        file.attrs["model"] = "../../escaped"
        file["evaluation/../../up"] = 1.0
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))
    assert "not YAML" in refused("run", run, run.read_bytes())
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before
    assert not Path("/tmp/sigmapca-was-here").exists()


def test_a_data_set_that_lies_in_another_file_is_not_followed(tmp_path):
    """HDF5 can keep values in any file of the machine, by an external link or external storage."""
    import h5py

    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.ones((4, 4)).tobytes())
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (4, 4), "f8", external=[(str(secret), 0, 128)])
    assert "another file" in refused("h5", path, path.read_bytes())
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink("other.h5", "x")
    refused("h5", path, path.read_bytes())


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("patch", -5), ("stride", 0), ("pad", -1), ("pad", 1 << 40), ("patch_shape", (99, 99, 3))],
)
def test_a_prepared_file_with_an_impossible_geometry(tmp_path, attribute, value):
    import h5py

    from sigmapca_cli.data.cache.preparing import prepare
    from sigmapca_cli.data.config import DataConfig

    path = prepare(DataConfig(name="natural", patch=5, stride=40), tmp_path / "p.h5")
    with h5py.File(path, "r+") as file:
        file.attrs[attribute] = value
    refused("prepared", path, path.read_bytes())


def test_a_picture_bomb(tmp_path):
    import zlib

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    size = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    bomb = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", size)
        + chunk(b"IDAT", zlib.compress(ZEROS))
        + chunk(b"IEND", b"")
    )
    refused("png", tmp_path / "x.png", bomb)


def test_a_page_of_a_tiff_is_found_without_passing_over_those_before(tmp_path, monkeypatch):
    """Each page took as long as all before it, when the file was opened anew for it."""
    from PIL import Image

    from sigmapca_cli.data.config import DataConfig
    from sigmapca_cli.data.images import folder

    pages = [Image.fromarray(np.full((12, 12), i, np.uint8)) for i in range(40)]
    pages[0].save(tmp_path / "x.tif", save_all=True, append_images=pages[1:])
    opened = []
    monkeypatch.setattr(Image, "open", lambda *a, _open=Image.open, **k: opened.append(a) or _open(*a, **k))
    source = folder.build(DataConfig(name="images", path=str(tmp_path / "x.tif"), standardise="none"))
    assert source.pictures == 40 and len(opened) == 2  # for the headers, and for the pixels
    assert np.allclose(source.mean, np.arange(40).mean() / 255, atol=0.1)


def holed(path: Path, shape: tuple[int, int]) -> None:
    """Put a data set of this shape into a run's file, which takes no place on the disk."""
    import h5py

    path.write_bytes(seeds("run")[1])
    with h5py.File(path, "r+") as file:
        del file["filters"]
        kept = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        kept.set_layout(h5py.h5d.CONTIGUOUS)
        kept.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        kept.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        kind, space = h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple(shape)
        h5py.h5d.create(file.id, b"filters", kind, space, kept)


def test_a_hole_in_a_run_file_counts_as_nothing(tmp_path):
    path = tmp_path / "run.h5"
    holed(path, (200_000_000, 2))
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("the file system fills holes")
    with pytest.raises(InputError, match="claims"):
        read("run", path)


def test_groups_within_thousands_of_groups_are_not_walked_through(tmp_path):
    import h5py

    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(3000):
            group = group.create_group("g")
        group["x"] = np.ones((4, 4))
    assert "deep" in refused("h5", path, path.read_bytes())


def test_a_pickle_that_doubles_a_list_sixty_times(tmp_path):
    program = b"\x80\x02]q\x00(K\x01K\x02e0"
    for i in range(60):
        program += b"]q%c(h%ch%ce0" % (i + 1, i, i)
    for named in (b"U\x04datah\x3cU\x06labelsh\x00", b"U\x04dataK\x01U\x06labelsh\x3c"):
        assert "lists" in refused("cifar_python", tmp_path / "data_batch_1", program + b"}(" + named + b"u.")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_a_sparse_matrix_of_nothing_but_columns(tmp_path, kind):
    from scipy import sparse

    shape = (10**9, 500) if kind == "csc" else (500, 10**9)
    rows, cols = np.arange(500) * (shape[0] // 500), np.arange(500) * (shape[1] // 500)
    matrix = sparse.coo_matrix((np.ones(500), (rows, cols)), shape=shape).asformat(kind)
    sparse.save_npz(tmp_path / "x.npz", matrix)
    assert "claims" in refused("npz", tmp_path / "x.npz", (tmp_path / "x.npz").read_bytes())


def test_hashed_words_have_a_million_columns(tmp_path):
    from scipy import sparse

    column = np.random.default_rng(0).integers(0, 1 << 20, 300)
    words = sparse.csr_matrix((np.ones(300), (np.arange(300) % 30, column)), shape=(30, 1 << 20))
    sparse.save_npz(tmp_path / "x.npz", words)
    assert read("npz", tmp_path / "x.npz") is not None


def test_a_pipe_among_recordings_is_not_waited_for(tmp_path):
    (tmp_path / "a.wav").write_bytes(seeds("wav")[0])
    os.mkfifo(tmp_path / "b.wav")
    result = run_command(("data", str(tmp_path)), tmp_path, {}, timeout=60)
    assert result.returncode == 2 and "b.wav is not a plain file" in result.stderr


@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "p*pe"])
def test_what_can_be_read_once_only_is_no_file_of_rows(tmp_path, path):
    os.mkfifo(tmp_path / "pipe")
    result = run_command(("data", path), tmp_path, {}, timeout=60)
    assert result.returncode == 2 and "write them into a file" in result.stderr


def test_an_archive_of_thousands_of_arrays_is_looked_through_once(tmp_path):
    """Each name was looked for among all others, for two minutes; now a limit on CPU seconds suffices."""
    content = zipped({f"x{i}.npy": header((1, 1)) + bytes(8) for i in range(5_000)})
    assert "5000 arrays" in refused("npz", tmp_path / "x.npz", content)


def test_a_zarr_array_of_a_hundred_thousand_codecs(tmp_path):
    import json

    import zarr

    zarr.save_array(str(tmp_path / "x.zarr"), X)
    place = tmp_path / "x.zarr" / "zarr.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "codecs": [{"name": "bytes"}] * 100_000}))
    with pytest.raises(InputError, match="100000 codecs"):
        read("npy", tmp_path / "x.zarr")


def test_the_vectors_of_a_sparse_matrix_of_matlab_are_no_columns(tmp_path):
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as file:
        group = file.create_group("s")
        group.attrs["MATLAB_sparse"] = np.uint64(5)
        group["data"], group["ir"], group["jc"] = np.ones(3), np.arange(3), np.array([0, 1, 3])
    assert "full(s)" in refused("h5", tmp_path / "x.h5", (tmp_path / "x.h5").read_bytes())


CUT = [
    ("x.tif", b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHII", 270, 2, 2**32 - 1, 16), ("data", "x.tif")),
    ("x.npy", header((10**12, 10**12)), ("data", "x.npy")),
    ("x.npy", npy(X)[:60], ("data", "x.npy")),
    ("x.npz", zipped({"x.npy": npy(X)})[:-30], ("train", "data=array", "data.path=x.npz")),
    (
        "x.npy",
        npy(np.array([{}], dtype=object), pickled=True),
        ("train", "data=array", "data.path=x.npy"),
    ),
    ("x.csv", b"a,b\n1,2\n3,four\n", ("train", "data=array", "data.path=x.csv")),
    ("run.h5", b"\x89HDF\r\n\x1a\n" + b"\xff" * 300, ("show", "run.h5")),
    ("data_batch_1", b"\x80\x02cos\nsystem\n(U\x05falseo.", ("data", "data_batch_1")),
]


@pytest.mark.parametrize(("name", "content", "command"), every(CUT, [CUT[0], CUT[1], CUT[4], CUT[6], CUT[7]]))
def test_the_program_itself_says_one_line(tmp_path, name, content, command):
    (tmp_path / name).write_bytes(content)
    result = run_command(command, tmp_path, {})
    assert result.returncode in (1, 2), result
    assert result.stderr.startswith("sigmapca: ") and len(result.stderr.splitlines()) == 1, result.stderr

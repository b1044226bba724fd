"""CIFAR in all its packings; damaged and hostile files."""

import io
import os
import pickle
import tarfile

import numpy as np
import pytest

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.images.cifar import LAYOUTS, load
from sigmapca_cli.data.readers.unpickle import restricted_load
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)


def python_batch(count=4, changes=None):
    batch = {
        b"data": RNG.integers(0, 256, (count, 3072)).astype(np.uint8),
        b"labels": [int(v) for v in RNG.integers(0, 10, count)],
        **(changes or {}),
    }
    return batch, pickle.dumps(batch, protocol=2)


def tar_of(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_python_and_binary_versions_are_the_same_images(shared_data):
    python = load(shared_data / "cifar-10-batches-py", "cifar10", limit=2000)
    binary = load(shared_data / "cifar-10-batches-bin", "cifar10", limit=2000)
    assert python.shape == (2000, 32, 32, 3)
    assert np.array_equal(python, binary)


def test_test_split_and_parent_folder(shared_data):
    assert len(load(shared_data, "cifar10", "test")) == 500


def test_archive_equals_folder(shared_data, tmp_path):
    folder = shared_data / "cifar-10-batches-py"
    archive = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(folder, "cifar-10-batches-py")
    a, b = load(archive, "cifar10", limit=500), load(folder, "cifar10", limit=500)
    assert np.array_equal(a, b)
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated or damaged"):
        load(archive, "cifar10")


def test_archive_in_any_order_comes_out_in_batch_order(tmp_path):
    made = {f"data_batch_{i}": python_batch() for i in range(1, 6)}
    members = {f"../../evil/{name}": made[name][1] for name in reversed(made)}
    images = load(tar_of(tmp_path / "c.tar.gz", members), "cifar10")
    rows = np.concatenate([batch[b"data"] for batch, _ in made.values()])
    assert np.array_equal(images[:, 0, 1], rows[:, [1, 1025, 2049]])
    assert os.listdir(tmp_path) == ["c.tar.gz"]


def test_a_gap_in_the_batches_is_refused_and_a_short_end_is_told(tmp_path, caplog):
    for i in (1, 3):
        (tmp_path / f"data_batch_{i}").write_bytes(python_batch()[1])
    with pytest.raises(InputError, match="data_batch_3, but no data_batch_2"):
        load(tmp_path, "cifar10")
    (tmp_path / "data_batch_3").unlink()
    assert len(load(tmp_path, "cifar10")) == 4
    assert "using 1 of 5 batches" in caplog.text


def test_cifar100_has_two_labels_before_the_pixels(tmp_path):
    rows = RNG.integers(0, 256, (3, 3074)).astype(np.uint8)
    rows[:, 1] = [50, 60, 100]
    (tmp_path / "train.bin").write_bytes(rows.tobytes())
    with pytest.raises(InputError, match="not this data set"):
        load(tmp_path, "cifar100")
    rows[:, 1] = [50, 60, 70]
    (tmp_path / "train.bin").write_bytes(rows.tobytes())
    images = load(tmp_path, "cifar100")
    assert images[2, 31, 31, 2] == rows[2, -1]
    batch = {b"data": rows[:, 2:], b"fine_labels": [50, 60, 70], b"coarse_labels": [1, 2, 3]}
    (tmp_path / "train").write_bytes(pickle.dumps(batch, protocol=2))
    assert np.array_equal(load(tmp_path, "cifar100"), images)


class Runs:
    """A pickle of this runs a command when it is loaded by pickle.load."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


def test_a_malicious_pickle_runs_nothing(tmp_path):
    mark = tmp_path / "ran"
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": Runs(mark)}, protocol=2))
    with pytest.raises(InputError, match=r"not loaded \(it asks for (posix|nt)\.system\)"):
        load(tmp_path, "cifar10")
    assert not mark.exists()
    pickle.loads((tmp_path / "data_batch_1").read_bytes())
    assert mark.exists(), "the pickle is not malicious after all: the test shows nothing"


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'/etc/passwd'\ntR.",
        b"cnumpy\nndarray\n((I1000000000\nI1000000000\nttR.",  # a huge allocation
        b"cnumpy\ndtype\n(S'O'\ntR.",
        pickle.dumps([1, 2]),
        b"",
        b"\x80\x02}q\x00",
    ],
)
def test_what_no_batch_holds_is_refused(content):
    with pytest.raises(InputError, match=r"^FILE ") as caught:
        restricted_load(content, "FILE")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({b"data": np.zeros((4, 100), np.uint8)}, r"\(4, 100\), not \(N, 3072\)"),
        ({b"data": "text"}, "data is str"),
    ],
)
def test_inconsistent_batches_are_refused(tmp_path, changes, message):
    (tmp_path / "data_batch_1").write_bytes(python_batch(changes=changes)[1])
    with pytest.raises(InputError, match=message):
        load(tmp_path, "cifar10")


@pytest.mark.parametrize("keep", [0, 3072, 3 * 3073 - 1])
def test_truncated_binary_is_refused(tmp_path, keep):
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(3 * 3073)[:keep])
    with pytest.raises(InputError, match=f"has {keep} bytes, not a whole number of 3073-byte records"):
        load(tmp_path, "cifar10")


@pytest.mark.parametrize("fraction", [0.001, 0.5, 0.999])
def test_truncated_python_batch_is_refused(shared_data, tmp_path, fraction):
    whole = (shared_data / "cifar-10-batches-py" / "test_batch").read_bytes()
    (tmp_path / "test_batch").write_bytes(whole[: int(len(whole) * fraction)])
    with pytest.raises(InputError, match="test_batch"):
        load(tmp_path, "cifar10", "test")


def test_missing_files_are_named(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"holds no train batch"):
        load(tmp_path, "cifar10")
    with pytest.raises(InputError, match="no such file"):
        build(DataConfig(name="cifar10", path=str(tmp_path / "nowhere")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGMAPCA_DATA", raising=False)
    with pytest.raises(InputError, match=r"cifar10 is not in data.*give data\.path"):
        build(DataConfig(name="cifar10", offline=True))


def test_found_in_the_data_folder_and_by_environment(shared_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGMAPCA_DATA", str(shared_data))
    by_environment = build(DataConfig(name="cifar10", images=3, offline=True))
    (tmp_path / "data").symlink_to(shared_data)
    monkeypatch.delenv("SIGMAPCA_DATA")
    assert build(DataConfig(name="cifar10", images=3, offline=True)).hash == by_environment.hash


def test_layouts_name_the_official_members():
    assert LAYOUTS["cifar10"].names("all")[-1] == "test_batch" and len(LAYOUTS["cifar10"].train) == 5

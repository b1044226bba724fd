"""IDX files: sniffed, every length checked."""

import gzip

import numpy as np
import pytest

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.images.mnist import load, read_idx
from sigmapca_cli.system.errors import InputError


def idx(array, code=8):
    head = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return head + array.tobytes()


IMAGES = np.random.default_rng(0).integers(0, 256, (5, 6, 7)).astype(np.uint8)


def test_the_official_test_set(shared_data):
    images = load(shared_data / "mnist", "test")
    assert images.shape == (10_000, 28, 28)
    source = build(
        DataConfig(name="mnist", path=str(shared_data / "mnist"), split="test", patch=0, images=200)
    )
    assert (source.n, source.p, source.patch_shape) == (200, 784, (28, 28, 1))
    assert source.take(np.arange(200)).std() > 0.1


def test_the_split_that_is_there_is_suggested(shared_data):
    with pytest.raises(InputError, match=r"no train-images.*: data\.split=test"):
        load(shared_data / "mnist", "train")


@pytest.mark.parametrize("name", ["t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte.gz"])
@pytest.mark.parametrize("packed", [False, True])
def test_compression_is_sniffed_not_believed(tmp_path, name, packed):
    (tmp_path / name).write_bytes(gzip.compress(idx(IMAGES)) if packed else idx(IMAGES))
    assert np.array_equal(load(tmp_path, "test"), IMAGES)


def test_big_endian_values_become_native(tmp_path):
    values = np.arange(12.0).reshape(3, 2, 2)
    (tmp_path / "f").write_bytes(idx(values.astype(">f4"), 0x0D))
    read = read_idx(tmp_path / "f")
    assert read.dtype.isnative and np.array_equal(read, values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes, no IDX header"),
        (b"\0\0", "2 bytes, no IDX header"),
        (b"PK\x03\x04 a zip", "not an IDX file: its magic number is 1347093252, images have 2051"),
        (idx(IMAGES)[:-1], r"truncated: 225 bytes, but \(5, 6, 7\) needs 226"),
        (idx(IMAGES)[:10], "truncated"),
        (idx(IMAGES) + b"x", "too long"),
        (gzip.compress(idx(IMAGES))[:-20], "truncated or damaged gzip"),
        (b"\x1f\x8bnot really gzip", "truncated or damaged gzip"),
        (idx(IMAGES[0, 0]), r"1-d data \(magic number 2049\), not images"),
    ],
)
def test_damaged_files_give_one_line(tmp_path, content, message):
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path, "test")
    assert "\n" not in str(caught.value) and "t10k-images" in str(caught.value)

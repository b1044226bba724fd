"""Folders of images of any size, depth and colour."""

import numpy as np
import pytest
from PIL import Image

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources import build, folder
from sigmapca_cli.sources.config import DataConfig

RNG = np.random.default_rng(0)


def save(path, *shape, dtype=np.uint8):
    pixels = RNG.integers(0, np.iinfo(dtype).max, shape).astype(dtype)
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(path)
    return pixels


def images(path, **options):
    return build(DataConfig(name="images", path=str(path), **{"patch": 5, **options}))


def naive(pictures, patch, stride, pad):
    rows = []
    for picture in pictures:
        padded = np.pad(picture, ((pad, pad), (pad, pad), (0, 0)))
        for i in range(0, padded.shape[0] - patch + 1, stride):
            for j in range(0, padded.shape[1] - patch + 1, stride):
                rows.append(padded[i : i + patch, j : j + patch].ravel())
    return np.array(rows) / 255


@pytest.mark.parametrize(("stride", "padding"), [(1, "same"), (3, "valid")])
def test_images_of_different_sizes(tmp_path, monkeypatch, stride, padding):
    pictures = [save(tmp_path / f"{i}.png", h, w, 3) for i, (h, w) in enumerate([(9, 14), (70, 85), (5, 40)])]
    X = naive(pictures, 5, stride, 2 if padding == "same" else 0)
    expected = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0) + 0.01)
    for limit in (folder.MEMORY_LIMIT, 0):
        monkeypatch.setattr(folder, "MEMORY_LIMIT", limit)
        source = images(tmp_path, stride=stride, padding=padding, epsilon=0.01)
        index = RNG.permutation(len(X))[:300]
        assert source.n == len(X)
        np.testing.assert_allclose(source.rows(index), expected[index], atol=1e-5)
        np.testing.assert_allclose(source.covariance()[1], expected.T @ expected / len(X), atol=1e-9)


def test_grey_and_colour_together_become_colour_or_grey(tmp_path):
    grey = save(tmp_path / "a.tif", 12, 12)
    save(tmp_path / "deeper" / "b.png", 12, 12, 3)
    both = images(tmp_path)
    assert both.patch_shape == (5, 5, 3)
    first = (both.rows(np.array([12 * 6 + 6])) * both.scale + both.mean).reshape(5, 5, 3) * 255
    np.testing.assert_allclose(first[2, 2], [grey[6, 6]] * 3, atol=1e-2)
    assert images(tmp_path, grey=True).patch_shape == (5, 5, 1)
    (tmp_path / "deeper" / "b.png").unlink()
    assert images(tmp_path).patch_shape == (5, 5, 1)


def test_sixteen_bits_are_kept(tmp_path):
    pixels = save(tmp_path / "a.png", 8, 9, dtype=np.uint16)
    source = images(tmp_path, patch=1, standardise="none")
    rows = source.rows(np.arange(72)) + source.mean
    np.testing.assert_allclose(rows[:, 0], pixels.ravel() / 65535, atol=1e-6)


def test_sixteen_bits_beside_eight_become_eight(tmp_path):
    deep = save(tmp_path / "a.png", 8, 9, dtype=np.uint16)
    save(tmp_path / "b.png", 8, 9, 3)
    source = images(tmp_path, patch=1, standardise="none")
    rows = source.rows(np.arange(72)) + source.mean
    np.testing.assert_allclose(rows * 255, np.repeat(deep.reshape(-1, 1) >> 8, 3, axis=1), atol=1e-3)


def test_floating_point_pixels_are_refused(tmp_path):
    Image.fromarray(np.ones((8, 8), np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(InputError, match=r"a\.tif has floating point pixels"):
        images(tmp_path)


def test_a_large_covariance_is_announced(tmp_path, caplog):
    save(tmp_path / "a.png", 100, 101)
    source = images(tmp_path, patch=96, padding="valid")
    assert (source.n, source.p) == (30, 9216)
    assert "30 samples × 9216 features: their covariance takes 0.7 GB" in caplog.text


def test_the_choice_of_images(tmp_path):
    for i in range(6):
        save(tmp_path / f"{i}.png", 8, 8)
    assert images(tmp_path, images=3).n == 3 * 64
    assert images(tmp_path, half="even").n == images(tmp_path, half="odd").n == 3 * 64
    assert images(tmp_path, half="even").hash != images(tmp_path, half="odd").hash
    whole = images(tmp_path, patch=0, images=4)
    assert (whole.n, whole.patch_shape) == (4, (8, 8, 1))
    with pytest.raises(InputError, match=r"data\.images=7, but there are only 6"):
        images(tmp_path, images=7)


def test_faults_name_the_file(tmp_path):
    with pytest.raises(InputError, match=r"has no \.jpeg"):
        images(tmp_path)
    with pytest.raises(InputError, match=r"needs data\.path=FOLDER"):
        build(DataConfig(name="images"))
    save(tmp_path / "a.png", 40, 40, 3)
    save(tmp_path / "b.png", 4, 40, 3)
    with pytest.raises(InputError, match=r"b\.png \(4 × 40\) is smaller than data\.patch=5"):
        images(tmp_path, padding="valid")
    with pytest.raises(InputError, match=r"b\.png is 4 × 40"):
        images(tmp_path, patch=0)
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"a\.png is truncated or damaged"):
        images(tmp_path)
    (tmp_path / "a.png").write_bytes(b"not an image")
    with pytest.raises(InputError, match=r"a\.png is not a readable image"):
        images(tmp_path)

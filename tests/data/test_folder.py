"""Folders of images of any size, depth and colour."""

import struct

import numpy as np
import pytest
from PIL import Image

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.images import folder
from sigmapca_cli.data.on_disk import progress, row_file
from sigmapca_cli.system.errors import InputError

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
    for limit in (row_file.MEMORY_LIMIT, 0):
        monkeypatch.setattr(row_file, "MEMORY_LIMIT", limit)
        source = images(tmp_path, stride=stride, padding=padding, epsilon=0.01)
        index = RNG.permutation(len(X))[:300]
        assert source.n == len(X)
        np.testing.assert_allclose(source.take(index), expected[index], atol=1e-5)
        np.testing.assert_allclose(source.covariance()[1], expected.T @ expected / len(X), atol=1e-9)


def test_grey_and_colour_together_become_colour_or_grey(tmp_path):
    grey = save(tmp_path / "a.tif", 12, 12)
    save(tmp_path / "deeper" / "b.png", 12, 12, 3)
    both = images(tmp_path)
    assert both.patch_shape == (5, 5, 3)
    first = (both.take(np.array([12 * 6 + 6])) * both.scale + both.mean).reshape(5, 5, 3) * 255
    np.testing.assert_allclose(first[2, 2], [grey[6, 6]] * 3, atol=1e-2)
    assert images(tmp_path, grey=True).patch_shape == (5, 5, 1)
    (tmp_path / "deeper" / "b.png").unlink()
    assert images(tmp_path).patch_shape == (5, 5, 1)


def test_sixteen_bits_are_kept(tmp_path):
    pixels = save(tmp_path / "a.png", 8, 9, dtype=np.uint16)
    source = images(tmp_path, patch=1, standardise="none")
    rows = source.take(np.arange(72)) + source.mean
    np.testing.assert_allclose(rows[:, 0], pixels.ravel() / 65535, atol=1e-6)


def test_sixteen_bits_beside_eight_become_eight(tmp_path):
    deep = save(tmp_path / "a.png", 8, 9, dtype=np.uint16)
    save(tmp_path / "b.png", 8, 9, 3)
    source = images(tmp_path, patch=1, standardise="none")
    rows = source.take(np.arange(72)) + source.mean
    np.testing.assert_allclose(rows * 255, np.repeat(deep.reshape(-1, 1) >> 8, 3, axis=1), atol=1e-3)


WIDE = {
    "signed 16 bits": (np.array([-1000, -1, 0, 1000], np.int16), "I;16S"),
    "32 bits": (np.array([1, 464, 66000, 70000], np.int32), None),
    "floating point": (np.array([-0.5, 0.0, 0.25, 1e6], np.float32), None),
}


def write_signed(path, pixels):
    """A TIFF of signed 16-bit pixels, which Pillow reads and does not write: little-endian, one strip."""
    rows, cols = pixels.shape
    data = pixels.astype("<i2").tobytes()
    entries = [
        (256, 3, cols),
        (257, 3, rows),
        (258, 3, 16),
        (259, 3, 1),
        (262, 3, 1),
        (273, 4, 8),
        (277, 3, 1),
    ]
    entries += [(278, 3, rows), (279, 4, len(data)), (339, 3, 2)]
    place = 8 + len(data)
    tags = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    head = struct.pack("<2sHI", b"II", 42, place)
    path.write_bytes(head + data + struct.pack("<H", len(entries)) + tags + bytes(4))


@pytest.mark.parametrize("name", WIDE)
def test_wide_pixels_keep_their_values(tmp_path, name):
    pixels = np.repeat(WIDE[name][0][None], 4, axis=0)
    if name == "signed 16 bits":
        write_signed(tmp_path / "a.tif", pixels)
    else:
        Image.fromarray(pixels).save(tmp_path / "a.tif")
    source = images(tmp_path, patch=1, standardise="none")
    raw = np.concatenate(list(source.blocks(raw=True)))
    np.testing.assert_array_equal(raw.reshape(4, 4), pixels.astype(np.float64))
    np.testing.assert_allclose(source.mean, pixels.mean(), rtol=1e-12)


def test_pixels_of_no_known_range_are_not_mixed_with_others(tmp_path):
    Image.fromarray(np.ones((8, 8), np.float32)).save(tmp_path / "a.tif")
    save(tmp_path / "b.png", 8, 8)
    with pytest.raises(
        InputError, match=r"a\.tif has signed, 32-bit or floating point pixels, .*b\.png has 8 bits"
    ):
        images(tmp_path)
    Image.fromarray(np.full((8, 8), np.nan, np.float32)).save(tmp_path / "a.tif")
    (tmp_path / "b.png").unlink()
    with pytest.raises(InputError, match="NaN or infinite"):
        images(tmp_path)


def test_every_page_of_a_tiff_is_a_picture(tmp_path):
    pages = [Image.fromarray(RNG.integers(0, 256, (12, 12)).astype(np.uint8)) for _ in range(5)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    source = images(tmp_path)
    assert source.n == 720
    last = source.take(np.array([719]), raw=True)[0].reshape(5, 5) * 255
    np.testing.assert_allclose(last[2, 2], np.asarray(pages[4])[11, 11])
    assert images(tmp_path, recognise=False).n == 144
    assert images(tmp_path, patch=0).n == 5


@pytest.mark.parametrize("suffix", ["png", "tif", "jpg"])
def test_a_picture_stands_upright(tmp_path, suffix):
    """Orientation 6: the camera was turned; rows of the picture are columns of the file, from below."""
    stored = np.arange(64, dtype=np.uint8).reshape(8, 8)[:, :6]
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(stored).save(tmp_path / f"a.{suffix}", exif=exif, quality=100)
    source = images(tmp_path, patch=1, standardise="none")
    shown = (source.take(np.arange(48), raw=True)[:, 0] * 255).reshape(6, 8)
    np.testing.assert_allclose(shown, np.rot90(stored, -1), atol=6 if suffix == "jpg" else 1e-6)
    if suffix != "jpg":
        np.testing.assert_allclose(shown[0, :4], [56, 48, 40, 32])
    if suffix == "png":
        as_stored = images(tmp_path, patch=1, standardise="none", recognise=False)
        np.testing.assert_allclose(as_stored.take(np.arange(4), raw=True)[:, 0] * 255, [0, 1, 2, 3])


def test_hidden_files_are_passed_over(tmp_path):
    save(tmp_path / "a.png", 8, 8)
    (tmp_path / "._a.png").write_bytes(b"Mac OS X resource fork")
    (tmp_path / ".thumbs").mkdir()
    save(tmp_path / ".thumbs" / "b.png", 8, 8)
    assert images(tmp_path).n == 64
    with pytest.raises(InputError, match=r"\._a\.png has the name of an image"):
        images(tmp_path, recognise=False)


def test_transparent_pixels_are_black_as_the_padding_is(tmp_path):
    pixels = np.full((6, 6, 4), 200, np.uint8)
    pixels[..., 3] = 255
    pixels[2, 3, 3] = 0
    Image.fromarray(pixels).save(tmp_path / "a.png")
    shown = images(tmp_path, patch=1, standardise="none").take(np.arange(36), raw=True).reshape(6, 6, 3) * 255
    assert shown[2, 3].max() == 0 and shown[2, 2].min() == pytest.approx(200)


def test_a_large_picture_is_let_in_by_a_key(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)
    save(tmp_path / "a.png", 12, 12)
    with pytest.raises(InputError, match=r"a\.png has more than 0 megapixels: .* data\.max_pixels="):
        images(tmp_path)
    assert images(tmp_path, max_pixels=144).n == 144
    with pytest.raises(InputError, match=r"data\.max_pixels="):
        images(tmp_path, max_pixels=143)
    assert Image.MAX_IMAGE_PIXELS == 40


def test_a_long_decoding_is_announced(tmp_path, monkeypatch, caplog):
    for i in range(3):
        save(tmp_path / f"{i}.png", 8, 8)
    images(tmp_path)
    assert "to decode" not in caplog.text
    monkeypatch.setattr(progress, "MEASURED_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LONG_SECONDS", 0.0)
    images(tmp_path)
    assert "2 more pictures to decode: about" in caplog.text


def test_large_patches_have_their_axes_without_a_covariance(tmp_path):
    save(tmp_path / "a.png", 100, 101)
    source = images(tmp_path, patch=96, padding="valid")
    assert (source.n, source.p) == (30, 9216)
    x = source.take(np.arange(30)).astype(np.float64)
    s = np.linalg.svd(x - x.mean(0), compute_uv=False)
    np.testing.assert_allclose(source.leading_axes(5).values[:5], s[:5] ** 2 / 30, rtol=1e-5)
    with pytest.raises(InputError, match=r"all principal axes of 9216 features would take 0\.7 GB"):
        source.principal_axes()


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
    with pytest.raises(InputError, match=r"a\.png has the name of an image"):
        images(tmp_path)
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    with pytest.raises(InputError, match=r"sigmapca data .*a\.csv"):
        images(tmp_path / "a.csv")


def test_many_small_pictures_are_summed_up_together(tmp_path, monkeypatch):
    for i in range(7):
        save(tmp_path / f"{i}.png", 9 if i < 5 else 12, 8)
    together, summed = [], folder.patch_moments

    def counted(stack, *words):
        together.append(len(stack))
        return summed(stack, *words)

    monkeypatch.setattr(folder, "patch_moments", counted)
    alone = images(tmp_path)
    covariance = alone.moments().second
    assert together == [1] * 7
    monkeypatch.setattr(folder, "MANY", 3)
    found = images(tmp_path)
    np.testing.assert_allclose(found.moments().second, covariance, atol=1e-15)
    assert together[7:] == [5, 1, 1]
    assert found.hash == alone.hash  # which has means and variances to the last bit

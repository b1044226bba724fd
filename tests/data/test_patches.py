"""Patches: layout, padding, exact moments without the matrix, thread safety, halves."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.images.cifar import load
from sigmapca_cli.data.images.patches import PatchSource, patch_source
from sigmapca_cli.data.moments.of_patches import patch_moments
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)


def naive_patches(images, patch, stride, pad):
    """The definition, pixel by pixel."""
    padded = np.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    rows = range(0, padded.shape[1] - patch + 1, stride)
    cols = range(0, padded.shape[2] - patch + 1, stride)
    return np.array([im[i : i + patch, j : j + patch].ravel() for im in padded for i in rows for j in cols])


GEOMETRIES = [
    # N, H, W, C, patch, stride, pad: each route of patch_moments, and shapes that divide nothing
    (3, 12, 9, 3, 5, 1, 2),
    (3, 12, 9, 1, 5, 1, 0),
    (2, 13, 11, 3, 4, 3, 0),
    (2, 8, 8, 3, 8, 1, 0),
    (1, 90, 71, 3, 5, 1, 2),
    (1, 75, 81, 1, 3, 2, 1),
    (2, 20, 100, 1, 3, 1, 1),
]


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_moments_equal_those_of_the_patch_matrix(geometry, dtype):
    N, H, W, C, patch, stride, pad = geometry
    images = RNG.integers(0, 256, (N, H, W, C)).astype(dtype)
    X = naive_patches(images, patch, stride, pad).astype(np.float64)
    full = patch_moments(images, patch, stride, pad, diagonal=False)
    diagonal = patch_moments(images, patch, stride, pad, diagonal=True)
    assert full.n == diagonal.n == len(X)
    np.testing.assert_allclose(full.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(full.second, np.cov(X.T, bias=True), rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(diagonal.second, X.var(axis=0), rtol=1e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_rows_are_the_standardised_patches_in_order(geometry):
    N, H, W, C, patch, stride, pad = geometry
    images = RNG.integers(0, 256, (N, H, W, C)).astype(np.uint8)
    source = PatchSource("test", images, patch, stride, pad, Standardisation(epsilon=1e-3))
    X = naive_patches(images, patch, stride, pad) / 255
    index = RNG.permutation(len(X))[:50]
    expected = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0) + 1e-3)
    np.testing.assert_allclose(source.take(index), expected[index], atol=1e-5)
    np.testing.assert_allclose(np.concatenate(list(source.blocks(7))), expected, atol=1e-5)


def test_feature_order_and_centre_pixel():
    """Feature (11 r + c)·3 + channel; the centre pixel of an 11 × 11 patch at 180–182 (cases 37)."""
    images = RNG.integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
    source = PatchSource("test", images, 11, 1, 5, Standardisation("none"))
    assert (source.n, source.p, source.patch_shape) == (2048, 363, (11, 11, 3))
    raw = source.take(np.array([1024 + 32 * 20 + 9])) + source.mean
    np.testing.assert_allclose(raw[0, 180:183] * 255, images[1, 20, 9], atol=1e-3)
    assert np.allclose(raw[0, (11 * 2 + 7) * 3 + 1] * 255, images[1, 20 - 3, 9 + 2, 1], atol=1e-3)


def test_out_is_written_and_returned():
    source = build(DataConfig(images=4))
    index = np.arange(0, 4000, 37)
    out = np.empty((len(index), source.p), np.float32)
    assert source.take(index, out=out) is out
    assert np.array_equal(out, source.take(index))


def test_threads_gather_the_same_rows():
    source = build(DataConfig(images=8))
    batches = [RNG.integers(0, source.n, 128) for _ in range(40)]
    alone = [source.take(index) for index in batches]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(source.take, batches))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_halves_are_disjoint_and_make_the_whole():
    options = {"images": 10, "standardise": "none", "padding": "valid", "stride": 7}
    whole, even, odd = (build(DataConfig(half=half, **options)) for half in ("all", "even", "odd"))
    assert even.n == odd.n == whole.n // 2
    assert np.array_equal(even.images, whole.images[::2]) and np.array_equal(odd.images, whole.images[1::2])
    assert len({whole.hash, even.hash, odd.hash}) == 3


def test_random_choice_depends_on_the_seed_alone():
    first, again, other = (
        build(DataConfig(images=5, select="random", seed=seed)).images for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_constant_features_are_exactly_zero():
    images = RNG.integers(0, 256, (20, 6, 6, 1)).astype(np.uint8)
    images[:, 0, 0] = 77
    for epsilon in (None, 0.0, 1e-3):
        source = PatchSource("test", images, 6, 1, 0, Standardisation(epsilon=epsilon))
        rows = source.take(np.arange(source.n))
        assert np.all(rows[:, 0] == 0) and np.all(np.isfinite(rows)) and rows[:, 1:].any(axis=0).all()
        assert not source.covariance()[1][0].any()


def test_an_even_patch_has_no_middle_and_no_padding():
    images = np.random.default_rng(0).integers(0, 256, (2, 9, 9, 1), dtype=np.uint8)
    same, valid = (
        patch_source("test", images, DataConfig(patch=8, padding=word)) for word in ("same", "valid")
    )
    assert same.n == valid.n == 2 * 2 * 2 and same.hash == valid.hash


def test_patch_larger_than_the_images_is_refused():
    with pytest.raises(InputError, match="larger than the images"):
        patch_source("test", np.zeros((2, 9, 9, 1), np.uint8), DataConfig(patch=11, padding="valid"))


def test_cifar_patches_have_the_recorded_variances(shared_data):
    """First 500 training images: total variance 358.47, and 19.518 beyond 32 components."""
    images = load(shared_data / "cifar-10-batches-py", "cifar10", limit=500)
    source = patch_source("cifar10", images, DataConfig(images=500, epsilon=1e-3))
    assert (source.n, source.p) == (512_000, 363)
    values = np.linalg.eigvalsh(source.covariance()[1])
    assert values.sum() == pytest.approx(358.47, abs=0.01)
    assert values[:-32].sum() == pytest.approx(19.518, abs=0.001)

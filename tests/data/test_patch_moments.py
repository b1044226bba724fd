"""Exact moments of all patches: the sums by bands of rows, beside the patches themselves."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from sigmapca_cli.data.moments.of_patches import patch_moments


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("patch", "stride", "pad"), [(5, 1, 2), (6, 4, 0), (9, 7, 4), (3, 8, 1)])
def test_sums_by_bands_of_rows_have_the_bits_of_the_whole(monkeypatch, dtype, patch, stride, pad):
    """The bits of means and variances are part of the hash of the data."""
    images = (np.random.default_rng(0).random((3, 41, 30, 3)) * 255).astype(dtype)
    whole = patch_moments(images, patch, stride, pad, diagonal=True)
    monkeypatch.setattr("sigmapca_cli.data.moments.of_patches.BAND_ENTRIES", 1500)
    bands = patch_moments(images, patch, stride, pad, diagonal=True)
    assert (whole.mean == bands.mean).all() and (whole.second == bands.second).all()
    padded = np.pad(images.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    view = sliding_window_view(padded, (patch, patch), axis=(1, 2))[:, ::stride, ::stride]
    rows = view.transpose(0, 1, 2, 4, 5, 3).reshape(-1, patch * patch * 3)
    np.testing.assert_allclose(bands.mean, rows.mean(0), rtol=1e-12)
    np.testing.assert_allclose(bands.second, rows.var(0), rtol=1e-9)

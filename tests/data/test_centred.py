"""Products with centred rows, by blocks of rows and by slices of features, beside the dense ones."""

import numpy as np

from sigmapca_cli.data.moments import centred_rows
from sigmapca_cli.data.moments.accumulate import largest_entries
from sigmapca_cli.data.moments.centred_rows import CentredRows
from sigmapca_cli.data.moments.eigenpairs import orthonormal_basis
from sigmapca_cli.data.moments.implicit import multiple_of


def test_products_are_those_of_the_dense_rows(monkeypatch):
    for name, value in {
        "PRODUCT_ENTRIES": 8000,
        "READ_ENTRIES": 7000,
        "TILE_ENTRIES": 900,
        "GRAM_WIDTH": 30,
        "BLOCK_ROWS": 13,
        "READS": 3,
    }.items():
        monkeypatch.setattr(centred_rows, name, value)
    random = np.random.default_rng(0)
    raw = (random.standard_normal((50, 400)) + 1e3).astype(np.float32)
    mean, gain = raw.mean(0, dtype=np.float64), random.uniform(0.5, 2, 400)
    W, U = random.standard_normal((400, 3)), random.standard_normal((50, 2))
    x = (raw * 0.5 - mean) * gain
    rows = CentredRows(lambda part: raw[part], 50, 400, 0.5, mean, gain)
    scale = np.abs(x).max() ** 2
    assert np.allclose(rows.times(W), x.T @ (x @ W), rtol=0, atol=1e-11 * scale)
    assert np.allclose(np.concatenate(list(rows.projections(W))), x @ W, rtol=1e-11)
    assert np.allclose(rows.gram(), x @ x.T, rtol=0, atol=1e-11 * scale)
    assert np.allclose(rows.transposed(U), x.T @ U, rtol=0, atol=1e-11 * scale)


def test_dependent_columns_still_get_an_orthonormal_basis():
    V = np.random.default_rng(0).standard_normal((500, 4))
    V[:, 3] = V[:, 0]
    for A in (V[:, :3], V):
        Q = orthonormal_basis(A)
        assert np.abs(Q.T @ Q - np.eye(A.shape[1])).max() < 1e-14
        assert np.abs(A - Q @ (Q.T @ A)).max() < 1e-12


def test_only_multiples_of_known_columns_need_no_product():
    W = np.random.default_rng(0).standard_normal((40_000, 3))
    size = multiple_of(W, largest_entries(W), W / [3.0, 7.0, -0.1])
    assert size is not None and np.allclose(size, [1 / 3, 1 / 7, -10], rtol=1e-14)
    other = W.copy()
    other[-1, 1] *= 1 + 1e-12
    assert multiple_of(W, largest_entries(W), other) is None

"""Data at the edges of what is allowed, trained to the end: a finite answer with its invariants, or one line."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from composing import composed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mechanisms import every

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.runner.run import run
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)
WAYS = {
    "nlpca": ("model=nlpca", "steps=12"),
    "pca": ("model=pca_svd",),
    "newton": ("model=nlpca", "solver=newton"),
    "lica": ("model=lica", "steps=12"),
}
EXACT = ("pca", "newton")  # orthonormal at the end, however few the steps


def trained(folder: Path, x: np.ndarray, way: str, *overrides: str) -> StoredRun:
    """The run of a method on these rows."""
    path = folder / "x.npy"
    np.save(path, x)
    given = ("data=array", f"data.path='{path}'", f"outputs='{folder}'", "threads=1", *WAYS[way], *overrides)
    return StoredRun.open(run(job_of(composed(*given))))


def check(found: StoredRun, x: np.ndarray, k: int, way: str) -> None:
    """What holds of every solution."""
    W, sigma = found.filters, found.sigma
    assert W.shape == (x.shape[1], k) and sigma.shape == (k,)
    for array in (W, sigma, found.encoder, found.decoder, found.mean, found.scale):
        assert np.isfinite(array).all()
    assert (sigma >= 0).all() and (np.diff(sigma) <= 1e-5 * sigma[0]).all()
    if way in EXACT:
        np.testing.assert_allclose(W.T @ W, np.eye(k), atol=2e-5)
    if way in ("nlpca", "pca", "newton"):
        np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1, atol=2e-5)
    for name in ("reconstruction_error", "explained_variance", "orthogonality_error", "sigma_error"):
        assert np.isfinite(found.evaluation[name])


def laplace(n: int, p: int) -> np.ndarray:
    return RNG.laplace(size=(n, p)) * np.linspace(2, 1, p)


CASES = {
    "p = 1": (laplace(200, 1), 1),
    "k = 1": (laplace(200, 5), 1),
    "k = p": (laplace(200, 5), 5),
    "fewer rows than a batch": (laplace(40, 5), 3),
    "a last batch of one row": (laplace(129, 5), 3),
    "integers": (RNG.integers(-100, 100, (200, 5)), 3),
    "bytes": (RNG.integers(0, 255, (200, 5)).astype(np.uint8), 3),
    "booleans": (RNG.integers(0, 2, (200, 5)).astype(bool), 3),
    "float16": (laplace(200, 5).astype(np.float16), 3),
    "big-endian": (laplace(200, 5).astype(">f8"), 3),
    "Fortran order": (np.asfortranarray(laplace(200, 5)), 3),
    "a constant column": (np.c_[laplace(200, 4), np.full(200, 7.0)], 3),
    "a duplicated column": (laplace(200, 4)[:, [0, 1, 2, 3, 3]], 4),
    "of rank 3": (laplace(200, 3) @ RNG.normal(size=(3, 6)), 3),
    "times 1e-12": (laplace(200, 5) * 1e-12, 3),
    "times 1e12": (laplace(200, 5) * 1e12, 3),
    "plus 1e6": (laplace(200, 5) + 1e6, 3),
    "rows in a few copies": (np.repeat(laplace(12, 5), 20, axis=0), 3),
    "one outlier": (np.r_[laplace(200, 5), np.full((1, 5), 1e6)], 3),
}


ORDINARY = [
    ("p = 1", "nlpca"), ("k = p", "newton"), ("a last batch of one row", "nlpca"), ("bytes", "nlpca"),
    ("a constant column", "nlpca"), ("of rank 3", "newton"), ("times 1e-12", "nlpca"), ("plus 1e6", "newton"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "way"), every(product(CASES, ("nlpca", "pca", "newton")), ORDINARY))
def test_a_finite_answer(case, way, tmp_path):
    x, k = CASES[case]
    check(trained(tmp_path, x, way, f"k={k}"), x, k, way)


@pytest.mark.parametrize("case", every(["k = p", "a duplicated column", "times 1e-12"], []))
def test_a_second_rotation_too(case, tmp_path):
    x, k = CASES[case]
    check(trained(tmp_path, x, "lica", f"k={k}"), x, k, "lica")


REFUSED = {
    "rank 3, k = 4": (laplace(200, 3) @ RNG.normal(size=(3, 6)), 4, "rank"),
    "k above p": (laplace(200, 5), 6, "k = 6"),
    "n = k": (laplace(5, 8), 5, "rank|rows|samples"),
    "one row": (laplace(1, 5), 1, "1 sample"),
    "all rows equal": (np.tile(laplace(1, 5), (200, 1)), 2, "constant|vary"),
    "times 1e-300": (laplace(200, 5) * 1e-300, 3, "too small"),
    "times 1e300": (laplace(200, 5) * 1e300, 3, "too large"),
    "NaN": (np.where(np.eye(200, 5) > 0, np.nan, laplace(200, 5)), 3, "NaN at row 0, column 0"),
    "infinity": (np.where(np.eye(200, 5) > 0, np.inf, laplace(200, 5)), 3, "infinity at row 0"),
}


@pytest.mark.parametrize("case", every(REFUSED, ["rank 3, k = 4", "k above p", "times 1e-300", "NaN"]))
def test_a_refusal_in_one_line(case, tmp_path):
    x, k, words = REFUSED[case]
    for way in ("nlpca", "newton"):
        with pytest.raises(InputError, match=words) as caught:
            trained(tmp_path, x, way, f"k={k}")
        assert "\n" not in str(caught.value)


@pytest.mark.full
@settings(
    max_examples=8, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(
    n=st.integers(2, 300), p=st.integers(1, 12), k=st.integers(1, 12), batch=st.integers(2, 300),
    way=st.sampled_from(("nlpca", "newton", "pca")), scale=st.sampled_from((1e-12, 1.0, 1e12)),
    offset=st.sampled_from((0.0, 1e6)),
)  # fmt: skip
def test_any_shape_is_answered_or_refused(tmp_path, n, p, k, batch, way, scale, offset):
    x = RNG.laplace(size=(n, p)) * scale + offset * scale
    try:
        found = trained(tmp_path, x, way, f"k={k}", f"batch_size={batch}", "if_exists=new")
    except InputError as problem:
        assert "\n" not in str(problem)
        assert k >= min(n, p) or way == "newton", problem  # nothing else is wrong with these data
        return
    check(found, x, k, way)


@pytest.mark.parametrize("way", ["pca", "newton"])
def test_scale_and_offset_do_not_change_the_axes(way, tmp_path):
    x = laplace(500, 5)
    plain = trained(tmp_path, x, way, "k=3", "data.standardise=none")
    for changed in (x * 1e-12, x * 1e12, x + 1e6):
        other = trained(tmp_path, changed, way, "k=3", "data.standardise=none")
        np.testing.assert_allclose(np.abs(plain.filters.T @ other.filters), np.eye(3), atol=1e-4)

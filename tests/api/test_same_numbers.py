"""A stored solution gives the same numbers to new rows by command, by `Run` and by the estimator made of the run."""

from pathlib import Path

import h5py
import numpy as np
import pandas
import pytest
from mechanisms import every
from scipy import sparse
from shell import run_command

import sigmapca_cli as sp

G = np.random.default_rng(0)
MIXED = G.laplace(size=(600, 3)) @ G.standard_normal((3, 6)) + 0.1 * G.standard_normal((600, 6)) + 5
HOLES = np.where(G.random(MIXED.shape) < 0.05, np.nan, MIXED)
COUNTS = sparse.random(600, 8, 0.2, "csr", random_state=1)
WIDE = G.standard_normal((60, 4)) @ G.standard_normal((4, 2100)) + 0.1 * G.standard_normal((60, 2100))
PIXELS = {
    "data": "natural",
    "data__images": 3,
    "data__stride": 16,
    "data__padding": "valid",
    "model": "pca_svd",
}
BYTES = G.integers(0, 256, (40, 363)).astype(np.uint8)
TABLE = pandas.DataFrame(MIXED, columns=list("abcdef"))
NEWTON = {"solver": "newton"}
SVD = {"model": "pca_svd"}

# name: (data of the run, its settings, new rows, whether it has an estimator)
CASES = {
    "uint8 pixels": (None, PIXELS, BYTES, True),
    "uint8 pixels, scaled": (None, {**PIXELS, "data__standardise": "feature"}, BYTES, True),
    "float pixels": (None, PIXELS, BYTES / 255, True),
    "missing=mean": (HOLES, {**NEWTON, "data__missing": "mean"}, HOLES[:40], True),
    "missing=mean, table": (TABLE.where(TABLE > 1), {**SVD, "data__missing": "mean"}, TABLE.where(TABLE > 2), True),
    "missing=drop": (HOLES, {**NEWTON, "data__missing": "drop"}, HOLES[:40], True),
    "missing=ppca": (HOLES, {**NEWTON, "data__missing": "ppca"}, HOLES[:40], True),
    "sparse": (COUNTS, NEWTON, COUNTS[:50], True),
    "sparse after dense": (COUNTS.toarray(), NEWTON, COUNTS[:50], True),
    "sparse, clip": (COUNTS.toarray(), {**NEWTON, "data__clip": 0.05}, COUNTS[:50], False),
    "scaled": (MIXED * [1, 10, 1, 1, 1, 100], {**NEWTON, "data__standardise": "feature"}, MIXED[:50], True),
    "clip": (MIXED, {**NEWTON, "data__clip": 0.05}, MIXED[:50] * 3, False),
    "whiten": (MIXED, {**NEWTON, "data__whiten": "zca"}, MIXED[:50], False),
    "wide whitening": (WIDE, {**SVD, "data__whiten": "pca", "data__whiten_rank": 4}, WIDE[:20], False),
    "lica": (MIXED, {**NEWTON, "model": "lica"}, MIXED[:50], False),
    "fastica": (MIXED, {"model": "fastica"}, MIXED[:50], True),
    "names in another order": (TABLE, NEWTON, TABLE[list("fedcba")].assign(more=0.0), False),
    "names that occur twice": (TABLE, NEWTON, TABLE.set_axis(list("aabcde"), axis=1), False),
    "one row": (MIXED, NEWTON, MIXED[:1], True),
    "integers": (np.rint(MIXED).astype(np.int16), NEWTON, np.rint(MIXED[:50]).astype(np.int16), True),
    "steps": (MIXED, {"steps": 50}, MIXED[:50], True),
}  # fmt: skip
ORDINARY = [
    "uint8 pixels", "missing=ppca", "sparse, clip", "scaled", "wide whitening", "lica", "names in another order",
    "names that occur twice", "one row", "steps",
]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGMAPCA_OUTPUTS", raising=False)


def file_of(X) -> str:
    """Write rows as a user would."""
    if isinstance(X, pandas.DataFrame) and X.columns.is_unique:
        X.to_csv("x.csv", index=False)
        return "x.csv"
    if sparse.issparse(X):
        sparse.save_npz("x.npz", X)
        return "x.npz"
    np.save("x.npy", X)
    return "x.npy"


def by_command(word: str, run: sp.Run, X) -> np.ndarray:
    done = run_command((word, str(run.folder), file_of(X), "y.npy", "--force"), Path.cwd(), {})
    assert done.returncode == 0, done.stderr
    return np.load("y.npy")


@pytest.mark.parametrize("case", every(CASES, ORDINARY))
def test_command_python_and_estimator_agree(case):
    data, settings, X, has_estimator = CASES[case]
    settings = {"k": 2, **settings}
    run = sp.train(**settings) if data is None else sp.train(data, **settings)
    Y, expected = run.transform(X), by_command("transform", run, X)
    assert Y.shape == (X.shape[0], 2)
    np.testing.assert_allclose(Y, expected, rtol=1e-9, atol=1e-9)
    whole = ~np.isnan(Y[:, 0])
    assert whole.any() and (whole.all() or settings["data__missing"] in ("drop", "ppca"))
    back = run.inverse_transform(Y[whole])
    np.testing.assert_allclose(back, by_command("reconstruct", run, Y[whole]), rtol=1e-9, atol=1e-9)
    if not has_estimator:
        if not case.startswith("names"):
            with pytest.raises(sp.InputError):
                run.to_sklearn()
        return
    estimator = run.to_sklearn()
    given = X if whole.all() else X[whole]
    np.testing.assert_allclose(estimator.transform(given), Y[whole], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(estimator.inverse_transform(Y[whole]), back, rtol=1e-9, atol=1e-9)


def test_the_rows_of_training_have_the_components_of_training():
    """What was done to new rows is what was done to the rows that the run was trained on."""
    for settings in ({"data__clip": 0.05}, {"data__missing": "mean"}, {"data__whiten": "zca"}):
        X = HOLES if "data__missing" in settings else MIXED
        run = sp.train(X, k=2, solver="newton", **settings)
        x = np.concatenate(list(run.source.blocks())).astype(np.float64)
        np.testing.assert_allclose(run.transform(X), x @ run.encoder, rtol=1e-4, atol=1e-4)


def test_values_that_no_run_takes_are_named_in_one_line():
    run = sp.train(MIXED, k=2, solver="newton")
    for X in (HOLES, np.where(np.isnan(HOLES), np.inf, HOLES), MIXED[:, :5], [["a"] * 6], MIXED[0]):
        with pytest.raises(sp.InputError) as problem:
            run.transform(X)
        assert "\n" not in str(problem.value)
    assert run.transform(MIXED[:0]).shape == (0, 2)


def test_names_that_identify_no_column_need_as_many_columns():
    run = sp.train(TABLE, k=2, solver="newton")
    twice = TABLE.assign(g=1.0).set_axis(list("aabcdef"), axis=1)
    with pytest.raises(sp.InputError):
        run.transform(twice)
    other = TABLE.assign(g=1.0, h=2.0).set_axis(
        [*"abcdef", "g", "g"], axis=1
    )  # the run asks for none of these
    np.testing.assert_array_equal(run.transform(other), run.transform(TABLE))


def test_sparse_rows_are_not_filled(monkeypatch):
    run = sp.train(COUNTS, k=2, solver="newton")
    monkeypatch.setattr(sparse.csr_matrix, "toarray", None)
    assert run.transform(COUNTS).shape == (600, 2)


def test_bytes_are_pixels_and_never_taken_for_numbers_by_the_estimator_alone():
    run = sp.train(**PIXELS, k=2)
    np.testing.assert_allclose(run.transform(BYTES), run.transform(BYTES / 255), rtol=1e-9, atol=1e-9)
    with pytest.raises(sp.InputError):
        sp.SigmaPCA.from_run(run)
    with h5py.File(run.path) as file:
        assert "patch_shape" in file["filters"].attrs

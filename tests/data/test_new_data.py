"""Missing values, clipping, several files, and new data that are read as the run's own were."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from array_sources import source_of, values
from PIL import Image
from scipy.io import wavfile

from sigmapca_cli.data import build
from sigmapca_cli.data.cleaning import repair
from sigmapca_cli.data.cleaning.imputation import by_ppca
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.on_disk import row_file
from sigmapca_cli.solution.new_rows import new_source
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(40, 3)) * [1, 2, 5] + [0, 10, -3], columns=["a", "b", "c"])


def run_on(source, **data):
    """What `new_source` asks of a run that was trained on a source."""
    return SimpleNamespace(
        config={"data": {"name": source.name, "recognise": True, **data}},
        names=None if source.names is None else list(source.names),
        patch_shape=source.patch_shape, mean=source.mean, filters=np.eye(source.p), clip=source.clip,
        encoder=np.eye(source.p), decoder=np.eye(source.p), scale=np.ones(source.p), whitening=None,
    )  # fmt: skip


@pytest.fixture(params=["memory", "disk"])
def place(request, monkeypatch):
    """The same in memory and streamed from disk."""
    if request.param == "disk":
        monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
        monkeypatch.setattr(repair, "VALUES_AT_ONCE", 21)
    return request.param


HOLES = FRAME.to_numpy().copy()
HOLES[3, 0] = HOLES[3, 1] = HOLES[17, 2] = np.nan


def test_rows_with_missing_values_are_left_out_or_filled(tmp_path, place, caplog):
    np.save(tmp_path / "a.npy", HOLES)
    with pytest.raises(
        InputError, match=r"\(3 such values in 2 rows\).*data\.missing=drop or data\.missing=mean"
    ):
        source_of(tmp_path / "a.npy")
    dropped = source_of(tmp_path / "a.npy", missing="drop")
    np.testing.assert_array_equal(values(dropped), np.delete(HOLES, [3, 17], axis=0))
    assert "3 missing values in 2 of 40 rows; those rows are left out" in caplog.text
    assert dropped.facts == {"missing_values": 3, "missing_rows": 2, "missing": "drop"}
    filled = source_of(tmp_path / "a.npy", missing="mean")
    np.testing.assert_allclose(filled.mean, np.nanmean(HOLES, axis=0))
    np.testing.assert_allclose(values(filled)[3, :2], np.nanmean(HOLES, axis=0)[:2])
    whole = source_of(tmp_path / "a.npy", missing="drop", half="even")
    np.testing.assert_array_equal(values(whole), np.delete(HOLES, [3, 17], axis=0)[::2])


def test_infinity_is_an_error_and_no_missing_value(tmp_path):
    np.save(tmp_path / "a.npy", np.where(np.isnan(HOLES), np.inf, HOLES))
    with pytest.raises(InputError, match="infinity at row 3, column 0"):
        source_of(tmp_path / "a.npy", missing="mean")


def test_after_rows_are_left_out_lines_still_count_as_in_the_file(tmp_path):
    rows = [f"{a},{b}" for a, b in RNG.normal(size=(30, 2)).tolist()]
    rows[4], rows[9] = ",1", "inf,2"
    (tmp_path / "a.csv").write_text("x,y\n" + "\n".join(rows))
    with pytest.raises(InputError, match="infinity on line 11, in column 'x'"):
        source_of(tmp_path / "a.csv", missing="drop")


def test_a_column_without_any_value_is_named(tmp_path):
    FRAME.assign(empty=np.nan).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match=r"column empty has no value at all: .*data\.drop=empty"):
        source_of(tmp_path / "a.csv", missing="mean")
    few = np.full((4, 2), np.nan)
    few[0] = 1
    few[1, 0] = few[2, 1] = 1
    np.save(tmp_path / "b.npy", few)
    with pytest.raises(InputError, match=r"would leave 1 rows; use data\.missing=mean"):
        source_of(tmp_path / "b.npy", missing="drop")


def test_clipping_is_to_the_quantiles_of_each_column(tmp_path, place):
    X = FRAME.to_numpy().copy()
    X[5, 1] = 1e6
    np.save(tmp_path / "a.npy", X)
    source = source_of(tmp_path / "a.npy", clip=0.05)
    bounds = np.quantile(X, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(source.clip, bounds)
    np.testing.assert_allclose(values(source), np.clip(X, *bounds))
    assert source.facts["clipped_values"] == 12
    whole = source_of(tmp_path / "a.npy")
    assert whole.clip is None and source.hash != whole.hash


def test_several_files_are_one(tmp_path, place):
    for i in range(11):
        FRAME.iloc[i::11].to_csv(tmp_path / f"part-{i}.csv")
    expected = pd.concat([FRAME.iloc[i::11] for i in range(11)])
    (tmp_path / "_SUCCESS").touch()
    for path in (tmp_path, tmp_path / "part-*.csv"):
        source = source_of(path)
        assert source.names == ("a", "b", "c")
        np.testing.assert_allclose(values(source), expected, rtol=1e-12)
    listed = source_of([tmp_path / f"part-{i}.csv" for i in (2, 0)])
    np.testing.assert_allclose(values(listed), pd.concat([FRAME.iloc[2::11], FRAME.iloc[0::11]]))


def test_files_that_do_not_fit_together_are_named(tmp_path):
    FRAME.to_csv(tmp_path / "1.csv", index=False)
    FRAME[["c", "a", "b"]].to_csv(tmp_path / "2.csv", index=False)
    source = source_of(tmp_path)
    np.testing.assert_allclose(values(source)[40:], FRAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_file, "MEMORY_LIMIT", 0)
        np.testing.assert_array_equal(values(source_of(tmp_path)), values(source))
    FRAME[["c", "a"]].to_csv(tmp_path / "3.csv", index=False)
    with pytest.raises(InputError, match=r"3\.csv has no column b, unlike .*1\.csv"):
        source_of(tmp_path)
    np.save(tmp_path / "4.npy", FRAME)
    with pytest.raises(InputError, match=r"holds files of several kinds \(\.csv, \.npy\)"):
        source_of(tmp_path)
    with pytest.raises(InputError, match="no file matches this pattern"):
        source_of(tmp_path / "x-*.csv")
    with pytest.raises(InputError, match="only data=array and data=moments take a list of files"):
        DataConfig(name="images", path=["a", "b"])


def test_new_columns_are_taken_by_name(tmp_path):
    FRAME.to_csv(tmp_path / "train.csv", index=False)
    run = run_on(source_of(tmp_path / "train.csv"))
    FRAME.assign(label="x", extra=1)[["label", "c", "extra", "a", "b"]].to_csv(tmp_path / "new.csv")
    np.testing.assert_allclose(values(new_source(run, str(tmp_path / "new.csv"))), FRAME)
    FRAME[["c", "a", "b"]].to_parquet(tmp_path / "new.parquet")
    np.testing.assert_allclose(values(new_source(run, str(tmp_path / "new.parquet"))), FRAME)
    np.save(tmp_path / "new.npy", FRAME)  # no names: by position
    np.testing.assert_allclose(values(new_source(run, str(tmp_path / "new.npy"))), FRAME)
    FRAME[["a", "c"]].to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(InputError, match="has no column b, which the run was trained on"):
        new_source(run, str(tmp_path / "less.csv"))
    np.save(tmp_path / "wide.npy", np.zeros((3, 4)))
    with pytest.raises(InputError, match="rows have 4 numbers, this run needs 3"):
        new_source(run, str(tmp_path / "wide.npy"))


def test_one_new_row_is_enough(tmp_path):
    FRAME.to_csv(tmp_path / "train.csv", index=False)
    run = run_on(source_of(tmp_path / "train.csv"))
    FRAME.iloc[:1].to_csv(tmp_path / "one.csv", index=False)
    assert new_source(run, str(tmp_path / "one.csv")).n == 1


def test_new_data_are_read_with_the_keys_of_the_run_unless_told_otherwise(tmp_path):
    np.savez(tmp_path / "a.npz", x=FRAME.T, y=np.zeros((3, 9)))
    run = run_on(source_of(tmp_path / "a.npz", key="x", transpose=True), key="x", transpose=True)
    np.testing.assert_allclose(values(new_source(run, str(tmp_path / "a.npz"))), FRAME)
    assert new_source(run, str(tmp_path / "a.npz"), {"key": "y"}).n == 9
    (tmp_path / "a.csv").write_text("1;2;3\n4;5;7\n6;5;4\n")
    plain = run_on(source_of(tmp_path / "a.csv"), header="no")
    (tmp_path / "b.csv").write_text("0;1;2\n4.5;5;7\n9;1;3\n")
    assert new_source(plain, str(tmp_path / "b.csv")).n == 3
    assert new_source(plain, str(tmp_path / "b.csv"), {"header": "auto"}).n == 2


def test_missing_values_of_new_rows_are_filled_by_the_means_of_training(tmp_path):
    np.save(tmp_path / "train.npy", FRAME)
    np.save(tmp_path / "new.npy", HOLES[:10])
    source = source_of(tmp_path / "train.npy")
    filled = new_source(run_on(source, missing="mean"), str(tmp_path / "new.npy"), aligned=True)
    np.testing.assert_allclose(values(filled)[3, :2], source.mean[:2])
    assert filled.incomplete is None
    dropped = new_source(run_on(source, missing="drop"), str(tmp_path / "new.npy"), aligned=True)
    assert dropped.n == 10 and dropped.incomplete.tolist() == [i == 3 for i in range(10)]
    assert new_source(run_on(source, missing="drop"), str(tmp_path / "new.npy")).n == 9
    with pytest.raises(InputError, match="NaN at row 3"):
        new_source(run_on(source), str(tmp_path / "new.npy"))


def test_pixels_are_on_the_scale_of_training(tmp_path, caplog):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(2):
        Image.fromarray(RNG.integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    options = {"patch": 3, "grey": False, "stride": 2, "padding": "valid"}
    trained = build(DataConfig(name="images", path=str(folder), **options))
    run = run_on(trained, **options)
    again = new_source(run, str(folder))
    np.testing.assert_allclose(values(again), values(trained))
    pixels = np.rint(values(trained) * 255)
    np.save(tmp_path / "bytes.npy", pixels.astype(np.uint8))
    np.testing.assert_allclose(values(new_source(run, str(tmp_path / "bytes.npy"))), pixels / 255)
    np.save(tmp_path / "floats.npy", pixels / 255)
    np.testing.assert_allclose(values(new_source(run, str(tmp_path / "floats.npy"))), pixels / 255)
    assert "divide them by 255" not in caplog.text
    np.save(tmp_path / "wrong.npy", pixels)
    new_source(run, str(tmp_path / "wrong.npy"))
    assert "divide them by 255" in caplog.text
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    table = run_on(source_of(tmp_path / "a.csv"))
    with pytest.raises(InputError, match="holds pictures, but this run was trained on array"):
        new_source(table, str(folder))


def test_sounds_are_taken_as_mixtures(tmp_path):
    sound = RNG.integers(-3000, 3000, (500, 3)).astype(np.int16)
    wavfile.write(tmp_path / "a.wav", 8000, sound)
    trained = build(DataConfig(name="signals", path=str(tmp_path / "a.wav"), mix=False))
    again = new_source(run_on(trained), str(tmp_path / "a.wav"))
    np.testing.assert_allclose(values(again), sound / 32768)
    assert again.sample_rate == 8000


def low_rank(n=600, share=0.05):
    """Rows of a rank-3 covariance with noise, in units that differ; their covariance; what is missing."""
    A = RNG.normal(size=(8, 3))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    C = A @ A.T + 0.05 * np.eye(8)
    unit = np.array([1, 10, 1000, 1e-3, 1, 1, 5, 1])
    X = RNG.multivariate_normal(np.arange(8), C, n) * unit
    return X, np.arange(8) * unit, C * np.outer(unit, unit), RNG.uniform(size=X.shape) < share


def test_ppca_fills_nearly_as_well_as_the_true_distribution_does(tmp_path):
    X, mean, C, missing = low_rank()
    filled, k, iterations = by_ppca(np.where(missing, np.nan, X))
    assert 3 <= k < 8 and iterations < 200
    np.testing.assert_array_equal(filled[~missing], X[~missing])
    best = X.copy()
    for i in np.flatnonzero(missing.any(axis=1)):
        u, o = missing[i], ~missing[i]
        best[i, u] = mean[u] + np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, u)]).T @ (X[i, o] - mean[o])
    scale = np.sqrt(np.diag(C))

    def error(guess):
        return np.sqrt(np.mean(((guess - X) / scale)[missing] ** 2))

    by_mean = np.broadcast_to(X.mean(axis=0), X.shape)
    assert error(filled) < 1.1 * error(best) < 0.5 * error(by_mean)
    np.save(tmp_path / "a.npy", np.where(missing, np.nan, X))
    source = source_of(tmp_path / "a.npy", missing="ppca")
    np.testing.assert_allclose(values(source), filled)
    assert source.facts["missing_components"] == k and source.facts["missing_values"] == missing.sum()
    again = new_source(run_on(source, missing="ppca"), str(tmp_path / "a.npy"), aligned=True)
    assert (again.incomplete == missing.any(axis=1)).all()


def test_ppca_of_odd_tables(tmp_path):
    one = np.array([[1.0], [np.nan], [3.0], [5.0]])
    np.testing.assert_allclose(by_ppca(one)[0].ravel(), [1, 3, 3, 5])
    empty_row = np.vstack([RNG.normal(size=(50, 3)), [[np.nan] * 3]])
    filled = by_ppca(empty_row)[0]
    np.testing.assert_allclose(filled[-1], filled[:-1].mean(axis=0), atol=1e-3)
    constant = np.c_[RNG.normal(size=(50, 2)), np.full(50, 7.0)]
    constant[3, 2] = constant[4, 0] = np.nan
    assert np.isfinite(by_ppca(constant)[0]).all() and by_ppca(constant)[0][3, 2] == pytest.approx(7)


def test_ppca_of_data_on_disk_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
    np.save(tmp_path / "a.npy", HOLES)
    with pytest.raises(InputError, match=r"holds them in memory; use mean or drop"):
        source_of(tmp_path / "a.npy", missing="ppca")

"""data.part, data.subject and columns of time: which rows stay together, and where one stretch ends."""

import numpy as np
import pandas
import pytest
from array_sources import source_of
from PIL import Image

import sigmapca_cli as sp
from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.system.errors import InputError


def rows_in(source):
    return source.take(np.arange(source.n), raw=True)


def test_parts_are_stretches_with_a_gap_between_them(tmp_path):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    np.save(tmp_path / "x.npy", X)
    parts = [source_of(tmp_path / "x.npy", part=f"{i}/4") for i in (1, 2, 3, 4)]
    assert [part.n for part in parts] == [240, 230, 230, 240]
    np.testing.assert_array_equal(rows_in(parts[1]), X[260:490])
    assert len({part.hash for part in parts}) == 4
    for name in ("signals", "planted"):
        whole, half = (build(DataConfig(name=name, n=500, part=part)) for part in (None, "2/2"))
        np.testing.assert_array_equal(rows_in(half), rows_in(whole)[255:])


@pytest.mark.parametrize(
    "change", [{"part": "half"}, {"part": "3/2"}, {"part": "0/2"}, {"part": "1/2", "half": "odd"}]
)
def test_other_parts_are_refused(change):
    with pytest.raises(InputError, match="part"):
        DataConfig(name="array", **change)


def test_pictures_are_parted_by_picture_and_one_picture_by_strips(tmp_path):
    whole = build(DataConfig(name="natural", images=6))
    parts = [build(DataConfig(name="natural", images=6, part=f"{i}/3")) for i in (1, 2, 3)]
    np.testing.assert_array_equal(np.concatenate([part.images for part in parts]), whole.images)
    with pytest.raises(InputError, match="fewer parts"):
        build(DataConfig(name="natural", images=2, part="1/3"))
    pixels = np.random.default_rng(0).integers(0, 255, (40, 30), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.png")
    common = {"name": "images", "path": str(tmp_path), "patch": 5, "padding": "valid"}
    strips = [build(DataConfig(**common, part=f"{i}/2")) for i in (1, 2)]
    assert [strip.n for strip in strips] == [16 * 26] * 2
    np.testing.assert_allclose(rows_in(strips[1])[0] * 255, pixels[20:25, :5].ravel(), atol=1e-4)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_rows_of_a_subject_stay_together(tmp_path, suffix):
    rng = np.random.default_rng(0)
    who = np.array(["ann", "bob", "cy", "di"])[rng.integers(0, 4, 200)]
    frame = pandas.DataFrame({"who": who, "a": rng.normal(size=200), "b": rng.normal(size=200)})
    path = tmp_path / f"x.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    parts = [source_of(path, subject="who", part=f"{i}/2") for i in (1, 2)]
    assert parts[0].names == ("a", "b") and sum(part.n for part in parts) == 200
    seen = [set(frame[frame.a.round(9).isin(rows_in(part)[:, 0].round(9))].who) for part in parts]
    assert not seen[0] & seen[1] and len(seen[0] | seen[1]) == 4
    assert len(parts[0].pieces) == 1
    with pytest.raises(InputError, match="subject"):
        source_of(path, subject="whom")
    with pytest.raises(InputError, match="subject"):
        DataConfig(name="array", subject="who", half="even")


def test_rows_of_a_program_have_subjects_too(tmp_path):
    X = np.column_stack([np.repeat([3, 1, 2], 100), np.random.default_rng(0).normal(size=(300, 3))])
    run = sp.train(X, k=2, model="pca_svd", data__subject=0, data__part="1/3", outputs=tmp_path)
    np.testing.assert_allclose(run.mean, X[:100, 1:].mean(0), atol=1e-6)


@pytest.mark.parametrize("dates", [False, True])
def test_time_that_jumps_ends_a_piece(tmp_path, dates):
    rng = np.random.default_rng(0)
    days = np.concatenate([np.arange(100), 300 + np.arange(100)])
    time = pandas.to_datetime("2020-01-01") + pandas.to_timedelta(days, "D") if dates else days / 10
    frame = pandas.DataFrame({"date": time, "a": rng.normal(size=200), "b": rng.normal(size=200)})
    frame.to_csv(tmp_path / "x.csv", index=False)
    source = source_of(tmp_path / "x.csv", drop=["date"])
    assert source.timed and source.pieces == (100,)
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "y.csv", index=False)
    assert not source_of(tmp_path / "y.csv", drop=["date"]).timed


def test_files_and_rows_left_out_begin_pieces(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(50, 2)))
    assert source_of(tmp_path / "*.npy").pieces == (50,)
    X = rng.normal(size=(60, 2))
    X[20, 1] = np.nan
    np.save(tmp_path / "c.npy", X)
    source = source_of(tmp_path / "c.npy", missing="drop")
    assert source.n == 59 and source.pieces == (20,)


def test_rows_of_few_subjects_do_not_identify_axes_as_so_many_samples_would(tmp_path):
    """20 subjects of 50 rows, who differ as Gaussian ones of one variance do: no axes, and 20 samples."""
    rng = np.random.default_rng(0)
    rows = np.repeat(2 * rng.normal(size=(20, 3)), 50, axis=0) + 0.5 * rng.normal(size=(1000, 3))
    place = tmp_path / "rows.csv"
    np.savetxt(
        place,
        np.column_stack([np.repeat(np.arange(20), 50), rows]),
        "%.6g",
        ",",
        header="who,a,b,c",
        comments="",
    )
    run = sp.train(
        place, k=3, solver="independence", data__subject="who", data__standardise="none", outputs=tmp_path
    )
    assert run.evaluation["rows_order"] == "subjects" and "bands" not in run.evaluation
    assert not run.certificate().identified.any()

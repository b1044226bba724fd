"""Which runs a report is about, and which sliders tell them apart."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmapca_cli.report.gather import axes_of, in_order, open_all, ordered, without_followers
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError


def grid(**values):
    """Settings of a full grid, a value a run."""
    rows = list(itertools.product(*values.values()))
    return {name: [row[i] for row in rows] for i, name in enumerate(values)}, len(rows)


def test_a_grid_gives_a_slider_a_setting():
    settings, n = grid(a=["10", "1", "2"], seed=["0", "1"])
    axes, keys = axes_of(settings, n)
    assert [(axis.name, axis.values) for axis in axes] == [("a", ["1", "2", "10"]), ("seed", ["0", "1"])]
    for i, key in enumerate(keys):
        assert axes[0].values[key[0]] == settings["a"][i]
        assert axes[1].values[key[1]] == settings["seed"][i]


def test_settings_that_follow_another_are_not_told_twice():
    settings = {"nonlinearity.a": ["1.0", "2.0"], "a": ["1", "2"], "model.objective": ["m", "n"]}
    assert list(without_followers(settings)) == ["a"]
    axes, keys = axes_of({"model.name": ["x", "y"], "lr": ["2", "1"]}, 2)
    assert [(axis.name, axis.values) for axis in axes] == [("lr, model", ["1, y", "2, x"])]
    assert keys == [(1,), (0,)]


@given(st.lists(st.tuples(*[st.sampled_from("0123")] * 4), min_size=1, max_size=12))
def test_every_run_has_a_place_of_its_own(rows):
    settings = {name: [row[i] for row in rows] for i, name in enumerate(("a", "b", "c.d", "model.name"))}
    settings = {name: row for name, row in settings.items() if len(set(row)) > 1}
    axes, keys = axes_of(settings, len(rows))
    assert len(set(keys)) == len(rows) and len(axes) <= 3
    for key in keys:
        assert len(key) == len(axes)
        assert all(0 <= place < len(axis.values) for place, axis in zip(key, axes, strict=True))


def test_equal_runs_and_sparse_grids_get_one_slider_over_the_runs():
    assert axes_of({}, 3)[0][0].name == "run"
    assert axes_of({"a": ["1", "1", "2"]}, 3)[1] == [(0,), (1,), (2,)]
    diagonal = {"a": list("1234"), "b": list("1233"), "c": list("1222")}
    assert axes_of(diagonal, 4)[0][0].name == "run"


def test_numbers_come_by_size_and_words_as_they_are():
    assert ordered(["10", "9", "1e-3", "9"]) == ["1e-3", "9", "10"]
    assert ordered(["rica", "10", "lica"]) == ["rica", "10", "lica"]


def test_a_folder_stands_for_all_runs_in_it(sweep):
    runs, left_out = open_all([str(sweep), str(sweep / "3")])
    assert [run.name for run in runs] == list("0123456") and left_out == []
    assert [run.status for run in runs] == ["finished"] * 6 + ["failed"]


def test_jobs_are_ordered_by_number(tmp_path, write_run):
    folders = [write_run(tmp_path / str(number), 1, number) for number in (10, 2, 1)]
    assert [run.name for run in in_order([StoredRun.open(folder) for folder in folders])] == ["1", "2", "10"]


def test_a_run_whose_configuration_is_not_yaml_is_left_out(tmp_path, write_run):
    import h5py

    write_run(tmp_path / "one", 1.0, 0)
    other = write_run(tmp_path / "other", 2.0, 0)
    with h5py.File(other / "run.h5", "r+") as file:
        del file["config"]
        file["config"] = "model: ["
    runs, left_out = open_all([str(tmp_path)])
    assert [run.name for run in runs] == ["one"] and len(left_out) == 1


def test_a_damaged_run_is_named_and_ends_nothing(tmp_path, write_run):
    write_run(tmp_path / "0", 1, 0)
    broken = write_run(tmp_path / "1", 2, 0) / "run.h5"
    broken.write_bytes(broken.read_bytes()[:1000])
    runs, left_out = open_all([str(tmp_path)])
    assert [run.name for run in runs] == ["0"]
    assert len(left_out) == 1 and str(broken) in left_out[0]


def test_no_run_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no run"):
        open_all([str(tmp_path)])


def test_of_many_runs_those_that_are_drawn_are_read_wholly(tmp_path, write_run, monkeypatch):
    from sigmapca_cli.report import gather
    from sigmapca_cli.storage.find import is_whole

    monkeypatch.setattr(gather, "MOST_DRAWN", 2)
    for number in range(4):
        write_run(tmp_path / str(number), 1, number)
    runs, left_out = open_all([str(tmp_path)])
    assert [is_whole(run) for run in runs] == [True, False, False, True] and not left_out

"""What a user types becomes one run, or a line that helps."""

import os
from pathlib import Path

import pytest
from run_data import log_block

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.find import UNREADABLE, find_runs, resolve
from sigmapca_cli.storage.identity import config_hash, find_by_hash
from sigmapca_cli.storage.write import RunWriter, write_evaluation
from sigmapca_cli.system.errors import InputError

NAMES = (
    "nlpca/2024-05-01_10-00-00_aaaa1111",
    "nlpca/2024-05-01_10-00-00_aaaa1111_2",
    "gha/2024-05-02_10-00-00_aaaa2222",
    "sweeps/2024-05-03_00-00-00/0",
    "nlpca/2023-01-01_00-00-00_bbbb3333",
)
HASH = "aaaa2222" + "0" * 56


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("outputs")
    for name in NAMES:
        folder = root / name
        folder.mkdir(parents=True)
        writer = RunWriter(
            folder,
            model=name.split("/")[0],
            config_hash={"gha": HASH, "sweeps": "dddd4444"}.get(name.split("/")[0], ""),
            seed=3,
        )
        writer.log(5, {"loss": 2.0})
        writer.finish(evaluation={"mcc": 0.5})
    (root / "nlpca" / "empty").mkdir()
    return root


def test_listing_is_in_order_and_complete(root: Path) -> None:
    found = find_runs(root)
    assert [run.folder for run in found[:4]] == [root / NAMES[i] for i in (4, 0, 1, 2)]
    assert {run.folder for run in found} == {root / name for name in NAMES}
    run = found[3]
    assert (run.model, run.status, run.last["loss"], run.evaluation["mcc"]) == ("gha", fmt.FINISHED, 2.0, 0.5)
    assert run.attrs["seed"] == 3 and run.step == 5


def test_runs_of_one_second_are_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    made = [f"{name}0" for name in "caebdf"]
    for i, name in enumerate(made):
        folder = tmp_path / "m" / f"2024-05-01_10-00-00_{name}"
        folder.mkdir(parents=True)
        RunWriter(folder, model="m").finish()
        (folder / ".owner.1").write_text("{}")
        os.utime(folder / ".owner.1", ns=(i, 10**18 + i))
    assert [run.folder.name[-2:] for run in find_runs(tmp_path)] == made
    assert resolve("last", tmp_path).name.endswith(made[-1])


def test_a_listing_follows_changes_and_survives_damage(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m" / "2024-05-01_10-00-00_cccc"
    folder.mkdir(parents=True)
    RunWriter(folder, model="m").finish()
    write_evaluation(folder, {"mcc": 0.9})
    assert find_runs(tmp_path)[0].evaluation["mcc"] == 0.9
    (folder / fmt.RUN_FILE).write_bytes((folder / fmt.RUN_FILE).read_bytes()[:500])
    damaged = find_runs(tmp_path)[0]
    assert damaged.status == UNREADABLE and str(folder) in damaged.error
    assert find_runs(tmp_path / "nothing") == []


def test_a_running_run_shows_its_latest_values(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, model="m")
    writer.log(1, {"loss": 5.0, "mcc": 0.25})
    writer.snapshot()
    log_block(writer, range(2, 1500), {"loss": range(2, 1500)})
    writer.log(1500, {"loss": float("nan")})
    writer.flush()
    with open(tmp_path / fmt.METRICS_FILE, "a") as file:
        file.write('{"step": 1501, "lo')
    run = find_runs(tmp_path)[0]
    assert run.step == 1500 and run.last == {"loss": 1499.0, "mcc": 0.25}
    (tmp_path / fmt.RUN_FILE).unlink()
    assert find_runs(tmp_path)[0].last == {"loss": 1499.0}


@pytest.mark.parametrize(
    ("typed", "index"),
    [
        ("2024-05-01_10-00-00_aaaa1111", 0),
        ("nlpca/2024-05-01_10-00-00_aaaa1111_2", 1),
        ("aaaa2", 2),
        ("AAAA2222", 2),
        ("bbbb", 4),
        ("2024-05-03_00-00-00/0", 3),
        ("dddd", 3),
        (HASH, 2),
    ],
)
def test_names(root: Path, typed: str, index: int) -> None:
    assert resolve(typed, root) == root / NAMES[index]


def test_paths_and_last(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve(root / NAMES[3], "/nowhere") == root / NAMES[3]
    assert resolve(root / NAMES[3] / fmt.RUN_FILE, "/nowhere") == root / NAMES[3]
    monkeypatch.setenv(fmt.OUTPUTS_VARIABLE, str(root))
    monkeypatch.chdir(root)
    assert resolve(NAMES[2]).resolve() == root / NAMES[2]
    assert resolve("last") == find_runs(root)[-1].folder


def test_ambiguous_and_unknown_names_help(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 runs") as error:
        resolve("aaaa", root)
    assert "aaaa1111_2" in str(error.value)
    with pytest.raises(InputError, match="nearest: 2023-01-01_00-00-00_bbbb3333"):
        resolve("bbbb3334", root)
    with pytest.raises(InputError, match="no run 'x'"):
        resolve("x", root)
    with pytest.raises(InputError, match="there are no runs in"):
        resolve("last", tmp_path)


def test_found_by_configuration(root: Path) -> None:
    assert [run.folder for run in find_by_hash(root, HASH)] == [root / NAMES[2]]
    assert find_by_hash(root, "f" * 64) == []
    assert find_by_hash(root, HASH, data_hash="other") == []


def test_a_key_that_came_later_leaves_the_hash_of_earlier_runs_alone() -> None:
    assert config_hash({"k": 3, "precision": "highest"}) == config_hash({"k": 3})
    assert config_hash({"k": 3, "precision": "high"}) != config_hash({"k": 3})
    young = {"columns": None, "missing": "refuse", "clip": None, "recognise": True}
    before = config_hash({"k": 32, "data": {"name": "prepared", "standardise": "feature"}})
    assert config_hash({"k": "auto", "data": {"name": "prepared", "standardise": None, **young}}) == before
    assert (
        config_hash({"k": "auto", "data": {"name": "prepared", "standardise": None, "recognise": False}})
        == before
    )
    for key, value in (("columns", ["a"]), ("missing", "drop"), ("clip", 0.01), ("standardise", "none")):
        changed = {"name": "prepared", "standardise": "feature", key: value}
        assert config_hash({"k": 32, "data": changed}) != before
    new = {"name": "newton", "lam": 0.1, "starts": 1, "clip": None}
    assert config_hash({"solver": new}) == config_hash({"solver": {"name": "newton"}})
    assert config_hash({"solver": {**new, "lam": 0.2}}) != config_hash({"solver": new})


def test_configuration_hash_sees_what_matters() -> None:
    config = {"a": 4.0, "model": {"name": "nlpca", "list": [1, 2]}, "threads": 1}
    same = {"threads": 8, "model": {"list": (1, 2), "name": "nlpca"}, "a": 4.0, "outputs": "/elsewhere"}
    assert config_hash(config) == config_hash(same)
    assert config_hash(config) != config_hash({**config, "a": 4.5})
    assert config_hash(config, ()) != config_hash({**config, "threads": 2}, ())
    assert config_hash(config, ("model.list",)) == config_hash(
        {**config, "model": {"name": "nlpca"}}, ("model.list",)
    )

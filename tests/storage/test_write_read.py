"""The run file: what is written is read, in h5py, in xarray and here; damage is said in one line."""

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
import yaml
from run_data import log_block

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.claim import claim_folder, create_run_folder
from sigmapca_cli.storage.files import NOTE
from sigmapca_cli.storage.find import glance, is_whole, summarise_folder
from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.storage.lock import FolderLock, InUse
from sigmapca_cli.storage.provenance import git_commit
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.stored_yaml import stored_yaml
from sigmapca_cli.storage.summary import noted_summary, summarise
from sigmapca_cli.storage.write import RunWriter, write_evaluation
from sigmapca_cli.system.errors import InputError, RunFailed, Stopped

P, K = 12, 3


def solution() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    filters = np.linalg.qr(rng.normal(size=(P, K)))[0]
    sigma = np.array([3.0, 2.0, 1.0])
    return {
        "filters": filters,
        "sigma": sigma,
        "encoder": filters / sigma,
        "decoder": (filters * sigma).T,
        "rotation": np.eye(K),
        "mean": rng.normal(size=P),
        "scale": rng.uniform(1, 2, size=P),
        "whitening": np.eye(P),
        "truth_filters": filters,
    }


def write_run(root: Path, **options: Any) -> Path:
    folder = create_run_folder(root, "nlpca", "0123456789abcdef")
    writer = RunWriter(folder, model="nlpca", config_yaml="a: 4.0\nk: 3\n", overrides=["a=4", "k=3"], seed=7)
    for step in range(10):
        writer.log(step, {"loss": 1.0 / (step + 1)})
    writer.finish(
        solution(), patch_shape=(2, 2, 3), evaluation={"mcc": 0.5, "kurtosis": np.ones(K)}, **options
    )
    return folder


def assert_one_line(error: pytest.ExceptionInfo[BaseException], path: Path) -> None:
    text = str(error.value)
    assert str(path) in text and "\n" not in text and len(text) < 400


def test_what_is_written_is_read(tmp_path: Path) -> None:
    run = StoredRun.open(write_run(tmp_path, attrs={"converged": True}))
    for name, value in solution().items():
        if name != "truth_filters":
            np.testing.assert_array_equal(getattr(run, name), value)
    np.testing.assert_array_equal(run.truth["filters"], solution()["truth_filters"])
    assert run.status == fmt.FINISHED
    assert run.config == {"a": 4.0, "k": 3} and run.overrides == ["a=4", "k=3"]
    assert run.patch_shape == (2, 2, 3)
    np.testing.assert_array_equal(run.metrics["step"], np.arange(10))
    np.testing.assert_array_equal(run.metrics["loss"], 1.0 / np.arange(1, 11))
    assert run.evaluation["mcc"] == 0.5 and run.evaluation["kurtosis"].shape == (K,)
    assert run.attrs["seed"] == 7 and bool(run.attrs["converged"]) is True
    assert run.checkpoint is None and not run.resumable
    assert run.attrs["format"] == "sigmapca-run" and run.attrs["format_version"] == 1
    assert all(datetime.fromisoformat(run.attrs[name]).tzinfo for name in ("created", "finished"))


def test_command_is_the_one_typed(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text(
        "import sys; sys.argv = ['x']\nfrom sigmapca_cli.storage.provenance import command; print(command())"
    )
    said = subprocess.run(
        [sys.executable, script, "train", "a=b c"], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "tool train 'a=b c'"


def test_commit_of_a_worktree_and_of_packed_references(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(
            ["git", "-C", str(tmp_path / "main"), *identity, *words],
            check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip

    (tmp_path / "main" / "deeper").mkdir(parents=True)
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("worktree", "add", "-q", "-b", "other", "../tree")
    git("commit", "-q", "--allow-empty", "-m", "second")
    git("pack-refs", "--all")
    assert git_commit(tmp_path / "main") == git("rev-parse", "HEAD")
    assert git_commit(tmp_path / "main" / "deeper") == ""
    assert git_commit(tmp_path / "tree") == git("rev-parse", "other") != git("rev-parse", "HEAD")


def test_xarray_opens_root_and_metrics(tmp_path: Path) -> None:
    path = write_run(tmp_path) / fmt.RUN_FILE
    with xarray.open_dataset(path, engine="h5netcdf") as root:
        assert root["filters"].dims == ("feature", "component")
        assert root["decoder"].dims == ("component", "feature")
        assert root["sigma"].dims == ("component",)
        np.testing.assert_array_equal(root["filters"], solution()["filters"])
    with xarray.open_dataset(path, engine="h5netcdf", group="metrics") as metrics:
        assert metrics["loss"].dims == ("step",)
        assert float(metrics["loss"].sel(step=4)) == 1 / 5


def test_evaluation_is_added_and_replaced(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    write_evaluation(folder, {"mcc": 0.75, "amari": 0.1, "note": "two words", "kurtosis": np.zeros(K + 1)})
    run = StoredRun.open(folder)
    assert run.evaluation["mcc"] == 0.75 and run.evaluation["amari"] == 0.1
    assert run.evaluation["note"] == "two words" and run.evaluation["kurtosis"].shape == (K + 1,)
    np.testing.assert_array_equal(run.filters, solution()["filters"])
    assert sorted(p.name for p in folder.iterdir()) == [fmt.METRICS_FILE, fmt.RUN_FILE]


def test_missing_values_become_nan_and_null(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, model="m")
    writer.log(1, {"loss": float("inf")})
    writer.log(1, {"lr": 0.1})
    log_block(writer, np.array([2, 3]), {"loss": np.array([2.0, 3.0])})
    writer.flush()
    rows = [json.loads(line) for line in (tmp_path / fmt.METRICS_FILE).read_text().splitlines()]
    assert rows[0] == {"step": 1, "loss": None} and rows[-1] == {"step": 3, "loss": 3.0}
    writer.finish()
    metrics = StoredRun.open(tmp_path).metrics
    np.testing.assert_array_equal(metrics["step"], [1, 2, 3])
    np.testing.assert_array_equal(metrics["loss"], [np.inf, 2, 3])
    np.testing.assert_array_equal(metrics["lr"], [0.1, np.nan, np.nan])


def test_large_configuration_and_unicode_survive(tmp_path: Path) -> None:
    text = "σ: 'Σ'\nlong: " + "x" * 200_000 + "\n"
    RunWriter(tmp_path, model="m", config_yaml=text, attrs={"long": "y" * 60_000}).finish()
    assert StoredRun.open(tmp_path).config_yaml == text


def test_resuming_drops_metrics_the_checkpoint_does_not_contain(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, model="m")
    created = writer.attrs["created"]
    log_block(writer, range(8), {"loss": np.arange(8.0)})
    writer.flush()
    with open(tmp_path / fmt.METRICS_FILE, "a") as file:
        file.write('{"step": 8, "lo')  # killed while writing
    again = RunWriter(tmp_path, model="m", resume_step=5)
    again.log(6, {"loss": 60.0})
    again.finish()
    run = StoredRun.open(tmp_path)
    np.testing.assert_array_equal(run.metrics["step"], [0, 1, 2, 3, 4, 5, 6])
    assert run.metrics["loss"][-1] == 60.0 and run.attrs["created"] == created
    lines = (tmp_path / fmt.METRICS_FILE).read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 1, 2, 3, 4, 5, 6]


def test_status_follows_the_owner(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        writer = RunWriter(tmp_path, model="m")
        writer.log(3, {"loss": 0.5})
        writer.flush()
        run = StoredRun.open(tmp_path)
        assert run.status == fmt.RUNNING
        assert run.metrics["loss"].tolist() == [0.5]  # live, before run.h5 has it
        with pytest.raises(InUse, match="still going on"):
            write_evaluation(tmp_path, {"mcc": 1.0})
    assert StoredRun.open(tmp_path).status == fmt.INTERRUPTED
    (tmp_path / fmt.CHECKPOINT_FILE).touch()
    assert StoredRun.open(tmp_path).resumable


def test_metrics_without_run_file_are_a_run(tmp_path: Path) -> None:
    (tmp_path / fmt.METRICS_FILE).write_text('{"step": 0, "loss": 2.0}\n{"step": 1, "loss": nul')
    run = StoredRun.open(tmp_path)
    assert run.status == fmt.INTERRUPTED and run.filters is None and run.config == {}
    assert run.metrics["loss"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("no"), fmt.FAILED),
        (RunFailed("no"), fmt.FAILED),
        (Stopped("later"), fmt.INTERRUPTED),
        (KeyboardInterrupt(), fmt.INTERRUPTED),
    ],
)
def test_how_a_run_ended_is_recorded(tmp_path: Path, error: BaseException, status: str) -> None:
    with pytest.raises(type(error)), RunWriter(tmp_path, model="m"):
        raise error
    run = StoredRun.open(tmp_path)
    assert run.status == status and type(error).__name__ in run.attrs["error"]


def test_truncated_files_are_named_in_one_line(tmp_path: Path) -> None:
    path = write_run(tmp_path) / fmt.RUN_FILE
    whole = path.read_bytes()
    end = whole.index(NOTE)  # of the HDF5 part
    for size in (0, 7, 100, end // 2, end - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError) as error:
            StoredRun.open(path)
        assert_one_line(error, path)


def test_flipped_bytes_raise_nothing_but_one_line(tmp_path: Path) -> None:
    path = write_run(tmp_path) / fmt.RUN_FILE
    whole = path.read_bytes()
    expected = solution()["filters"]
    rng = np.random.default_rng(1)
    refused = 0
    for position in rng.integers(0, len(whole), 150):
        damaged = bytearray(whole)
        damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            run = StoredRun.open(path)
            filters = run.filters
            _ = run.decoder, run.metrics, run.evaluation, run.config, run.patch_shape, run.status
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            refused += 1
        else:
            assert filters is not None and np.array_equal(
                filters, expected
            )  # only where the flip hit no part of the content
    assert refused > 140


def test_a_file_edited_by_another_program_stays_readable(tmp_path: Path) -> None:
    path = write_run(tmp_path) / fmt.RUN_FILE
    with h5py.File(path, "r+") as file:
        file.attrs["remark"] = "mine"
        file["filters"][0, 0] = 5.0
    run = StoredRun.open(path)
    assert run.attrs["remark"] == "mine" and run.filters is not None and run.filters[0, 0] == 5.0
    write_evaluation(path, {"mcc": 1.0})
    assert StoredRun.open(path).evaluation["mcc"] == 1.0


@pytest.mark.full
@pytest.mark.skipif(shutil.which("h5dump") is None, reason="skipped: h5dump (hdf5-tools) is not installed")
def test_command_line_tools_read_it(tmp_path: Path) -> None:
    path = write_run(tmp_path) / fmt.RUN_FILE
    said = subprocess.run(["h5dump", "-d", "/sigma", path], capture_output=True, text=True, check=True).stdout
    assert "3, 2, 1" in said
    listed = subprocess.run(["h5ls", "-r", path], capture_output=True, text=True, check=True).stdout
    assert "/filters                 Dataset {12, 3}" in listed and "/metrics/loss" in listed


def test_other_files_are_refused_in_words(tmp_path: Path) -> None:
    text, other, later = tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "c.h5"
    text.write_text("not HDF5 at all")
    with h5py.File(other, "w") as file:
        file["x"] = 1
    with h5py.File(later, "w") as file:
        file.attrs.update(format=fmt.FORMAT, format_version=99)
    for path, words in ((text, "not an HDF5 file"), (other, "not a sigmapca run"), (later, "version 99")):
        with pytest.raises(InputError, match=words) as error:
            StoredRun.open(path)
        assert_one_line(error, path)
    for path, words in ((tmp_path / "none.h5", "no such file"), (tmp_path, "not a run folder")):
        with pytest.raises(InputError, match=words):
            StoredRun.open(path)


def test_a_run_is_read_while_a_notebook_has_it_open(tmp_path: Path) -> None:
    path = write_run(tmp_path) / fmt.RUN_FILE
    for locking in (True, False, None):
        with h5py.File(path, "r", locking=locking):
            assert StoredRun.open(path).sigma is not None


@pytest.mark.parametrize("setting", ["TRUE", "FALSE", "BEST_EFFORT"])
def test_a_run_is_read_although_another_process_holds_it_for_writing(tmp_path: Path, setting: str) -> None:
    """h5py's own default locks would refuse; the reader takes no lock, whatever the environment asks for."""
    path = write_run(tmp_path) / fmt.RUN_FILE
    read = f"from sigmapca_cli.storage.read import StoredRun; print(StoredRun.open({str(path)!r}).sigma[0])"
    with h5py.File(path, "r+", locking=True):
        ran = subprocess.run(
            [sys.executable, "-c", read],
            env={**os.environ, "HDF5_USE_FILE_LOCKING": setting},
            capture_output=True,
            text=True,
        )
    assert ran.stdout.strip() == "3.0", ran.stderr


def test_outputs_root_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(fmt.OUTPUTS_VARIABLE, raising=False)
    assert outputs_root() == tmp_path / "outputs"
    monkeypatch.setenv(fmt.OUTPUTS_VARIABLE, str(tmp_path / "mine"))
    assert outputs_root() == tmp_path / "mine"
    assert outputs_root(tmp_path / "given") == tmp_path / "given"


def test_unwritable_outputs_are_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="SIGMAPCA_OUTPUTS") as error:
        create_run_folder(tmp_path / "file", "nlpca", "0" * 8)
    assert_one_line(error, tmp_path / "file")


def test_permission_denied_is_said_in_one_line(tmp_path: Path) -> None:
    """As nobody where the tests run as root, who may write anywhere."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    make = (
        "import os; from sigmapca_cli.storage.claim import create_run_folder as create\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        f"create({str(closed)!r}, 'nlpca', '0' * 8)"
    )
    ran = subprocess.run([sys.executable, "-c", make], capture_output=True, text=True)
    last = ran.stderr.strip().splitlines()[-1]
    assert "InputError" in last and "Permission denied" in last and "SIGMAPCA_OUTPUTS" in last


def test_folders_are_never_shared_nor_reused(tmp_path: Path) -> None:
    folders = {create_run_folder(tmp_path, "nlpca", "abcdef0123") for _ in range(20)}
    assert len(folders) == 20
    (tmp_path / "mine").mkdir()
    claimed = claim_folder(tmp_path / "mine")
    with FolderLock(claimed):  # the claim passes on to the same process
        with pytest.raises(InUse, match="in use"):
            claim_folder(claimed)
        (claimed / "something").touch()
    with pytest.raises(InputError, match="not empty"):
        claim_folder(claimed)


def test_a_claim_left_by_a_dead_process_holds_nobody_up(tmp_path: Path) -> None:
    claim = f"from sigmapca_cli.storage.claim import claim_folder; claim_folder({str(tmp_path / 'mine')!r})"
    subprocess.run([sys.executable, "-c", claim], check=True)
    assert claim_folder(tmp_path / "mine") == tmp_path / "mine"


def test_numbers_only_need_to_be_floats(tmp_path: Path) -> None:
    """A 0-d array or tensor can be logged; what is stored does not follow its later changes."""
    writer = RunWriter(tmp_path, model="m")
    value = np.array(1.5)
    writer.log(0, {"loss": value})
    value += 1
    writer.finish()
    assert StoredRun.open(tmp_path).metrics["loss"][0] == 1.5


def test_names_of_features_and_bounds_are_read_here_and_in_xarray(tmp_path: Path) -> None:
    names = [f"größe {i}" for i in range(P)]
    folder = create_run_folder(tmp_path, "nlpca", "0123456789abcdef")
    clip = np.stack([np.zeros(P), np.ones(P)])
    RunWriter(folder, model="nlpca").finish({**solution(), "feature_name": tuple(names), "clip": clip})
    run = StoredRun.open(folder)
    assert run.names == names
    np.testing.assert_array_equal(run.clip, clip)
    with xarray.open_dataset(folder / fmt.RUN_FILE, engine="h5netcdf") as opened:
        assert opened.feature_name.dims == ("feature",)
        assert [str(name) for name in opened.feature_name.values.tolist()] == names
    older = StoredRun.open(write_run(tmp_path))
    assert older.names is None and older.clip is None


def test_a_run_saved_again_with_attributes_of_fixed_length_is_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    with h5py.File(folder / fmt.RUN_FILE, "r+") as file:
        for name, value in dict(file.attrs).items():
            if isinstance(value, str):
                file.attrs[name] = np.bytes_(value)
    run = StoredRun.open(folder)
    assert run.status == fmt.FINISHED and run.attrs["model"] == "nlpca" and run.config["k"] == 3


def test_the_note_behind_a_file_is_the_summary_of_what_it_holds(tmp_path):
    with RunWriter(tmp_path, model="nlpca", attrs={"a": "4.0"}) as writer:
        log_block(writer, [1, 2], {"loss": [2.0, np.nan], "b": [1, 2]})
        values = {"mcc": np.float32(0.1), "n": 3, "ok": True, "word": "ä", "none": None, "deep/x": 1.0}
        writer.finish(solution(), evaluation={**values, "angle": np.nan, "kurtosis": np.arange(3.0)})
    with h5py.File(writer.path) as file:
        assert summarise(file) == noted_summary(writer.path)
    assert noted_summary(writer.path)["evaluation"]["word"] == "ä"


def test_a_glance_at_a_run_is_what_its_opening_says(tmp_path):
    folder = write_run(tmp_path, attrs={"data": "planted"})
    seen, run = glance(summarise_folder(folder)), StoredRun.open(folder)
    assert is_whole(run) and not is_whole(seen)
    for name in ("attrs", "status", "config", "config_yaml", "overrides", "name", "folder"):
        assert getattr(seen, name) == getattr(run, name)
    assert seen.evaluation["mcc"] == run.evaluation["mcc"]
    assert seen.metrics["loss"][-1] == run.metrics["loss"][-1]
    np.testing.assert_array_equal(seen.filters, run.filters)
    with h5py.File(folder / fmt.RUN_FILE, "r+") as file:
        del file["config"]
        file["config"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "config")
    with pytest.raises(InputError):
        glance(summarise_folder(folder))


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n- x\n- y: 2\nc:\n  d: 'e\n\n    f'\n",
        "a: 'x\nb: y'\n",
        "a: |\n  b: 1\nc: 2\n",
        "a: 1\na: 2\n",
        "'q': 1\nb: {}\n",
        "- 1\n",
    ],
)
def test_a_configuration_read_key_by_key_is_the_whole_one(text):
    wanted = yaml.safe_load(text)
    found = stored_yaml(text, Path("run.h5"))
    assert found == (wanted if isinstance(wanted, dict) else {})
    found["changed"] = 1
    assert "changed" not in stored_yaml(text, Path("run.h5"))

"""Trackers, read back with their own libraries: the curves are the run's, also of a run that failed and went on."""

import json
import logging
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from composing import composed
from shell import run_command

from sigmapca_cli.cli.log import copy
from sigmapca_cli.composition.job import job_of
from sigmapca_cli.runner.run import run as start
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.write import RunWriter
from sigmapca_cli.tracking.hub import Hub, key_of, read_ids
from sigmapca_cli.tracking.protocols import Tracked

SMALL = (
    "data=planted",
    "data.n=1500",
    "data.p=8",
    "data.k=3",
    "data.group=1",
    "k=3",
    "threads=1",
    "log_every=5",
)
STEPS = ("steps=60", "checkpoint.every_steps=20", "optimizer.schedule=constant")


class Lost(Exception):
    """The run's machine is gone."""


def train(folder, *overrides):
    return StoredRun.open(start(job_of(composed(*SMALL, *STEPS, f"outputs={folder}", *overrides))))


ALL = pytest.mark.parametrize("gone_on", [("tensorboard", "mlflow", "wandb")], indirect=True, ids=["all"])


@pytest.fixture(scope="module")
def gone_on(request, tmp_path_factory):
    """A run with trackers, ended by an error at step 35, which went on from its checkpoint of step 20."""
    trackers = getattr(request, "param", ("tensorboard",))
    for package in trackers:
        pytest.importorskip(package, reason=f"skipped: {package} is not installed")
    folder = tmp_path_factory.mktemp("outputs")
    words = (f"tracker=[{','.join(trackers)}]", "tags=[pilot,v2]", "note=a first try", "if_exists=resume")
    log = RunWriter.log

    def log_until_35(writer, step, values):
        log(writer, step, values)
        if step >= 35:
            raise Lost

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setattr(RunWriter, "log", log_until_35)
        with pytest.raises(Lost):
            train(folder, *words)
        patch.setattr(RunWriter, "log", log)
        first = read_ids(next(folder.glob("nlpca/*")))
        run = train(folder, *words)
    assert len(list(folder.glob("nlpca/*"))) == 1 and run.status == "finished"
    assert read_ids(run.folder) == first and set(first) == set(trackers)
    return run


def scalars(folder):
    """{tag: (steps, values)} of a folder of event files, as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder)).Reload()
    return {
        tag: ([e.step for e in found.Scalars(tag)], [e.value for e in found.Scalars(tag)])
        for tag in found.Tags()["scalars"]
    }


def test_tensorboard_shows_the_curve_of_the_run_once(gone_on):
    found = scalars(gone_on.folder / "tensorboard")
    assert len(list((gone_on.folder / "tensorboard").iterdir())) == 2  # one file for each process
    for name in ("loss", "mcc"):
        assert found[name][0] == gone_on.metrics["step"].tolist() and 60 in found[name][0]
        np.testing.assert_allclose(found[name][1], gone_on.metrics[name], rtol=1e-6)
    np.testing.assert_allclose(found["evaluation/mcc"][1], [gone_on.evaluation["mcc"]], rtol=1e-6)


@ALL
@pytest.mark.full
def test_mlflow_has_one_entry_with_the_curve_of_the_run(gone_on):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{gone_on.folder.parent.parent / 'mlflow.db'}")
    (entry,) = client.search_runs([client.get_experiment_by_name("sigmapca").experiment_id])
    assert entry.info.status == "FINISHED" and entry.info.run_id == read_ids(gone_on.folder)["mlflow"]
    history = client.get_metric_history(entry.info.run_id, "loss")
    assert [m.step for m in history] == gone_on.metrics["step"].tolist()
    np.testing.assert_array_equal([m.value for m in history], gone_on.metrics["loss"])
    assert entry.data.metrics["evaluation/mcc"] == gone_on.evaluation["mcc"]
    assert (
        entry.data.params["optimizer.schedule"] == "constant" and entry.data.params["model.name"] == "nlpca"
    )
    assert entry.data.tags["pilot"] == "true" and entry.data.tags["mlflow.note.content"] == "a first try"


def records(path):
    """The records of an offline file of W&B: LevelDB's log format behind a header of 7 bytes, in blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, place, whole = path.read_bytes(), 7, b""
    assert content[:4] == b":W&B"
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        whole += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record = Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


@ALL
@pytest.mark.full
def test_weights_and_biases_goes_on_with_the_same_run(gone_on):
    files = sorted(gone_on.folder.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 2
    curve, ids, tags = {}, set(), set()
    for file in files:
        for record in records(file):
            if record.HasField("run"):
                ids.add(record.run.run_id)
                tags |= set(record.run.tags)
            if record.HasField("history"):
                row = {i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.history.item}
                assert row["_step"] not in curve, "logged twice"
                curve[row["_step"]] = row["loss"]
    assert ids == {read_ids(gone_on.folder)["wandb"]} and tags == {"pilot", "v2"}
    assert list(curve) == gone_on.metrics["step"].tolist()
    np.testing.assert_allclose(list(curve.values()), gone_on.metrics["loss"])


@ALL
@pytest.mark.full
def test_the_run_is_the_same_with_trackers_and_without(gone_on, tmp_path):
    plain = train(tmp_path)
    assert np.array_equal(plain.filters, gone_on.filters)
    assert plain.attrs["config_hash"] == gone_on.attrs["config_hash"]
    assert not (plain.folder / "trackers.json").exists() and "tags" not in plain.attrs


@ALL
@pytest.mark.full
def test_stored_runs_are_logged_afterwards_and_not_twice(gone_on, tmp_path):
    from mlflow import MlflowClient

    for _ in range(2):
        copy(gone_on, "tensorboard", str(tmp_path / "board"))
        copy(gone_on, "mlflow", str(tmp_path / "store"))
    found = scalars(tmp_path / "board" / gone_on.name)
    assert found["loss"][0] == gone_on.metrics["step"].tolist()
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'store' / 'mlflow.db'}")
    (entry,) = client.search_runs([client.get_experiment_by_name("sigmapca").experiment_id])
    history = client.get_metric_history(entry.info.run_id, "loss")
    assert [m.step for m in history] == gone_on.metrics["step"].tolist()
    assert entry.data.tags["v2"] == "true" and entry.info.status == "FINISHED"


def test_a_package_that_is_missing_is_one_line_of_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.delitem(sys.modules, "sigmapca_cli.tracking.wandb", raising=False)
    with caplog.at_level(logging.WARNING, "sigmapca"):
        run = train(tmp_path, "tracker=wandb", "max_steps=5")
    assert run.status == "finished"
    (line,) = [m for m in caplog.messages if "tracker" in m]
    assert (
        line == "tracker=wandb: its package is not installed: pip install wandb; the run goes on without it"
    )


@pytest.mark.full
def test_a_tracker_that_fails_on_the_way_is_left_out_and_the_others_go_on(tmp_path, caplog):
    pytest.importorskip("mlflow", reason="skipped: mlflow is not installed")
    pytest.importorskip("tensorboard", reason="skipped: tensorboard is not installed")
    hub = Hub()
    hub.begin(["mlflow", "tensorboard"], Tracked("a run", tmp_path, "0" * 16, outputs=tmp_path))
    hub.log([(1, {"loss": 1.0, "mcc": float("nan")})])
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute("DROP TABLE metrics")
    with caplog.at_level(logging.WARNING, "sigmapca"):
        hub.log([(2, {"loss": 0.5})])
        hub.log([(3, {"loss": 0.25})])
        hub.finish("finished", {"mcc": 1.0, "kurtosis": np.ones(3)})
    assert [m.startswith("tracker=mlflow: ") and "\n" not in m for m in caplog.messages] == [True]
    found = scalars(tmp_path / "tensorboard")
    assert found["loss"] == ([1, 2, 3], [1.0, 0.5, 0.25])
    assert set(found) == {"loss", "evaluation/mcc"}  # neither what is not finite nor arrays


def test_ids_of_a_strangers_folder_are_only_ids(tmp_path):
    (tmp_path / "trackers.json").write_text(
        json.dumps({"mlflow": "../../etc", "wandb": "abc_1-2", "tensorboard": ["x"], "else": "y"})
    )
    assert read_ids(tmp_path) == {"wandb": "abc_1-2"}
    for text in ("[", "[1]", '"text"', "3"):
        (tmp_path / "trackers.json").write_text(text)
        assert read_ids(tmp_path) == {}


def test_a_key_belongs_to_one_run(tmp_path):
    keys = {
        key_of(*hashes, tmp_path / name) for hashes in (("a", "b", "t"), ("a", "b", "u")) for name in "xy"
    }
    assert len(keys) == 4 and all(len(key) == 16 for key in keys)


def test_nothing_is_loaded_for_a_run_without_trackers(tmp_path):
    tell = (
        "import os, sys; leave = os._exit; os._exit = lambda status: (print([m for m in sys.modules if "
        "m.partition('.')[0] in ('mlflow', 'tensorboard', 'wandb', 'optuna') or "
        "m.startswith('sigmapca_cli.tracking.hub')], flush=True), leave(status))"
    )
    data = [word for word in SMALL if word.startswith("data")]
    plain = ("train", *data, "k=3", "model=pca_svd", "tags=[a]", "objective=mcc")
    assert run_command(plain, tmp_path, {}, before=tell).stdout.splitlines()[-1] == "[]"
    asked = run_command((*plain, "tracker=tensorboard"), tmp_path, {}, before=tell).stdout.splitlines()[-1]
    assert "sigmapca_cli.tracking.hub" in asked and "mlflow" not in asked.replace("tracking.mlflow", "")


@pytest.fixture
def mlflow_here(monkeypatch, tmp_path):
    """MLflow's client on the store of a folder, and what an entry is made with."""
    pytest.importorskip("mlflow", reason="skipped: mlflow is not installed")
    from sigmapca_cli.tracking import mlflow

    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    return mlflow, Tracked("a run", tmp_path, "0" * 16, outputs=tmp_path, tags=("good", "b" * 300))


@pytest.mark.full
def test_mlflow_reads_its_variables_as_it_does_elsewhere(mlflow_here, monkeypatch):
    mlflow, run = mlflow_here
    made = mlflow.MlflowClient(tracking_uri=mlflow.store(run)).create_experiment("mine")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", made)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "other")
    tracker = mlflow.MLflow(Tracked("a run", run.folder, "1" * 16, outputs=run.outputs))
    assert tracker.client.get_run(tracker.id).info.experiment_id == made
    for place in ("databricks", "databricks://profile", "sqlite:///x.db", "/some/folder"):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", place)
        assert mlflow.store(run) == place


@pytest.mark.full
def test_a_tag_that_mlflow_refuses_ends_the_entry_as_failed(mlflow_here):
    mlflow, run = mlflow_here
    with pytest.raises((mlflow.MlflowException, OSError)):
        mlflow.MLflow(run)  # the second tag is too long for a name
    client = mlflow.MlflowClient(tracking_uri=mlflow.store(run))
    (entry,) = client.search_runs([client.get_experiment_by_name("sigmapca").experiment_id])
    assert entry.info.status == "FAILED" and entry.data.tags["good"] == "true"
    assert entry.data.tags["sigmapca.run"] == run.key


TRACK = """
import logging, os, sys

import mlflow
before, level = dict(os.environ), logging.getLogger("mlflow").level
from pathlib import Path
from sigmapca_cli.tracking.hub import Hub
from sigmapca_cli.tracking.protocols import Tracked
hub, folder = Hub(), Path(sys.argv[1])
(folder / sys.argv[2]).mkdir()
sys.stdin.readline()
hub.begin(["mlflow"], Tracked(sys.argv[2], folder / sys.argv[2], sys.argv[2] * 16, outputs=folder))
for step in range(20):
    hub.log([(step, {"loss": 1.0 / (step + 1)})])
assert list(hub.open) == ["mlflow"]
hub.finish("finished", {"mcc": 1.0})
assert dict(os.environ) == before and logging.getLogger("mlflow").level == level
"""


@pytest.mark.full
def test_runs_that_start_at_once_make_one_database_and_leave_their_process_as_it_was(mlflow_here, tmp_path):
    from mlflow import MlflowClient

    run = [sys.executable, "-c", TRACK, str(tmp_path)]
    parts = [subprocess.Popen([*run, name], stdin=-1, stderr=-1, text=True) for name in "abc"]
    for part in parts:
        part.stdin.write("\n")
        part.stdin.flush()
    said = [part.communicate() for part in parts]
    assert [part.returncode for part in parts] == [0, 0, 0], said
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    (experiment,) = [e for e in client.search_experiments() if e.name == "sigmapca"]
    found = client.search_runs([experiment.experiment_id])
    assert sorted(entry.info.run_name for entry in found) == ["a", "b", "c"]
    assert {entry.info.status for entry in found} == {"FINISHED"}
    assert all(len(client.get_metric_history(entry.info.run_id, "loss")) == 20 for entry in found)


def test_a_store_of_files_goes_on_and_is_said(mlflow_here, tmp_path, caplog, monkeypatch):
    mlflow, _ = mlflow_here
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    earlier = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    experiment = earlier.create_experiment("sigmapca")
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE")
    tracker = mlflow.MLflow(Tracked("a run", tmp_path, "2" * 16, outputs=tmp_path))
    assert earlier.get_run(tracker.id).info.experiment_id == experiment
    assert not (tmp_path / "mlflow.db").exists() and "MLFLOW_ALLOW_FILE_STORE" not in os.environ
    assert len(caplog.messages) == 1 and "migrate-filestore" in caplog.text

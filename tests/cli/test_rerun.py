"""A run is repeated from what it stored, whatever the command line or `conf/` would say by now."""

import h5py
import numpy as np

from sigmapca_cli.storage.read import StoredRun


def test_rerun_says_identical_or_what_differs(sigmapca, tmp_path, small):
    first = sigmapca("train", *small, "steps=60", "threads=1", "--run-dir", "first")
    assert first.returncode == 0, first.stderr
    again = sigmapca("rerun", "first", "run_dir=second")
    assert again.returncode == 0, again.stderr
    assert "identical, bit for bit, in every data set:\n  first\n  second" in again.stdout
    assert (
        StoredRun.open(tmp_path / "second").attrs["config_hash"]
        == StoredRun.open(tmp_path / "first").attrs["config_hash"]
    )
    with h5py.File(tmp_path / "first" / "run.h5", "r+") as file:
        file["filters"][0, 0] += 0.25
        file.attrs["torch_version"] = "1.0"
    changed = sigmapca("rerun", "first", "run_dir=third")
    assert changed.returncode == 1 and "not identical" in changed.stderr
    assert "filters: largest difference 0.25" in changed.stdout and "encoder" not in changed.stdout
    assert "torch_version: 1.0 then" in changed.stdout


def test_only_what_computes_the_same_may_change(sigmapca, small):
    assert sigmapca("train", *small, "steps=20", "--run-dir", "first").returncode == 0
    for arguments in (("rerun", "first", "lr=1"), ("train", "--resume", "first", "a=2")):
        refused = sigmapca(*arguments)
        assert refused.returncode == 2 and "keeps its configuration" in refused.stderr
    done = sigmapca("train", "--resume", "first", "threads=1")
    assert done.returncode == 0 and "already finished: first" in done.stdout


def test_a_run_on_a_list_of_files_that_have_moved(sigmapca, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(60, 5)))
    train = ["train", "data=array", f"data.path=[{tmp_path}/a.npy,{tmp_path}/b.npy]", "k=2", "model=pca_svd"]
    assert sigmapca(*train, "run_dir=first").returncode == 0
    (tmp_path / "moved").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"{name}.npy").rename(tmp_path / "moved" / f"{name}.npy")
    again = sigmapca("rerun", "first", "data.path=[moved/a.npy,moved/b.npy]", "++run_dir=second")
    assert again.returncode == 0 and "identical, bit for bit" in again.stdout, again.stderr
    first, second = (StoredRun.open(tmp_path / name) for name in ("first", "second"))
    assert first.attrs["config_hash"] == second.attrs["config_hash"]
    assert second.config["data"]["path"] == first.config["data"]["path"]


def test_a_run_says_where_it_came_from(sigmapca, tmp_path, small):
    assert sigmapca("train", *small, "steps=20", "seed=3", "threads=1", "--run-dir", "first").returncode == 0
    attrs = StoredRun.open(tmp_path / "first").attrs
    assert "train data=planted" in attrs["command"] and "seed=3" in attrs["command"]
    assert attrs["seed"] == 3 and attrs["threads"] == 1 and attrs["device"] in ("cpu", "cuda")
    assert attrs["wall_seconds"] > 0 and attrs["peak_memory_bytes"] > 2**20
    for name in ("hostname", "torch_version", "numpy_version", "python_version", "config_hash", "data_hash"):
        assert attrs[name], name
    assert attrs["git_changed"] in ("yes", "no", "")

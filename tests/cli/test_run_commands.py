"""What can be asked of runs: listing, showing, comparing, applying, exporting."""

import csv
import io
import json

import h5py
import numpy as np
import pytest
from shell import run_command

from sigmapca_cli.cli.runs import in_order
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.rows import condition
from sigmapca_cli.system.errors import InputError

DATA = ("data=planted", "data.n=6000", "data.p=16", "data.k=4", "data.group=2")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with a sweep of three seeds, PCA, and a run with k = p."""
    folder = tmp_path_factory.mktemp("world")

    def call(*arguments: str, status: int = 0):
        result = run_command(arguments, folder, {})
        assert result.returncode == status, result.stderr
        return result

    call("train", "-m", *DATA, "k=4", "steps=800", "seed=0,1,2")
    call("train", *DATA, "model=pca_svd", "k=4", "--run-dir", "outputs/pca")
    call("train", *DATA, "model=pca_svd", "k=16", "--run-dir", "outputs/full")
    call.folder = folder
    return call


def test_runs_filters_sorts_and_prints_for_programs(world):
    rows = json.loads(world("runs", "--json", "--where", "k<10 and model==nlpca", "--sort", "-seed").stdout)
    assert [row["seed"] for row in rows] == [2, 1, 0]
    text = world("runs", "--csv", "--columns", "run,k,explained_variance").stdout
    table = list(csv.DictReader(io.StringIO(text)))
    assert len(table) == 5 and all(0 < float(row["explained_variance"]) <= 1.0001 for row in table)
    assert "did you mean seed" in world("runs", "--sort", "sed", status=2).stderr
    assert "exclude" in world("runs", "--json", "--csv", status=2).stderr


def test_every_listed_run_is_found_by_what_the_list_calls_it(sigmapca):
    for way in ((), (), ("--run-dir", "outputs/a-folder-of-its-own")):
        assert sigmapca("train", "data=planted", "data.n=300", "k=2", "model=pca_svd", *way).returncode == 0
    rows = json.loads(sigmapca("runs", "--json").stdout)
    assert len({row["run"] for row in rows}) == 3
    assert all(str(row["created"]).startswith("20") for row in rows)  # with its year
    for row in rows:
        shown = sigmapca("show", row["run"]).stdout.splitlines()[0]
        assert shown.endswith(row["folder"].partition("/outputs/")[2])


def test_runs_without_a_value_come_last_in_both_directions():
    rows = [{"mcc": 0.5}, {"mcc": None}, {"mcc": 0.9}, {}, {"mcc": "auto"}, {"mcc": float("nan")}]
    rising = [row.get("mcc") for row in in_order(rows, "mcc", falling=False)]
    falling = [row.get("mcc") for row in in_order(rows, "mcc", falling=True)]
    assert rising[:3] == [0.5, 0.9, "auto"] and falling[:3] == ["auto", 0.9, 0.5]
    assert all(value is None or value != value for value in (*rising[3:], *falling[3:]))


def test_where_is_no_program():
    rows = [{"a": 1, "model": "x"}, {"a": 3, "model": "y"}, {"a": None, "model": "z"}]
    for text, expected in [
        ("a>2", [1]),
        ("a>=1 and model!=y", [0]),
        ("a==1 or model=='z'", [0, 2]),
        ("model==y", [1]),
        ("model=='a and b'", []),
        ('model!="y and x or z" and a>=1', [0, 1]),
    ]:
        holds = condition(text, ["a", "model"])
        assert [i for i, row in enumerate(rows) if holds(row)] == expected
    for bad in ("__import__('os')", "a", "a>1 and", "b>1"):
        with pytest.raises(InputError):
            condition(bad, ["a", "model"])


def test_compare_and_stability(world):
    sweep = next((world.folder / "outputs" / "sweeps").iterdir())
    pair = json.loads(world("compare", str(sweep / "0"), str(sweep / "1"), "--json").stdout)["pair"]
    assert pair["mean"] > 0.99 and pair["chance"] < 0.7
    assert all(row["rotation"] for row in pair["components"])
    with_pca = json.loads(world("compare", str(sweep / "0"), "outputs/pca", "--json").stdout)["pair"]
    assert with_pca["mean"] < pair["mean"]
    found = json.loads(world("stability", str(sweep), "--json").stdout)
    # one start and the same rows: that they come back is no evidence
    assert len(found["runs"]) == 3 and found["tests"] == "nothing"
    assert not any(row["reproducible"] for row in found["clusters"])
    assert world("stability", "outputs/pca", status=2).stderr.count("\n") == 1


@pytest.mark.full
def test_compare_draws(world):
    sweep = next((world.folder / "outputs" / "sweeps").iterdir())
    drawn = world("compare", str(sweep / "0"), str(sweep / "1"), "-o", "pictures").stdout
    assert {"agreement.png", "matched.png", "rotation.pdf"} <= {
        p.name for p in (world.folder / "pictures").iterdir()
    }
    assert "matched.png" in drawn


def test_transform_then_reconstruct_is_exact_when_k_is_p(world):
    x = np.random.default_rng(0).normal(size=(257, 16)) * 3 + 5
    np.save(world.folder / "x.npy", x)
    world("transform", "outputs/full", "x.npy", "y.npy")
    world("reconstruct", "outputs/full", "y.npy", "back.h5")
    with h5py.File(world.folder / "back.h5") as file:
        np.testing.assert_allclose(file["x"][()], x, atol=1e-9)
    assert "exists" in world("transform", "outputs/full", "x.npy", "y.npy", status=2).stderr
    assert "16" in world("transform", "outputs/full", "y.npy", "again.npy", status=0).stdout
    np.save(world.folder / "thin.npy", x[:, :5])
    assert "rows have 5" in world("transform", "outputs/full", "thin.npy", "t.npy", status=2).stderr
    assert not (world.folder / "t.npy").exists()


def test_transform_equals_the_encoder(world):
    x = np.random.default_rng(1).normal(size=(50, 16))
    np.savetxt(world.folder / "x.csv", x, delimiter=",", fmt="%.17g")
    world("transform", "outputs/pca", "x.csv", "c.csv")
    run = StoredRun.open(world.folder / "outputs" / "pca")
    expected = (x - run.mean) / run.scale @ run.encoder
    np.testing.assert_allclose(np.loadtxt(world.folder / "c.csv", delimiter=","), expected, atol=1e-12)


def test_evaluate_on_other_rows_and_in_words(world):
    sweep = next((world.folder / "outputs" / "sweeps").iterdir())
    np.save(world.folder / "other.npy", np.random.default_rng(2).normal(size=(500, 16)))
    values = json.loads(world("evaluate", str(sweep / "0"), "--data", "other.npy", "--json").stdout)
    (metrics,) = values.values()
    assert metrics["explained_variance"] < 0.5  # white noise has no subspace
    words = world("evaluate", str(sweep / "0"), "--certificate").stdout
    assert "4 of 4 components have identified axes" in words
    with h5py.File(sweep / "0" / "run.h5") as file:
        assert file["evaluation/identifiability/curvature"].shape == (4, 4)
        (key,) = file["evaluation/on"]
        assert key.startswith("other-") and "explained_variance" in file[f"evaluation/on/{key}"]


def test_other_rows_in_files_of_one_name_are_kept_apart(world):
    for i in (1, 2):
        (world.folder / f"e{i}").mkdir()
        np.save(world.folder / f"e{i}" / "t.npy", np.random.default_rng(i).normal(size=(300, 16)) * i)
        for _ in range(2):  # again: in its own place
            world("evaluate", "outputs/pca", "--data", f"e{i}/t.npy")
    with h5py.File(world.folder / "outputs" / "pca" / "run.h5") as file:
        found = [file[f"evaluation/on/{key}/reconstruction_error"][()] for key in file["evaluation/on"]]
    assert len(found) == 2 and found[0] != found[1]


def test_show_plot_export_last(world):
    assert "explained_variance" in world("show", "outputs/pca").stdout
    assert "filters.png" in world("plot", "outputs/pca", "--what", "filters").stdout
    assert "--format png" in world("plot", "outputs/pca", "--what", "filters", "-o", "x.png", status=2).stderr
    assert not (world.folder / "x.png").exists()
    assert world("export", "outputs/pca", "p.npz").stdout.strip() == "p.npz"
    with np.load(world.folder / "p.npz", allow_pickle=False) as archive:
        assert archive["filters"].shape == (16, 4)
    assert "nlpca" in world("models").stdout
    assert "did you mean nlpca" in world("models", "nlpc", status=2).stderr


def test_linear_ica_is_shown_and_compared_by_its_unmixing(world):
    world("train", *DATA, "model=lica_two_step", "a=3", "steps=400", "k=4", "--run-dir", "outputs/ica")
    run = StoredRun.open(world.folder / "outputs" / "ica")
    np.testing.assert_allclose(np.linalg.norm(run.directions, axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(run.directions, run.encoder * run.spreads)
    assert not np.allclose(run.directions, run.filters)
    sweep = next((world.folder / "outputs" / "sweeps").iterdir())
    pair = json.loads(world("compare", str(sweep / "0"), "outputs/ica", "--json").stdout)["pair"]
    assert pair["mean"] > 0.98  # nonlinear PCA finds the same sources; W of linear ICA would not match them

"""A table from the shell: the page about it, the command that the page gives, and the run that keeps its names."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pandas as pd
import pytest
from mechanisms import every
from scipy.io import wavfile

from sigmapca_cli.storage.files import edit
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.summary import summary_text

RNG = np.random.default_rng(0)
FLOWERS = pd.DataFrame(
    RNG.laplace(size=(120, 4)) @ RNG.normal(size=(4, 4)), columns=["a", "b b", "c (cm)", "d"]
)


def labelled():
    return FLOWERS.assign(species=RNG.choice(["setosa", "virginica"], 120))


@pytest.fixture
def ran(sigmapca):
    """As `sigmapca`, of commands that must succeed."""

    def call(*arguments, **environment):
        done = sigmapca(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def one_line(done, *words):
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


WRITTEN = {
    "labelled.csv": lambda p: labelled().to_csv(p),
    "continental.csv": lambda p: labelled().to_csv(p, sep=";", decimal=",", index=False),
    "holes.csv": lambda p: FLOWERS.mask(np.random.default_rng(0).uniform(size=FLOWERS.shape) < 0.01).to_csv(
        p, index=False
    ),
    "units.parquet": lambda p: (FLOWERS * [1, 1, 1, 5000]).to_parquet(p),
    "an outlier.csv": lambda p: FLOWERS.mul(np.where(np.arange(120) == 60, 1e4, 1.0), axis=0).to_csv(p),
    "matrix.npy": lambda p: np.save(p, FLOWERS),
}


def test_a_reconstructed_table_is_read_again_whatever_its_columns_are_called(ran, tmp_path):
    frame = FLOWERS.set_axis(["@t", "-x", "la\\bel", 'say "=1", then'], axis=1)
    frame.to_csv(tmp_path / "a.csv", index=False)
    ran("train", "model=pca_svd", "data=array", "data.path=a.csv", "k=4", "--run-dir", "run")
    ran("transform", "run", "a.csv", "c.npy")
    ran("reconstruct", "run", "c.npy", "back.csv")
    back = pd.read_csv(tmp_path / "back.csv")
    assert list(back.columns) == list(frame.columns)
    np.testing.assert_allclose(back, frame, atol=1e-6)
    ran("transform", "run", "back.csv", "again.npy")
    np.testing.assert_allclose(np.load(tmp_path / "again.npy"), np.load(tmp_path / "c.npy"), atol=1e-6)


@pytest.mark.parametrize("name", every(WRITTEN, ["labelled.csv", "holes.csv", "matrix.npy"]))
def test_the_page_gives_a_command_that_works(ran, tmp_path, name):
    WRITTEN[name](tmp_path / name)
    page = ran("data", name)
    assert all(word in page for word in ("components", "outliers", "task", "next:"))
    command = shlex.split(page.strip().splitlines()[-1])
    assert command[:2] == ["sigmapca", "train"]
    wanted = {
        "labelled.csv": "data.drop=species",
        "holes.csv": "data.missing=drop",
        "units.parquet": "data.standardise=feature",
        "an outlier.csv": "data.clip=0.001",
    }.get(name)
    assert wanted is None or wanted in command
    ran(*command[1:], "--run-dir", "r")
    with h5py.File(tmp_path / "r" / "run.h5") as file:
        if name != "matrix.npy":
            assert [n.decode() for n in file["feature_name"][()]] == list(FLOWERS.columns)
        if name == "holes.csv":
            assert file.attrs["missing_values"] > 0 and "rows left out" in ran("show", "r")
        if name == "an outlier.csv":
            assert file["clip"].shape == (2, 4) and "values clipped to the quantiles" in ran("show", "r")
        assert file.attrs["k"] == file["filters"].shape[1]


def test_names_go_from_the_table_to_every_output(ran, sigmapca, tmp_path):
    labelled().to_csv(tmp_path / "t.csv")
    ran(
        "train",
        "model=pca_svd",
        "data=array",
        "data.path=t.csv",
        "data.drop=species",
        "k=2",
        "--run-dir",
        "r",
    )
    assert "c (cm):" in ran("show", "r")
    new = labelled()[["species", "d", "c (cm)", "b b", "a"]].iloc[:7]
    new.to_csv(tmp_path / "new.csv")
    ran("transform", "r", "new.csv", "y.csv")
    y = pd.read_csv(tmp_path / "y.csv", index_col=0)
    assert list(y.columns) == ["species", "component_1", "component_2"] and list(y.index) == list(range(7))
    with h5py.File(tmp_path / "r" / "run.h5") as file:
        expected = (FLOWERS.iloc[:7].to_numpy() - file["mean"][()]) / file["scale"][()] @ file["encoder"][()]
        assert file["feature_name"].dims[0].label in ("", "feature")
    np.testing.assert_allclose(y.drop(columns="species"), expected, atol=1e-9)
    ran("reconstruct", "r", "y.csv", "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert [n.decode() for n in file["x"].dims[1][0][()]] == list(FLOWERS.columns)
    assert "b b" in ran("export", "r", "r.npz") + str(np.load(tmp_path / "r.npz")["metadata"])
    ran("report", "r", "-o", "r.html")
    assert "bars from left to right: a, b b, c (cm), d" in (tmp_path / "r.html").read_text()
    new.drop(columns="d").to_csv(tmp_path / "less.csv")
    one_line(sigmapca("transform", "r", "less.csv", "z.csv"), "no column d", "less.csv")
    assert not (tmp_path / "z.csv").exists()
    labels = json.loads(ran("evaluate", "r", "--data", "new.csv", "data.half=even", "--json"))
    assert 0 < labels["r"]["explained_variance"] <= 1
    one_line(sigmapca("evaluate", "r", "data.half=even"), "--data FILE")
    one_line(
        sigmapca("transform", "r", "new.csv", "z.csv", "data.decmial=comma"), "did you mean data.decimal"
    )
    one_line(sigmapca("data", "new.csv", "data.drop=a,b"), "a list stands in brackets")


def test_a_label_column_is_refused_with_the_key_that_leaves_it_out(sigmapca, tmp_path):
    labelled().to_csv(tmp_path / "t.csv", index=False)
    one_line(sigmapca("train", "data=array", "data.path=t.csv"), "species is text", "data.drop=species")
    assert not list(tmp_path.rglob("run.h5"))


@pytest.mark.parametrize("k", every(["0.95", "mdl", "mle", "all", "auto"], ["0.95", "mle"]))
def test_k_by_a_rule_is_stored_as_the_number_it_came_to(ran, tmp_path, k):
    FLOWERS.to_csv(tmp_path / "t.csv", index=False)
    ran("train", "model=pca_svd", "data=array", "data.path=t.csv", f"k={k}", "--run-dir", "r")
    facts = json.loads(ran("data", "t.csv", "--json"))["components"]
    expected = {"0.95": facts["95 %"], "mdl": facts["mdl"], "mle": facts["mle"], "all": 4, "auto": 4}[k]
    with h5py.File(tmp_path / "r" / "run.h5") as file:
        assert file["filters"].shape == (4, expected) and file.attrs["k"] == expected
    assert "identical, bit for bit" in ran("rerun", "r")


def test_components_are_listed(ran, sigmapca, tmp_path):
    FLOWERS.to_csv(tmp_path / "t.csv", index=False)
    text = ran("data", "t.csv", "--components")
    assert "100.00 %" in text and "broken stick" in text and "95 % of the variance" in text
    np.save(tmp_path / "flat.npy", np.ones((30, 3)))
    one_line(sigmapca("data", "flat.npy", "--components"), "no eigenvalues")


@pytest.mark.full
def test_prepared_data_may_be_whitened_after_all(ran):
    ran("sample-points", "data=planted", "data.n=2000", "data.p=8", "data.k=4", "-o", "planted.h5")
    said = ran("train", "model=pca_svd", "k=4", "data=prepared", "data.path=planted.h5", "data.whiten=pca")
    assert "MCC" in said


def test_a_run_from_before_goes_on_to_read_its_index_column(ran, tmp_path):
    """Its configuration does not say `recognise`; it was trained on all that the file holds."""
    FLOWERS.to_csv(tmp_path / "t.csv")
    keys = ("data=array", "data.path=t.csv", "data.recognise=false", "data.standardise=feature")
    ran("train", "model=pca_svd", *keys, "k=3", "--run-dir", "r")
    path = tmp_path / "r" / "run.h5"
    young = (
        "recognise", "columns", "drop", "decimal", "delimiter", "encoding", "missing", "clip", "max_pixels",
    )  # fmt: skip
    lines = [
        line
        for line in StoredRun.open(path).config_yaml.splitlines()
        if line.strip().split(":")[0] not in young
    ]

    def older(file):
        del file["config"], file["feature_name"]
        file["config"] = "\n".join(lines)
        return summary_text(file)

    edit(path, older)
    assert len(StoredRun.open(path).filters) == 5
    assert "identical, bit for bit" in ran("rerun", "r")
    ran("evaluate", "r")
    ran("transform", "r", "t.csv", "y.npy")
    assert np.load(tmp_path / "y.npy").shape == (120, 3)


@pytest.mark.full
def test_sounds_are_separated_into_a_sound(ran, sigmapca, tmp_path):
    t = np.arange(4000) / 8000
    sources = np.c_[np.sign(np.sin(60 * t)), (50 * t) % 1 - 0.5]
    mixed = sources @ np.array([[0.6, 0.4], [0.3, 0.7]])
    wavfile.write(tmp_path / "m.wav", 8000, (mixed * 20000).astype(np.int16))
    keys = ("data=signals", "data.path=m.wav", "data.mix=false", "k=2")
    ran("train", "model=fastica", *keys, "--run-dir", "r")
    ran("transform", "r", "m.wav", "out.wav")
    rate, out = wavfile.read(tmp_path / "out.wav")
    similarity = np.abs(np.corrcoef(out.T, sources.T)[:2, 2:])
    assert rate == 8000 and similarity.max(axis=0).min() > 0.99
    np.save(tmp_path / "m.npy", mixed)
    one_line(sigmapca("transform", "r", "m.npy", "no.wav"), "is no sound")


def test_a_notebooks_surroundings_do_not_matter(ran, tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    FLOWERS.rename(columns={"a": "$height_"}).to_csv(tmp_path / "t.csv", index=False)
    odd = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "MPLCONFIGDIR": str(tmp_path)}
    ran("train", "model=pca_svd", "data=array", "data.path=t.csv", "--run-dir", "r", **odd)
    assert "filters.png" in ran("plot", "r", "--what", "filters", **odd)


@pytest.mark.full
def test_the_page_of_a_file_is_printed_in_a_narrow_encoding(ran, tmp_path):
    FLOWERS.to_csv(tmp_path / "t.csv", index=False)
    assert "components" in ran("data", "t.csv", PYTHONIOENCODING="cp1252")
    ran("train", "model=pca_svd", "data=array", "data.path=t.csv", "--run-dir", "r")
    assert "largest weights" in ran("show", "r", PYTHONIOENCODING="ascii")


def test_data_that_have_moved_are_the_same_data(ran, sigmapca, tmp_path):
    FLOWERS.to_csv(tmp_path / "t.csv", index=False)
    ran("train", "model=pca_svd", "data=array", "data.path=t.csv", "k=2", "--run-dir", "r")
    (tmp_path / "t.csv").rename(tmp_path / "moved.csv")
    one_line(
        sigmapca("rerun", "r"),
        "t.csv: no such file or folder; if the run's data have moved, add data.path=PLACE",
    )
    assert "identical, bit for bit" in ran("rerun", "r", "data.path=moved.csv")
    (FLOWERS + 1).to_csv(tmp_path / "other.csv", index=False)
    done = sigmapca("rerun", "r", "data.path=other.csv")
    assert done.returncode == 1 and "not identical" in done.stderr


@pytest.mark.full
def test_an_interrupted_run_goes_on_with_data_that_have_moved(sigmapca, tmp_path):
    FLOWERS.to_csv(tmp_path / "t.csv", index=False)
    (FLOWERS * 2).to_csv(tmp_path / "other.csv", index=False)
    train = [sys.executable, "-m", "sigmapca_cli", "train"]
    keys = [
        "data=array", "data.path=t.csv", "k=2", "steps=3000000", "batch_size=8",
        "checkpoint.every_steps=200",
    ]  # fmt: skip
    checkpoint = tmp_path / "r" / "checkpoint.h5"

    def stopped_after_a_checkpoint(*arguments):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        started = subprocess.Popen([*train, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before:
            assert started.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(started.pid, signal.SIGTERM)
        assert started.wait(60) == 75

    stopped_after_a_checkpoint(*keys, "--run-dir", "r")
    (tmp_path / "t.csv").rename(tmp_path / "moved.csv")
    one_line(sigmapca("train", "--resume", "r"), "add data.path=PLACE")
    one_line(sigmapca("train", "--resume", "r", "data.path=other.csv"), "other data")
    stopped_after_a_checkpoint("--resume", "r", "data.path=moved.csv")

"""Rows that a program holds give the run that the command makes of their copy, and are not changed."""

import itertools
import os
import signal
import threading
import time

import numpy as np
import pandas
import pytest
from mechanisms import every
from scipy import sparse
from shell import run_command

import sigmapca_cli as sp
from sigmapca_cli.data.matrix import held
from sigmapca_cli.data.on_disk import row_file
from sigmapca_cli.data.on_disk.row_file import RowFile

G = np.random.default_rng(3)
X = G.laplace(size=(3000, 6)) * [4, 3, 2.5, 2, 1, 1] @ np.linalg.qr(G.standard_normal((6, 6)))[0] + 5
REPEATED = sparse.coo_matrix((np.ones(4000), (G.integers(0, 500, 4000), G.integers(0, 8, 4000))), (500, 8))
UNSUMMED = sparse.csr_matrix(
    (np.ones(3000), G.integers(0, 8, 3000), np.arange(0, 3001, 6)), (500, 8)
)  # rows with several values in one place


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGMAPCA_OUTPUTS", raising=False)


def copy_of(run):
    return run.config["data"]["path"]


def same(first, second):
    for key in ("config_hash", "data_hash", "n", "p"):
        assert first.attrs[key] == second.attrs[key], key
    for name in ("filters", "sigma", "mean", "scale"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.names == second.names


ROWS = {
    "float64": X,
    "float32, every second row": X.astype(np.float32)[::2],
    "fortran, big-endian": np.asfortranarray(X.astype(">f8")),
    "integers": np.rint(X).astype(np.int16),
    "bool": X > 5,
    "named": pandas.DataFrame(X, columns=list("abcdef")),
    "sparse": UNSUMMED,
    "coordinates": REPEATED,
}


WAYS = {"newton": {"solver": "newton"}, "steps": {"steps": 60}}
ORDINARY = [
    ("float64", "steps"),
    ("float32, every second row", "newton"),
    ("named", "newton"),
    ("sparse", "newton"),
]


@pytest.mark.parametrize(("kind", "way"), every(itertools.product(ROWS, WAYS), ORDINARY))
def test_the_run_is_that_of_the_copy(kind, way):
    settings = WAYS[way]
    run = sp.train(ROWS[kind], k=2, **settings)
    assert os.path.dirname(copy_of(run)).endswith("arrays")
    same(run, sp.train(copy_of(run), k=2, overrides=["data.recognise=false"], **settings))


def test_the_command_makes_it_from_the_copy(tmp_path):
    run = sp.train(X, k=3, solver="newton")
    words = (
        "train",
        "data=array",
        f"data.path={copy_of(run)}",
        "data.recognise=false",
        "k=3",
        "solver=newton",
    )
    done = run_command(words, tmp_path, {}, 120)
    assert done.returncode == 0, done.stderr
    same(run, sp.Run.open("last"))
    assert sp.Run.open("last").folder != run.folder
    done = run_command(("evaluate", str(run.folder), "--certificate"), tmp_path, {}, 120)
    assert done.returncode == 0, done.stderr


READINGS = [{}, {"data__half": "odd"}, {"data__columns": [4, 0, 2]}, {"data__transpose": True}]


@pytest.mark.parametrize("settings", every(READINGS, READINGS[2:3]))
def test_large_rows_are_known_by_some_of_them_as_a_large_file_is(settings, monkeypatch):
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 10_000)
    rows = X[:60] if "data__transpose" in settings else X
    run = sp.train(rows, k=2, steps=30, **settings)
    same(run, sp.train(copy_of(run), k=2, steps=30, overrides=["data.recognise=false"], **settings))
    table = pandas.DataFrame(rows)
    run = sp.train(table, k=2, steps=30, data__missing="mean")
    same(run, sp.train(copy_of(run), k=2, steps=30, data__missing="mean", overrides=["data.recognise=false"]))


def test_rows_read_from_memory_as_from_their_file():
    file, memory = RowFile.scratch((0, 6), X.dtype), held.RowsInMemory(X)
    file.append(X)
    index = G.integers(0, len(X), 50)
    np.testing.assert_array_equal(file.gather(index), memory.gather(index))
    for found, expected in zip(memory.blocks(), file.blocks(), strict=True):
        np.testing.assert_array_equal(found, expected)
    part = [np.empty((2, 3)), np.empty((2, 3))]
    for source, target in zip((file, memory), part, strict=True):
        source.fill(7, 2, target)
    np.testing.assert_array_equal(*part)


@pytest.mark.parametrize("kind", ["float64", "sparse", "holes"])
def test_what_is_given_is_not_changed(kind):
    given = np.where(G.random(X.shape) < 0.02, np.nan, X) if kind == "holes" else ROWS[kind].copy()
    before = given.copy()
    sp.train(
        given, k=2, steps=30, **({"data__missing": "mean", "data__clip": 0.05} if kind == "holes" else {})
    )
    if kind == "sparse":
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(given, name), getattr(before, name))
    else:
        np.testing.assert_array_equal(given, before)


def test_two_columns_of_one_name_go_by_position(caplog):
    table = pandas.DataFrame(X, columns=list("abcdef")).set_axis(["x", "x", "c", "d", "e", "f"], axis=1)
    run = sp.train(table, k=3, solver="newton")
    assert "several are named x" in caplog.text and run.names is None
    same(run, sp.train(X, k=3, solver="newton"))
    np.testing.assert_array_equal(run.transform(table), run.transform(X))


@pytest.fixture
def hears_ctrl_c():
    """Ctrl-C as in a terminal: a shell's background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.full
def test_a_stopped_run_goes_on_from_its_copy(tmp_path, hears_ctrl_c):
    steps = {"k": 3, "steps": 4000, "seed": 1}
    whole = sp.train(X, **steps)

    def interrupt():
        while not list(os.scandir("outputs/nlpca")) or len(list(os.scandir("outputs/nlpca"))) < 2:
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(sp.Stopped):
        sp.train(X, **steps, if_exists="new")
    thread.join()
    done = run_command(("train", "--resume", "last"), tmp_path, {}, 300)
    assert done.returncode == 0, done.stderr
    same(whole, sp.Run.open("last"))

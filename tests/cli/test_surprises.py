"""What surprised people who used the program for the first time."""

import csv
import io
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from mechanisms import every
from shell import run_command

from sigmapca_cli.figures.filters import plot_filters


def run_small(sigmapca, small, *overrides):
    result = sigmapca("train", *small, "steps=20", *overrides)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.parametrize("arguments", [["models"], ["models", "nlpca_latent_wtw"], ["--help"]])
def test_lists_fit_80_columns(sigmapca, arguments):
    result = sigmapca(*arguments)
    assert result.returncode == 0 and result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_list_of_commands_is_not_cut_off(sigmapca):
    listed = sigmapca("--help").stdout.split("Commands:")[1].split("Errors are")[0]
    assert "..." not in listed


@pytest.mark.parametrize("command", every(["models", "train --help", "--help"], ["models"]))
def test_a_reader_that_leaves_early_is_no_failure(command):
    line = f"{sys.executable} -m sigmapca_cli {command} | head -1"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "--cfg", "job", "-p", "solvr"], "--package solvr: no such part of the configuration"),
        (["train", "model=pca_svd", "solver=newton"], "solver=newton: model=pca_svd has a solver of its own"),
        (["train", "recipe=1"], "recipe=1: no such choice"),
        (["train", "steps=???"], "steps=???: give a value"),
        (["data", "header.csv"], "has a header (a, b) and no rows"),
        (["data", "nosuch.npy"], "sigmapca: nosuch.npy: no such file"),
        (["runs", "--where", "a>>2"], "--where: cannot read 'a>>2'"),
    ],
)  # fmt: skip
def test_one_line_with_the_way_on(sigmapca, tmp_path, arguments, words):
    (tmp_path / "header.csv").write_text("a,b\n")
    result = sigmapca(*arguments)
    assert result.returncode == 2
    assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("sigmapca: ")


def test_advice_names_the_option_that_the_command_has(sigmapca, small, tmp_path):
    run_small(sigmapca, small)
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b"] = np.zeros((4, 16)), np.zeros((4, 16))
    for command in (["transform", "last", "two.h5", "out.npy"], ["data", "two.h5"]):
        assert "choose one with --dataset" in sigmapca(*command).stderr
    assert sigmapca("transform", "last", "two.h5", "out.npy", "--dataset", "a").returncode == 0


def test_figures_need_a_folder(sigmapca, small, tmp_path):
    run_small(sigmapca, small)
    (tmp_path / "file").touch()
    for place in ("file", "file/inside"):
        result = sigmapca("plot", "-o", place)
        assert (
            result.returncode == 2 and len(result.stderr.splitlines()) == 1 and "mkdir" not in result.stderr
        )


def test_a_damaged_run_costs_only_itself(sigmapca, small, tmp_path):
    result = sigmapca("train", "-m", "model=pca_svd", *small, "seed=0,1,2", "hydra.sweep.dir=sweep")
    assert result.returncode == 0, result.stderr
    damaged = tmp_path / "sweep" / "1" / "run.h5"
    damaged.write_bytes(damaged.read_bytes()[:900])
    for command in ("report", "stability"):
        result = sigmapca(command, "sweep")
        assert result.returncode == 0, result.stderr
        assert len(result.stderr.splitlines()) == 1 and "left out" in result.stderr
    assert (tmp_path / "sweep" / "report.html").exists()
    line = next(line for line in sigmapca("runs", "sweep").stdout.splitlines() if "unreadable" in line)
    assert line.split()[:3] == ["sweep/1", "unreadable", "–"]  # the parent folder is no model


def test_no_share_of_32_components_where_there_are_fewer(sigmapca, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "narrow.npy", rng.normal(size=(50, 8)))
    np.save(tmp_path / "wide.npy", rng.normal(size=(50, 40)))
    assert "explained by 32" not in sigmapca("data", "narrow.npy").stdout
    assert "explained by 32" in sigmapca("data", "wide.npy").stdout


def test_rows_of_matched_filters_stay_below_each_other():
    """With 10 components in rows of 8 the last two are followed by six empty places, not by their partners."""
    W = np.random.default_rng(0).normal(size=(27, 16))
    W[:, 10:] = np.nan
    axes = plot_filters(W, np.ones(16), (3, 3, 3), columns=8).axes[0]
    assert len(axes.images) == 10


def test_other_rows_are_measured_from_where_training_put_zero(sigmapca, small, tmp_path):
    """Rows that have moved away from the training data cost reconstruction."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6)) * np.arange(1, 7)
    for name, rows in (("x", x), ("moved", x + 5.0)):
        np.save(tmp_path / f"{name}.npy", rows)
    train = ("train", "model=pca_svd", "data=array", "data.path=x.npy", "data.standardise=none", "k=3")
    assert sigmapca(*train).returncode == 0

    def metric(file: str, name: str) -> float:
        text = sigmapca("evaluate", "last", "--data", file, "--csv").stdout
        return next(float(r["value"]) for r in csv.DictReader(io.StringIO(text)) if r["metric"] == name)

    here, there = metric("x.npy", "reconstruction_error"), metric("moved.npy", "reconstruction_error")

    with h5py.File(next(tmp_path.rglob("run.h5"))) as file:
        W = file["filters"][()]
    lost = np.full(6, 5.0) @ (np.eye(6) - W @ W.T)  # of the shift, what no component can hold
    assert there - here == pytest.approx(lost @ lost, rel=1e-4) and there > here
    assert metric("moved.npy", "explained_variance") == pytest.approx(
        metric("x.npy", "explained_variance"), rel=1e-4
    )


@pytest.mark.parametrize("folder", every(["with space", "naïve 数据", "quote'd"], ["naïve 数据"]))
def test_any_folder_will_do(sigmapca, small, tmp_path, folder):
    place = Path(tmp_path / folder)
    place.mkdir()
    np.save(place / "my data.npy", np.random.default_rng(0).normal(size=(60, 5)))

    def call(*arguments):
        return run_command(arguments, place, {})

    path = "data.path='my data.npy'"
    for arguments in (
        ["train", "model=pca_svd", "data=array", path, "k=2"], ["show"], ["plot", "--what", "filters"],
        ["report", "last"], ["transform", "last", "my data.npy", "out put.npy"],
    ):  # fmt: skip
        result = call(*arguments)
        assert result.returncode == 0, (arguments, result.stderr)
    shutil.rmtree(place)

"""Files of the user's that stand under the name of an output stay what they are, whatever is forced."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from mechanisms import every
from shell import run_command


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    words = ("data=planted", "data.n=300", "data.p=16", "data.k=4", "data.group=2", "k=4", "model=pca_svd")
    for name, seed in (("run", "seed=0"), ("other", "seed=1")):
        assert run_command(("train", *words, seed, "--run-dir", name), folder, {}).returncode == 0
    return folder


@pytest.fixture
def trained(runs, tmp_path):
    shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    rows = np.random.default_rng(0).standard_normal((50, 16))
    for name in ("x.npy", "parts/a.npy", "parts/b.npy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(tmp_path / name, rows)
    np.save(tmp_path / "y.npy", rows[:, :4])
    os.link(tmp_path / "x.npy", tmp_path / "same.npy")
    (tmp_path / "link.npy").symlink_to("parts/a.npy")
    return tmp_path


INPUTS = {
    "itself": ("transform", "run", "x.npy", "x.npy"),
    "another name of it": ("transform", "run", "x.npy", "./parts/../x.npy"),
    "the same file": ("transform", "run", "x.npy", "same.npy"),
    "a link": ("transform", "run", "link.npy", "parts/a.npy"),
    "within the folder": ("transform", "run", "parts", "parts/new.npy"),
    "by the pattern": ("transform", "run", "parts/*.npy", "parts/new.npy"),
    "components": ("reconstruct", "run", "y.npy", "y.npy"),
    "the run itself": ("transform", "run", "x.npy", "run/run.h5"),
    "a part": ("partial", "x.npy", "-o", "x.npy"),
    "a part of several": ("partial", "parts", "-o", "parts/c.h5"),
    "the data of a drawing": ("data", "parts", "--figure", "parts/mosaic"),
}


@pytest.mark.parametrize(
    "case", every(INPUTS, ["the same file", "within the folder", "the run itself", "a part"])
)
def test_no_command_replaces_its_input(case, sigmapca, trained):
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    result = sigmapca(*INPUTS[case], "--force")
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == before


OUTPUTS = {
    "transform": (("transform", "run", "x.npy", "out.npy"), "out.npy"),
    "reconstruct": (("reconstruct", "run", "y.npy", "out.npy"), "out.npy"),
    "export": (("export", "run", "out.npz"), "out.npz"),
    "partial": (("partial", "x.npy", "-o", "out.h5"), "out.h5"),
    "report": (("report", "run", "-o", "out.html"), "out.html"),
    "plot": (("plot", "run", "--what", "filters", "-o", "figures"), "figures/filters.pdf"),
    "data": (("data", "x.npy", "--figure", "out"), "out.png"),
    "path": (("path", "data.path=x.npy", "data=array", "k=2", "-o", "out"), "out.json"),
    "compare": (("compare", "run", "other", "-o", "figures"), "figures/matched.png"),
}


@pytest.mark.parametrize("command", every(OUTPUTS, ["transform", "partial", "report"]))
def test_a_file_is_replaced_only_by_force(command, sigmapca, trained):
    arguments, name = OUTPUTS[command]
    file = trained / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"precious")
    result = sigmapca(*arguments)
    assert result.returncode == 2 and "--force" in result.stderr and file.read_bytes() == b"precious"
    result = sigmapca(*arguments, "--force")
    assert result.returncode == 0, result.stderr
    assert file.read_bytes() != b"precious"


@pytest.mark.parametrize("command", every(OUTPUTS, ["transform", "data"]))
def test_no_folder_is_invented(command, sigmapca, trained):
    arguments, name = OUTPUTS[command]
    result = sigmapca(*(f"no/{a}" if a in (name, "out", "figures") else a for a in arguments))
    assert result.returncode == 2 and "mkdir -p no" in result.stderr
    assert not (trained / "no").exists()


@pytest.mark.parametrize(
    "arguments", every([["report", "run"], ["plot", "run", "--what", "filters"]], [["report", "run"]])
)
def test_the_places_within_a_run_are_rewritten(arguments, sigmapca, trained):
    for _ in range(2):
        assert sigmapca(*arguments).returncode == 0
    assert sigmapca("report", "run", "-o", "x.npy", "--force").returncode == 2  # no page


def test_closed_streams_do_not_fail_a_run(small, tmp_path):
    command = f"{sys.executable} -m sigmapca_cli train {' '.join(small)} steps=20 --run-dir run >&- 2>&-"
    assert subprocess.run(command, shell=True, cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "run.h5").exists()

"""Whatever is wrong on the command line costs one line, the right status, and never a traceback."""

import pytest
from mechanisms import every
from shell import run_command

ORDINARY = [
    (["--cfg", "zz"], "choose one of job"),
    (["-m", "seed=range(0)"], "no jobs"),
    (["model=nlpcaa"], "did you mean nlpca"),
    (["sed=3"], "did you mean seed"),
    (["+optimizer.tangnt=true"], "tangnt"),
    (["k=2.5"], "k=2.5"),
    (["lr=nan"], "lr=nan"),
    (["k=5000"], "363"),
    (["a=1,2"], "-m"),
    (["--if-exists", "maybe"], "if_exists=maybe"),
    (["--config-dir", "nowhere"], "nowhere"),
    (["nlpca"], "key=value"),
    (["device=cuda:7"], "device=cuda:7"),
    (["--resume", "nothing"], "nothing"),
    (["a=[1,2"], "a=[1,2: cannot be read"),
    (["~a"], "~a: nothing can be removed"),
    (["a=${nowhere}"], "nowhere"),
    (["hydra/launcher=joblib"], "sweeps (-m)"),
]
"""One of a kind: options, sweeps, groups, keys, types, ranges, numbers beside the data, grammar, folders, removals."""
CASES = [
    *ORDINARY,
    (["--info", "zz"], "choose one of all"),
    (["--config-path", "nowhere"], "nowhere"),
    (["modle=nlpca"], "did you mean model"),
    (["+sed=3"], "did you mean seed"),
    (["optimizer.tangnt=true"], "did you mean optimizer.tangent"),
    (["k=abc"], "k=abc"),
    (["lr=-1"], "lr=-1"),
    (["lr=inf"], "lr=inf"),
    (["a=0"], "a=0"),
    (["a=hello"], "a=hello"),
    (["k=0"], "k=0"),
    (["init=pcs"], "did you mean"),
    (["optimizer.schedule=cosin"], "cosine"),
    (["--config-name", "nowhere"], "nowhere"),
    (["data.patch=-3"], "data.patch"),
    (["experiment=nowhere"], "experiment=nowhere"),
    (["batch_size=1"], "batch_size=1"),
    (["=3"], "key=value"),
    ([""], "an empty word"),
    (["~data"], "~data: nothing can be removed"),
    (["-m", "hydra/launcher=nowhere"], "hydra/launcher=nowhere: no such choice; its plugin is not installed"),
    (["--config-path", "/nowhere"], "--config-path"),
    (["--info", "config", "-m"], "exclude each other"),
]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    every(CASES, ORDINARY),
    ids=lambda value: " ".join(value) if isinstance(value, list) else "says",
)
def test_one_line_and_status_2(sigmapca, tmp_path, arguments, expected):
    result = sigmapca("train", *arguments)
    assert result.returncode == 2, result.stderr
    assert expected in result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and "Traceback" not in result.stderr
    assert not list(tmp_path.rglob("run.h5"))


def test_unknown_command_and_option(sigmapca):
    for arguments in (
        ["trian"],
        ["train", "--strickt"],
        ["runs", "--sort"],
        ["transform", "last"],
        ["show", "a", "b"],
    ):
        result = sigmapca(*arguments)
        assert result.returncode == 2
        assert result.stderr.startswith("sigmapca: ") and len(result.stderr.splitlines()) == 1
        assert "-h`" in result.stderr


def test_debug_shows_the_traceback(sigmapca):
    result = sigmapca("--debug", "train", "model=nlpcaa")
    assert result.returncode != 0 and "Traceback" in result.stderr


def test_unwritable_outputs(sigmapca, tmp_path, small):
    (tmp_path / "file").write_text("not a folder")
    result = sigmapca("train", *small, "outputs=file/below", "steps=10")
    assert result.returncode == 2 and len(result.stderr.strip().splitlines()) == 1
    assert "file/below" in result.stderr


def test_run_dir_is_never_overwritten(sigmapca, tmp_path, small):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "precious").write_text("x")
    result = sigmapca("train", *small, "steps=10", "--run-dir", "mine")
    assert result.returncode == 2 and "not empty" in result.stderr
    assert [f.name for f in folder.iterdir()] == ["precious"]


def test_a_broken_file_of_ones_own_is_named_with_its_line(sigmapca, tmp_path):
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    (tmp_path / "own" / "experiment" / "mine.yaml").write_text("a: [1\n")
    result = sigmapca("train", "--config-dir", "own", "experiment=mine")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert "mine.yaml" in result.stderr and "line 2" in result.stderr


def test_runs_of_a_folder_that_is_not_there(sigmapca):
    result = sigmapca("runs", "nowhere")
    assert (result.returncode, result.stderr) == (2, "sigmapca: nowhere: no such folder\n")
    assert sigmapca("runs").returncode == 0


def test_output_that_nobody_takes_does_not_fail_a_run(sigmapca, tmp_path, small):
    full = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)"
    result = run_command(("train", *small, "steps=40", "--run-dir", "a"), tmp_path, {}, before=full)
    assert result.returncode == 0, result.stderr
    assert "status finished" in sigmapca("show", "a").stdout

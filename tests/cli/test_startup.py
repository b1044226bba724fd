"""Help and version load nothing heavy."""

import subprocess
import sys

import pytest
from mechanisms import every

HEAVY = ("torch", "hydra", "h5py", "numpy", "scipy", "sklearn", "matplotlib", "rich")


def loaded(arguments, names, folder):
    """Which of these modules a command has loaded when it ends."""
    code = (
        f"import sys; sys.argv = ['sigmapca', *{arguments!r}]\n"
        "from sigmapca_cli.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print([m for m in {names!r} if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return result.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["train", "--help"], ["models"]])
def test_nothing_heavy_is_imported(arguments, tmp_path):
    assert loaded(arguments, HEAVY, tmp_path) == "[]"


@pytest.mark.parametrize("words", [["train", "model="], ["show", ""], ["train", "--resume", ""]])
def test_an_answer_to_a_shell_loads_nothing_heavy(words, tmp_path, monkeypatch):
    monkeypatch.setenv("_SIGMAPCA_COMPLETE", "zsh")
    assert loaded(words, (*HEAVY, "omegaconf"), tmp_path) == "[]"


WITHOUT_TORCH = [
    ["model=pca_svd"],
    ["solver=newton"],
    ["model=lica", "solver=newton"],
    ["solver=moments"],
    ["solver=newton", "init=moments"],
    ["-m", "model=pca_svd,ppca"],
    ["device=cpu", "steps=20"],
    ["-m", "device=cpu", "steps=20", "a=2,4"],
    ["solver=independence"],
]


@pytest.mark.parametrize("arguments", every(WITHOUT_TORCH, WITHOUT_TORCH[7:8]), ids=" ".join)
def test_what_does_not_need_torch_does_without(arguments, tmp_path):
    data = ["data=planted", "data.n=2000", "data.p=12", "data.k=4", "data.group=2", "k=4"]
    heavy = ("torch", "sklearn", "matplotlib", "scipy.stats")
    assert loaded(["train", *data, *arguments], heavy, tmp_path) == "[]"


def test_train_help_shows_groups_knobs_and_examples(sigmapca):
    result = sigmapca("train", "--help")
    assert result.returncode == 0
    for part in ("Groups", "nlpca", "planted", "Knobs", "batch_size=128", "Examples", "-m a=1,2,4,8"):
        assert part in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80

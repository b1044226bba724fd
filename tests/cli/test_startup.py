"""Help and version load nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "hydra", "h5py", "numpy", "scipy", "sklearn", "matplotlib", "rich")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["train", "--help"], ["models"]])
def test_nothing_heavy_is_imported(arguments):
    code = (
        f"import sys; sys.argv = ['sigmapca', *{arguments!r}]\n"
        "from sigmapca_cli.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip().splitlines()[-1] == "[]"


def test_train_help_shows_groups_knobs_and_examples(sigmapca):
    result = sigmapca("train", "--help")
    assert result.returncode == 0
    for part in ("Groups", "nlpca", "planted", "Knobs", "batch_size=128", "Examples", "-m a=1,2,4,8"):
        assert part in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80

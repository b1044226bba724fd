"""The wheel carries conf/, and works outside the checkout."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A clean environment with the wheel; its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, REPOSITORY],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True)
    # A path line in a .pth file brings the packages of this environment, but not its editable install.
    site = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def test_wheel_composes_a_job_outside_the_checkout(installed, tmp_path):
    where = subprocess.run(
        [installed / "python", "-c", "import sigmapca_cli; print(sigmapca_cli.__file__)"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert str(REPOSITORY / "sigmapca_cli") not in where
    result = subprocess.run(
        [installed / "sigmapca", "train", "model=nlpca", "a=7", "--cfg", "job", "--resolve"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "name: nlpca" in result.stdout and result.stdout.count("a: 7") == 2  # the knob reaches h


def test_editable_install_composes_the_same_job(installed, tmp_path):
    command = ["train", "model=nlpca", "--cfg", "job", "--resolve"]
    wheel = subprocess.run(
        [installed / "sigmapca", *command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    here = subprocess.run(
        [sys.executable, "-m", "sigmapca_cli", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert wheel.stdout == here.stdout

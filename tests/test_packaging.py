"""The wheel carries conf/, and works outside the checkout; image, recipe and citation say what pyproject.toml says."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
import yaml

from sigmapca_cli import __version__

REPOSITORY = Path(__file__).resolve().parent.parent


def copied_into_the_image() -> list[str]:
    """What the Dockerfile copies into the stage that builds the wheel."""
    stage = (REPOSITORY / "Dockerfile").read_text().split("\nFROM ")[1]
    lines = re.findall(r"^COPY (.+) \S+$", stage, re.MULTILINE)
    return [name for line in lines for name in line.split()]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A clean environment with the wheel; its dependencies are those of this environment.

    The wheel is built from the files that the image is built from.
    """
    folder = tmp_path_factory.mktemp("wheel")
    for name in copied_into_the_image():
        (folder / "source").mkdir(exist_ok=True)
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        copy(REPOSITORY / name, folder / "source" / name)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            folder,
            folder / "source",
        ],
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


@pytest.mark.full
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


@pytest.mark.full
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


PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}


def split(requirement: str) -> tuple[str, frozenset[str]]:
    """A requirement as its name and its bounds, in any order and without spaces."""
    found = re.fullmatch(r"([\w-]+) ?(.*)", requirement)
    assert found, requirement
    return found[1], frozenset(found[2].replace(" ", "").split(","))


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = yaml.safe_load((REPOSITORY / "recipe" / "recipe.yaml").read_text())
    variants = yaml.safe_load((REPOSITORY / "recipe" / "variants.yaml").read_text())
    needed = dict(map(split, PROJECT["dependencies"]))
    expected = {CONDA_NAMES.get(name, name): bounds for name, bounds in needed.items()}
    run = dict(split(line) for line in recipe["requirements"]["run"] if not line.startswith("python "))
    assert run == expected
    assert PROJECT["requires-python"] == f">={variants['python_min'][0]}"
    assert recipe["context"]["version"] == __version__
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {place}" for name, place in PROJECT["scripts"].items()
    ]


def test_version_and_licence_are_the_same_everywhere():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == __version__ and citation["license"] == PROJECT["license"]
    assert citation["preferred-citation"]["url"] == PROJECT["urls"]["Paper"]


def test_images_are_built_from_files_that_are_there():
    definition = (REPOSITORY / "apptainer.def").read_text()
    files = definition.partition("%files\n")[2].partition("\n\n")[0].split()[::2]
    assert sorted(files) == sorted([*copied_into_the_image(), "constraints.txt"])
    kept = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in files} <= set(kept)
    assert all((REPOSITORY / name).exists() for name in files)


def test_hints_name_packages_that_can_be_installed():
    """No index has the package under its own name: a hint with `sigmapca-cli[…]` could not be followed."""
    for path in [
        *REPOSITORY.glob("sigmapca_cli/**/*.py"),
        *REPOSITORY.glob("docs/**/*.md"),
        REPOSITORY / "README.md",
    ]:
        assert "sigmapca-cli[" not in path.read_text(), path

"""Every command of README.md and docs/ works: none of them can rot.

A block is run line by line in one folder a page, shortened: 20 steps, few rows. Behind a comment
`<!-- not run in CI: why -->` it is only parsed: its options must exist, its configuration must compose. The same holds
for a line that names the reader's own things (RUN, FOLDER, …) or images that are not in the repository.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from page_commands import PAGES, REPOSITORY, Command, commands_of, sigmapca

OURS = re.compile(r"\b(RUN|FILE|FOLDER|NAME|OTHER|HASH|MODEL)\b|…|\$")
ABSENT = ("data=cifar10", "data=cifar100", "data=mnist")  # images that the repository does not hold


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the files that docs/data.md speaks of."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    files_of_every_format(tmp_path)
    for name in ("docs", "benchmarks", "constraints.txt"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    return tmp_path


def files_of_every_format(folder: Path) -> None:
    """x.npy, x.csv, … with 60 rows of 12 features; a folder of pictures and one of sounds."""
    import h5py
    from PIL import Image
    from scipy.io import savemat, wavfile

    rng = np.random.default_rng(0)
    x = rng.laplace(size=(60, 12))
    np.save(folder / "x.npy", x)
    np.save(folder / "t.npy", x.T)
    np.savez(folder / "x.npz", a=x, b=x)
    np.savetxt(folder / "x.csv", x, delimiter=",")
    savemat(folder / "x.mat", {"x": x, "y": x})
    with h5py.File(folder / "x.h5", "w") as file:
        file["group/x"], file["group/y"] = x, x
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(pyarrow.table({f"c{i}": x[:, i] for i in range(12)}), folder / "x.parquet")
    xarray = pytest.importorskip("xarray")
    maps = xarray.DataArray(x.reshape(60, 3, 4), dims=("time", "lat", "lon"), name="sst")
    maps.to_netcdf(folder / "sst.nc", engine="h5netcdf")
    pytest.importorskip("zarr")
    xarray.DataArray(x, dims=("row", "column"), name="x").to_zarr(folder / "x.zarr")
    mne = pytest.importorskip("mne")
    info = mne.create_info([f"E{i}" for i in range(12)], 250.0, "eeg")
    mne.io.RawArray(1e-5 * x.T, info, verbose="ERROR").save(folder / "a_raw.fif", verbose="ERROR")
    for name in ("pictures", "sounds"):
        (folder / name).mkdir()
    for i in range(3):
        Image.fromarray(rng.integers(0, 256, (40, 40, 3)).astype(np.uint8)).save(
            folder / "pictures" / f"{i}.png"
        )
        wavfile.write(folder / "sounds" / f"{i}.wav", 8000, rng.normal(size=800).astype(np.float32))


def shortened(words: list[str]) -> list[str]:
    """The same training, in a second."""
    from sigmapca_cli.composition.compose import compose_job
    from sigmapca_cli.settings.ways import Way, way_of

    steps = (
        way_of(compose_job([word for word in composed(words) if "=" in word and word[:5] != "hydra"]).cfg)
        is Way.STEPS
    )
    small = [*(["steps=20"] if steps else []), *(["data.n=4000"] if "data=planted" in words else [])]
    return ["train", *words[1:], *small, "threads=1"]


def composed(words: list[str]) -> list[str]:
    """`sigmapca train` that only prints its configuration: a sweep by its first values."""
    kept, skip = [], False
    for word in words[1:]:
        if (
            skip or word in ("-m", "--multirun", "--fail-fast") or word.startswith("detach=")
        ):  # of a sweep only
            skip = False
        elif word in ("--run-dir", "--resume", "--if-exists"):
            skip = True
        elif not OURS.search(word) and not re.match(r"[\w./]+=\w+\(", word):  # interval(1,8) is for a search
            sweep = re.fullmatch(r"([\w./]+)=([^\[{'\"]*),.*", word)
            kept.append(f"{sweep[1]}={sweep[2].split(',')[0]}" if sweep else word)
    return ["train", *kept, "--cfg", "job"]


def parse(words: list[str]) -> None:
    """Arguments and options of a command, as Typer sees them; nothing is run."""
    from typer.main import get_command

    from sigmapca_cli.cli.app import app

    command = get_command(app).commands[words[0]]
    command.make_context(words[0], [word for word in words[1:] if word != "--debug"])
    if words[0] == "reproduce":
        from sigmapca_cli.settings.conf_files import groups

        names = [w for i, w in enumerate(words[1:]) if not w.startswith("-") and not words[i].startswith("-")]
        assert not set(names) - {*groups()["experiment"], "theory"}, names


def check_other(words: list[str], place: Path) -> str:
    """Lines that are not sigmapca's: a target of the Makefile, a script; setting up is what runs this test."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.M)
        return "" if set(words[1:]) <= set(targets) else "no such target in the Makefile"
    if words[0] == "python" and words[1] == "-c":
        result = subprocess.run(
            [sys.executable, *words[1:]], cwd=place, capture_output=True, text=True, check=False
        )
        return result.stderr
    if words[0] == "python":
        return "" if (REPOSITORY / words[1]).exists() else f"no such script: {words[1]}"
    if words[0] == ".venv/bin/pytest":
        return missing_tests(words[1:])
    return "" if words[0] in ("pip", ".", "cd", "git", "pip-audit") else "neither run nor marked"


def missing_tests(words: list[str]) -> str:
    """What `pytest WORDS` names and is not there: a file or folder, a test in it, a word of -k in no name of a test."""
    for path in (word for word in words if word.startswith("tests")):
        name, _, test = path.partition("::")
        place = REPOSITORY / name
        if not place.exists():
            return f"no such file: {name}"
        files = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
        text = "".join(file.read_text("utf-8") for file in files)
        wanted = [f"def {test}("] if test else [words[words.index("-k") + 1]] if "-k" in words else []
        if missing := [word for word in wanted if word not in text]:
            return f"{name} has no {missing[0]}"
    return ""


def check(command: Command, place: Path) -> str:
    """What is wrong with a command of a page; nothing, where it works."""
    words = command.words
    if words[0] != "sigmapca":
        return "" if command.why else check_other(words, place)
    words = words[1:]
    if words[0].startswith("--"):
        return ""
    only = command.why or any(OURS.search(word) for word in words) or any(w in ABSENT for w in words)
    if words[0] == "train" and only:
        words = composed(words)
    elif only or words[0] in ("reproduce", "download"):
        try:
            parse(words)
        except Exception as problem:
            return f"{type(problem).__name__}: {problem}"
        return ""
    elif words[0] == "train" and "--resume" not in words:
        words = shortened(words)
    status, said = sigmapca(words, place)
    return "" if status == 0 else f"status {status}: {said[-300:]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_works(page, place):
    commands = commands_of(page)
    if not commands:
        pytest.skip(f"{page.name} has no commands")
    broken = [f"{command.line}\n    {wrong}" for command in commands if (wrong := check(command, place))]
    shutil.rmtree(place / "outputs", ignore_errors=True)
    assert not broken, "\n".join(broken)


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert not broken, broken


def test_every_field_with_a_sample_has_a_section_with_a_picture():
    from sigmapca_cli.cli.sample import FIELDS

    page = (REPOSITORY / "docs" / "fields.md").read_text("utf-8")
    pictures = re.findall(r"\(pictures/([\w-]+\.png)\)", page)
    assert len(pictures) == page.count("\n## ") and all(
        (REPOSITORY / "docs/pictures" / p).exists() for p in pictures
    )
    sampled = set(re.findall(r"sigmapca sample (\w+)", page))
    assert sampled == set(FIELDS) - {"patches", "table"}

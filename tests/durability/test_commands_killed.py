"""Every command that writes, killed at any moment: no half a file under its name, and the same command again works."""

import hashlib
import random
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from forked import torture
from PIL import Image
from shell import Result, run_command

from sigmapca_cli.storage import checkpoint
from sigmapca_cli.storage.files import reading
from sigmapca_cli.storage.read import StoredRun

HELPERS = Path(__file__).resolve().parents[1] / "helpers"
ROWS = np.random.default_rng(0).laplace(size=(3000, 12))
TRAIN = (
    "train data=planted data.n=400 data.p=12 data.k=4 data.group=2 k=4 threads=1 batch_size=50 "
    "steps=150 checkpoint.every_steps=20 log_every=5 --run-dir run"
)
FILES = {"train-images-idx3-ubyte.gz": 200_000, "train-labels-idx1-ubyte.gz": 70_000}
# The lines that write: a draw from all lines of a command would seldom find one.
WRITING = (
    "sigmapca_cli/system/atomic.py", "sigmapca_cli/solution/export.py", "sigmapca_cli/cli/outputs.py",
    "sigmapca_cli/figures/save.py",
    "sigmapca_cli/data/download.py", "sigmapca_cli/data/build_once.py", "sigmapca_cli/data/cache/preparing.py",
    "sigmapca_cli/storage/",
)  # fmt: skip
ANY = ("sigmapca_cli/",)


@dataclass(frozen=True)
class Case:
    """A command; `again` is the one that goes on after a kill, where that is another."""

    command: str
    again: str = ""


CASES = {
    "train": Case(TRAIN, f"{TRAIN} --if-exists resume"),
    "resume": Case("train --resume half"),
    "evaluate": Case("evaluate run --certificate"),
    "npz": Case("export run out.npz"),
    "safetensors": Case("export run out.safetensors"),
    "transform": Case("transform run x.npy y.npy"),
    "csv": Case("transform run x.npy y.csv"),
    "plot": Case("plot run -o pictures"),
    "report": Case("report run"),
    "points": Case("sample-points data=planted data.n=3000 -o out.h5"),
    "download": Case("download mnist"),
}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the files of a data set."""
    folder = tmp_path_factory.mktemp("mirror")
    for name, size in FILES.items():
        (folder / name).write_bytes(np.random.default_rng(size).bytes(size))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def call(mirror: str) -> Callable[..., Result]:
    """Run a command; `before` and `kill_after` as `run_command` takes them."""
    sums = {
        name: hashlib.md5(np.random.default_rng(size).bytes(size)).hexdigest() for name, size in FILES.items()
    }
    known = f"""
import sys; sys.path.insert(0, {str(HELPERS)!r})
from pathlib import Path
from forked import count_lines, die_at_line
from sigmapca_cli.data.download import DATASETS
DATASETS["mnist"] = ("", "mnist", {sums!r})
"""

    def run(folder: Path, command: str, before: str = "", kill_after: float | None = None) -> Result:
        environment = {"SIGMAPCA_MIRROR": mirror, "SIGMAPCA_DATA": str(folder / "data")}
        return run_command(
            tuple(command.split()), folder, environment, before=known + before, kill_after=kill_after
        )

    return run


@pytest.fixture(scope="module")
def begun(call: Callable[..., Result], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, an interrupted one (half) and a file of rows."""
    folder = tmp_path_factory.mktemp("begun")
    np.save(folder / "x.npy", ROWS)
    assert call(folder, TRAIN).returncode == 0
    for line in range(2000, 60_000, 1000):
        shutil.rmtree(folder / "half", ignore_errors=True)
        call(folder, TRAIN.replace("--run-dir run", "--run-dir half"), f"die_at_line({line}, {WRITING!r})")
        if (folder / "half" / "checkpoint.h5").exists():
            break
    assert StoredRun.open(folder / "half").resumable
    for aside in unfinished(folder):  # of this kill: the next commands do not write there
        aside.unlink()
    return folder


def content(path: Path) -> Any:
    """What a file holds, whole: reading half a file fails, or gives something else."""
    if path.suffix in (".npz", ".npy"):
        loaded = np.load(path)
        return {k: loaded[k].tobytes() for k in loaded} if path.suffix == ".npz" else loaded.tobytes()
    if path.suffix == ".h5":
        opened = reading(path) if path.name == "run.h5" else h5py.File(path)
        with opened as file:
            names: list[str] = []
            file.visit(names.append)
            skipped = ("config", "overrides")  # they name folders
            found = (n for n in names if isinstance(file[n], h5py.Dataset) and n not in skipped)
            return {n: np.asarray(file[n][()]).tobytes() for n in found}
    if path.suffix == ".png":
        with Image.open(path) as picture:
            return np.asarray(picture).tobytes()
    if path.suffix == ".html":
        return re.sub(r"\d\d:\d\d(:\d\d)?", "", path.read_text())
    return path.read_bytes()


LIVE = ("metrics.jsonl", "train.log", "checkpoint.h5")  # they grow; a run's own tests read them


def files(folder: Path) -> dict[str, Any]:
    """The content of every file that stands under its final name."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): content(path)
        for path in found
        if path.name not in LIVE
        and path.suffix != ".part"
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def start_of(name: str, begun: Path, folder: Path) -> Path:
    """A folder in which the command can be called; a report names it, so its own name is always the same."""
    folder = folder / "work"
    shutil.copytree(begun, folder)
    if name == "train":
        shutil.rmtree(folder / "run")
    return folder


@dataclass
class Whole:
    """The command without a kill: the files before and after, its seconds, and how many lines it executes."""

    before: dict[str, Any]
    after: dict[str, Any]
    seconds: float
    lines: int
    writing: int


@pytest.fixture(scope="module", params=CASES)
def whole(
    request: pytest.FixtureRequest, begun: Path, call: Callable[..., Result], tmp_path_factory: Any
) -> tuple[str, Whole]:
    name = request.param
    counted = []
    for rooms in (ANY, WRITING):
        folder = start_of(name, begun, tmp_path_factory.mktemp(name))
        note = folder.parent / "lines"
        done = call(folder, CASES[name].command, f"count_lines(Path({str(note)!r}), {rooms!r})")
        assert done.returncode == 0, done.stderr
        counted.append(int(note.read_text()))
    folder = start_of(name, begun, tmp_path_factory.mktemp(name))
    before = files(folder)
    began = time.monotonic()
    assert call(folder, CASES[name].command).returncode == 0
    seconds = time.monotonic() - began
    after = files(folder)
    assert after != before or name == "evaluate", "the command writes something"
    return name, Whole(before, after, seconds, *counted)


def unfinished(folder: Path) -> list[Path]:
    """What a killed writer has left aside, and the folders of makers."""
    return [path for path in folder.rglob("*") if path.name.endswith((".aside", ".part", ".making"))]


def test_killed_at_any_moment(
    whole: tuple[str, Whole], begun: Path, call: Callable[..., Result], tmp_path: Path
) -> None:
    name, reference = whole
    rng = random.Random(name)
    trials = -(-torture(len(CASES)) // len(CASES))
    kills = left = 0
    for index in range(trials * 4):  # a moment that is drawn may lie after the end
        if kills >= trials:
            break
        folder = start_of(name, begun, tmp_path / str(index))
        if rng.random() < 0.25:
            killed = call(folder, CASES[name].command, kill_after=rng.uniform(0, reference.seconds))
        else:
            rooms, count = rng.choice([(ANY, reference.lines), (WRITING, reference.writing)])
            killed = call(folder, CASES[name].command, f"die_at_line({rng.randint(1, count)}, {rooms!r})")
        assert killed.returncode in (0, -signal.SIGKILL), killed.stderr
        kills += killed.returncode != 0
        check(name, folder, reference)
        aside = unfinished(folder)
        left += bool(aside)
        go_on(name, folder, reference, call)
        shutil.rmtree(folder)
    assert kills == trials
    print(f"{name}: {kills} kills, {left} left something aside, all as the uninterrupted command in the end")


def check(name: str, folder: Path, reference: Whole) -> None:
    """After a kill: each file under its name is the old one or the new one; a run is read and its checkpoint loaded."""
    for file, value in files(folder).items():
        if name in ("train", "resume") and file.endswith("run.h5"):
            assert StoredRun.open(folder / file).status in ("interrupted", "finished")
            if (saved := folder / file).with_name("checkpoint.h5").exists():
                checkpoint.load(saved.with_name("checkpoint.h5"))
            continue
        assert value in (reference.before.get(file), reference.after.get(file)), file


def go_on(name: str, folder: Path, reference: Whole, call: Callable[..., Result]) -> None:
    """The same command again: everything is there in the end, bit by bit, and nothing is left aside."""
    there = set(files(folder))
    case = CASES[name]
    again = call(folder, case.again or case.command)
    made = set(reference.after) - set(reference.before)
    if again.returncode == 2 and "exists; give another name" in again.stderr:
        assert made <= there, "only a file that was complete may be refused"
        again = call(folder, f"{case.command} --force")
    assert again.returncode == 0, again.stderr
    assert files(folder) == reference.after
    aside = unfinished(folder)
    if name in ("train", "resume") and aside:
        # Killed while it said that the finished run is free: the next command that writes there takes that away.
        assert all("owner" in path.name for path in aside), aside
        assert call(folder, f"evaluate {aside[0].parent.name}").returncode == 0
    assert not unfinished(folder)

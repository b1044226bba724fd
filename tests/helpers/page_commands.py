"""The commands in the pages, and a way to run each as its own process without importing torch every time."""

import multiprocessing
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]
BLOCK = re.compile(
    r"(?:<!-- not run in CI: (?P<why>.+?) -->\s*)?^ *```(?:sh|bash)\n(?P<text>.*?)^ *```", re.S | re.M
)
LONGEST = 110  # seconds
PRELOADED = [
    "torch",
    "h5py",
    "hydra",
    "omegaconf",
    "matplotlib.figure",
    "scipy.linalg",
    "sigmapca_cli.runner.lifecycle",
]


@dataclass(frozen=True)
class Command:
    """One command line of a page. `why`: the reason that stands before its block for not running it."""

    line: str
    why: str | None

    @property
    def words(self) -> list[str]:
        text = re.sub(r"\$\([^)]*\)", "$X", self.line).replace("FILE.npy", "x.npy")
        return shlex.split(text, comments=True)


def commands_of(page: Path) -> list[Command]:
    """The command lines in the sh and bash blocks of a page; continued lines are one."""
    found = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        text = block["text"].replace("\\\n", " ")
        lines = [line.strip() for line in text.splitlines()]
        found += [Command(line, block["why"]) for line in lines if line and not line.startswith("#")]
    return found


def inside(words: list[str], folder: str, output: str) -> None:
    """In the child: `sigmapca WORDS…` in a folder, both streams into a file."""
    from sigmapca_cli.cli import main

    os.chdir(folder)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ["COLUMNS"] = "80"
    sys.argv = ["sigmapca", *words]
    main()


def sigmapca(words: list[str], folder: Path) -> tuple[int | None, str]:
    """Exit status (None: too long) and output of one command."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    output = folder / ".output"
    child = context.Process(target=inside, args=(words, str(folder), str(output)))
    child.start()
    child.join(LONGEST)
    if child.is_alive():
        child.kill()
        child.join()
        return None, output.read_text(encoding="utf-8", errors="replace")
    return child.exitcode, output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""

"""Completion: in bash, zsh and fish themselves, at a terminal; and what the answers are made of."""

import fcntl
import itertools
import os
import pty
import select
import shutil
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from mechanisms import every

from sigmapca_cli.cli import completion
from sigmapca_cli.cli.app import app
from sigmapca_cli.cli.completion_scripts import SCRIPTS
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.settings.conf_files import all_groups
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.system.errors import InputError

BIN = str(Path(sys.executable).parent)
START = {
    "bash": ["bash", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}


class Terminal:
    """An interactive shell at a pseudo-terminal, in a folder of its own."""

    def __init__(self, shell: str, folder: Path) -> None:
        script = folder / f"_sigmapca.{shell}"
        script.write_text(SCRIPTS[shell], encoding="utf-8")
        self.folder, (self.keys, end) = folder, pty.openpty()
        environment = {
            "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "xterm",
            "LANG": "C.UTF-8", "COLUMNS": "200",
        }  # fmt: skip
        self.process = subprocess.Popen(
            START[shell],
            stdin=end,
            stdout=end,
            stderr=end,
            cwd=folder,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # fish wants a terminal of its own
        )
        os.close(end)
        if shell == "zsh":
            self.type("autoload -Uz compinit; compinit -u\n", quiet=1.0)
        self.type(f"source {script}\n", quiet=1.0)

    def type(self, keys: str, quiet: float = 0.6, longest: float = 20.0) -> str:
        """Send keys, then read until the shell has said nothing for a while."""
        os.write(self.keys, keys.encode())
        heard, end = b"", time.monotonic() + longest
        while time.monotonic() < end and select.select([self.keys], [], [], quiet)[0]:
            try:
                heard += os.read(self.keys, 65536)
            except OSError:
                break
        return heard.decode("utf-8", "replace")

    def completed(self, line: str, behind: str = "") -> str:
        """The line that TAB makes of this one; `behind` is typed after it."""
        result = self.folder / "line"
        result.unlink(missing_ok=True)
        # Home, so that the shell itself writes the line down instead of running it.
        self.type(f"{line}\t{behind} > line\x01echo \n", quiet=0.0)
        for _ in range(200):
            self.type("", quiet=0.1)
            if result.exists() and result.stat().st_size:
                return result.read_text().rstrip("\n")
        raise AssertionError(f"the shell did not write the line {line!r}")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.keys)


@pytest.fixture(params=every(SCRIPTS, ["bash"]))
def terminal(request, tmp_path):
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    for name in ("2026-01-02_03-04-05_abcd1234", "2026-01-02_03-04-06_beef5678"):
        (tmp_path / "outputs" / "nlpca" / name).mkdir(parents=True)
        (tmp_path / "outputs" / "nlpca" / name / "run.h5").touch()
    (tmp_path / "mydata.npy").touch()
    opened = Terminal(request.param, tmp_path)
    yield opened
    opened.close()


def test_a_shell_completes_a_line(terminal):
    cases = [
        ("sigmapca extract-p", "", "sigmapca extract-patches"),
        ("sigmapca train model=nlpca_tri", "", "sigmapca train model=nlpca_triangular"),
        ("sigmapca train -m model=pca_svd,nlpca_tri", "", "sigmapca train -m model=pca_svd,nlpca_triangular"),
        ("sigmapca train batch_s", "64", "sigmapca train batch_size=64"),
        ("sigmapca train hydra/launcher=vec", "", "sigmapca train hydra/launcher=vectorized"),
        ("sigmapca train data.path=myd", "", "sigmapca train data.path=mydata.npy"),
        ("sigmapca show be", "", "sigmapca show beef5678"),
        ("sigmapca train --resume 2026-01-02_03-04-05", "", "sigmapca train --resume 2026-01-02_03-04-05_abcd1234"),
        ("sigmapca reproduce first", "", "sigmapca reproduce first-64"),
        ("sigmapca models pic", "", "sigmapca models picard"),
        ("sigmapca data myd", "", "sigmapca data mydata.npy"),
        ("sigmapca train --fail", "", "sigmapca train --fail-fast"),
    ]  # fmt: skip
    got = [terminal.completed(line, behind) for line, behind, _ in cases]
    assert got == [wanted for _, _, wanted in cases]


def answers(before: list[str], word: str) -> list[str]:
    return [value for value, _ in completion.candidates(before, word) if value.startswith(word)]


def test_run_names_last_first_then_the_newest(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path))
    for name in ("m/2026-01-02_03-04-05_abcd1234", "m/2026-01-02_03-04-06_beef5678", "sweep/0"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.h5").touch()
    expected = ["last", "sweep/0", "2026-01-02_03-04-06_beef5678", "2026-01-02_03-04-05_abcd1234"]
    for command in (
        "show", "plot", "evaluate", "compare", "report", "rerun", "stability", "export", "transform",
    ):  # fmt: skip
        assert answers([command], "") == expected, command
    assert answers(["compare", "last"], "sw") == ["sweep/0"]
    assert answers(["train", "--resume"], "ab") == ["abcd1234"]
    assert answers(["transform", "last"], "") == []  # a file follows


def test_every_choice_that_is_offered_is_accepted():
    """The keys and choices on offer are those that the schema takes."""
    offered = answers(["train"], "")
    assert set(offered) == {f"{key}=" for key in {*Config.__dataclass_fields__, *all_groups()}}
    for key in (key.rstrip("=") for key in offered if key not in [f"{g}=" for g in all_groups()]):
        for choice in completion.choices(key):
            try:
                Config(**{key: choice}, **({"init_file": "x"} if choice == "file" else {}))
            except InputError as problem:
                raise AssertionError(f"{key}={choice}") from problem
    for key in answers(["train"], "data."):
        name = key.removeprefix("data.").rstrip("=")
        for choice in completion.choices(f"data.{name}"):
            DataConfig(**{name: choice})


def test_every_parameter_is_completed_or_known_to_be_free():
    """A new option must say what completes it, or that nothing can."""
    from typer.main import get_command

    free = {
        "output", "input", "data", "where", "sort", "columns", "run_dir", "package", "config_name", "config_dir",
        "config_path", "path", "axes", "k", "figure", "key", "dataset", "folder", "jobs", "seeds", "filters",
        "without", "rotate", "width", "dpi", "colour", "components", "x_label", "seed",
    }  # fmt: skip
    for name, command in get_command(app).commands.items():
        for parameter in command.params:
            if parameter.param_type_name == "argument" or completion.takes_value(parameter):
                known = (
                    f"{name}.{parameter.name}" in completion.CANDIDATES
                    or parameter.name in completion.CANDIDATES
                )
                assert known or parameter.name in free, (name, parameter.name)


ODD = [["train", "'"], ["nonsense", ""], [], ["train", "="], ["--", ""]]


@pytest.mark.parametrize(
    ("shell", "words"),
    every(itertools.product([*SCRIPTS, "tcsh"], ODD), list(zip(SCRIPTS, ODD, strict=False))),
)
def test_an_answer_never_fails(shell, words, tmp_path):
    environment = {**os.environ, "_SIGMAPCA_COMPLETE": shell}
    command = [sys.executable, "-m", "sigmapca_cli", *words]
    result = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert result.returncode == 0 and result.stderr == ""


@pytest.mark.parametrize("shell", list(SCRIPTS))
def test_installing_twice_adds_one_line(shell, sigmapca, tmp_path):
    for _ in range(2):
        result = sigmapca("--install-completion", shell, HOME=str(tmp_path))
        assert result.returncode == 0, result.stderr
    found = [p for p in tmp_path.rglob("*sigmapca*") if p.is_file()]
    assert [p.read_text(encoding="utf-8") for p in found] == [SCRIPTS[shell]]
    for startup in tmp_path.glob(".*rc"):
        assert len(startup.read_text().splitlines()) == 1
    assert sigmapca("--install-completion", "tcsh", HOME=str(tmp_path)).returncode == 2

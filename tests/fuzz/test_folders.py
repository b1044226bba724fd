"""A stranger's run or sweep folder: nothing in it is followed, run, waited for or believed beyond its bytes."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import pytest
from fuzz_corpus import checkpoint, composed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mechanisms import every
from shell import run_command

from sigmapca_cli.cli.opening import open_run
from sigmapca_cli.cli.rerun import rerun
from sigmapca_cli.cli.runs import table_lines
from sigmapca_cli.cli.streams import Escaped
from sigmapca_cli.cli.sweeps import refuse_links_in
from sigmapca_cli.cli.train import resume_run as resume
from sigmapca_cli.composition.job import job_of
from sigmapca_cli.launchers.failures import note
from sigmapca_cli.launchers.outcome import outcome, table
from sigmapca_cli.launchers.snapshot import snapshot
from sigmapca_cli.storage import checkpoint as checkpoints
from sigmapca_cli.storage.files import edit, sealed
from sigmapca_cli.storage.find import UNREADABLE, shortened, summarise_folder
from sigmapca_cli.storage.metrics import latest, read_metrics_jsonl
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.rows import as_row
from sigmapca_cli.storage.summary import summary_text
from sigmapca_cli.storage.write import write_evaluation
from sigmapca_cli.system.errors import InputError, SigmapcaError
from sigmapca_cli.system.text import csv_cell, printable

pytestmark = [pytest.mark.usefixtures("watched"), pytest.mark.filterwarnings("ignore")]
SECRET = b"export ORIGINAL=1\n"
NAMES = (
    "run.h5", "metrics.jsonl", "checkpoint.h5", "train.log", "error.json", ".owner.1", ".owner.9", ".hydra",
    ".hydra/config.yaml", ".hydra/overrides.yaml", "figures", "figures/filters.png", "report.html",
)  # fmt: skip
KINDS = ("link", "dangling", "link to a folder", "fifo", "socket", "second name", "folder", "device")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a checkpoint that is not finished, as a colleague may send one."""
    from forked import end_of, spawn

    from sigmapca_cli.runner import checkpoints
    from sigmapca_cli.runner.run import run

    folder = tmp_path_factory.mktemp("stranger") / "run"
    small = ("data=planted", "data.n=64", "data.p=6", "data.k=2", "data.group=1", "k=2", "threads=1")
    job = job_of(composed(f"run_dir='{folder}'", *small, "steps=40", "checkpoint.every_steps=10"))
    save = checkpoints.Saver.save

    def save_and_die(saver, trainer, **words) -> None:
        save(saver, trainer, **words)
        os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        checkpoints.Saver.save = save_and_die
        run(job)

    assert end_of(spawn(work)) == -signal.SIGKILL and StoredRun.open(folder).resumable
    return folder


def plant(place: Path, kind: str, outside: Path) -> None:
    """Put something of this kind where the program expects a file of its own."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    if kind == "link":
        place.symlink_to(outside / "bashrc")
    elif kind == "dangling":
        place.symlink_to(outside / "missing")
    elif kind == "link to a folder":
        place.symlink_to(outside / "folder")
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "socket":
        with (
            contextlib.chdir(place.parent),
            socket.socket(socket.AF_UNIX) as made,
        ):  # its path may be 108 bytes long
            made.bind(place.name)
    elif kind == "second name":
        os.link(outside / "bashrc", place)
    elif kind == "folder":
        place.mkdir()
    else:
        try:
            os.mknod(place, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero
        except PermissionError:
            place.symlink_to("/dev/zero")


def everything(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """What a user does with a folder that came by mail."""
    from sigmapca_cli.figures.run import plot_run
    from sigmapca_cli.report.build import write_report

    yield "runs", lambda: table_lines([as_row(summarise_folder(folder))], ["run", "status", "error"], None)
    yield (
        "show",
        lambda: [getattr(StoredRun.open(folder), n) for n in ("status", "metrics", "evaluation", "filters")],
    )
    yield "outcome", lambda: outcome(folder)
    yield "report", lambda: write_report([str(folder)], folder / "report.html")
    yield "plot", lambda: plot_run(open_run(str(folder)), folder / "figures", ["filters"])
    yield "note", lambda: note(folder, "failed", [], 1)
    yield "evaluate", lambda: write_evaluation(folder, {"mcc": 1.0})
    yield "resume", lambda: resume(str(folder), [])
    yield "rerun", lambda: rerun(str(folder), [f"outputs={folder.parent / 'outputs'}"])


@contextlib.contextmanager
def within(seconds: int, what: str) -> Iterator[None]:
    """A command that waits for ever is a failure."""

    def late(*_: object) -> None:
        raise AssertionError(f"{what} hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def hostile(tmp_path: Path, interrupted: Path, name: str, kind: str) -> None:
    """Do everything with a folder in which `name` is of this kind; what lies outside stays as it is."""
    outside, folder = tmp_path / "outside", tmp_path / "inside" / "run"
    shutil.rmtree(tmp_path / "inside", ignore_errors=True)
    shutil.rmtree(outside, ignore_errors=True)
    (outside / "folder").mkdir(parents=True)
    (outside / "bashrc").write_bytes(SECRET)
    shutil.copytree(interrupted, folder)
    plant(folder / name, kind, outside)
    for what, command in everything(folder):
        with within(60, f"{what} of {name}, {kind}"):
            try:
                command()
            except SigmapcaError as problem:
                assert "\n" not in str(problem) and str(folder) in str(problem)
            except SystemExit:
                raise AssertionError(f"{what} leaves") from None
        assert (outside / "bashrc").read_bytes() == SECRET, f"{what} wrote through {name}, {kind}"
        assert sorted(p.name for p in outside.iterdir()) == ["bashrc", "folder"], what
        assert not list((outside / "folder").iterdir()), f"{what} wrote into a folder through {name}"


FOUND = [  # pairs that once led outside, or were waited for
    ("train.log", "link"),
    (".hydra", "link to a folder"),
    ("metrics.jsonl", "second name"),
    ("run.h5", "fifo"),
]


@pytest.mark.parametrize(("name", "kind"), FOUND)
def test_nothing_outside_is_written_and_nothing_is_waited_for(tmp_path, interrupted, name, kind):
    hostile(tmp_path, interrupted, name, kind)


@pytest.mark.full
@pytest.mark.parametrize(("name", "kind"), itertools.product(NAMES, KINDS))
def test_the_whole_corpus(tmp_path, interrupted, name, kind):
    hostile(tmp_path, interrupted, name, kind)


def test_the_corpus_bites(tmp_path):
    """The instrument: what opens such names as Python does writes outside, or would wait."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "bashrc").write_bytes(SECRET)
    plant(tmp_path / "train.log", "link", tmp_path)
    with open(tmp_path / "train.log", "a") as file:
        file.write("evil")
    assert (tmp_path / "bashrc").read_bytes() != SECRET
    plant(tmp_path / "run.h5", "fifo", tmp_path)
    with pytest.raises(AssertionError, match="hangs"), within(1, "open"):
        open(tmp_path / "run.h5", "rb")  # noqa: SIM115


# A sweep's folder.


def conf(folder: Path) -> Path:
    (folder / "group").mkdir(parents=True)
    (folder / "config.yaml").write_text("a: 1\n")
    (folder / "group" / "b.yaml").write_text("b: 2\n")
    return folder


def test_a_copy_of_the_configuration_is_what_its_name_says(tmp_path):
    ours = conf(tmp_path / "conf")
    sweep = tmp_path / "sweep"
    copy = snapshot(ours, sweep)
    assert snapshot(ours, sweep) == copy
    evil = "hydra: {callbacks: {x: {_target_: joblib.load, filename: evil.pkl}}}\n"
    for change in (
        lambda: (copy / "config.yaml").write_text(evil),
        lambda: (copy / "group" / "c.yaml").write_text(evil),
        lambda: (copy / "group" / "b.yaml").unlink(),
        lambda: (copy / "other").symlink_to(ours),
        lambda: (copy / "config.yaml").unlink() or (copy / "config.yaml").symlink_to(ours / "config.yaml"),
        lambda: os.mkfifo(copy / "c.yaml"),
    ):
        change()
        with within(20, "snapshot"), pytest.raises(InputError, match=r"remove it|not followed"):
            snapshot(ours, sweep)
        shutil.rmtree(copy)
        assert snapshot(ours, sweep) == copy, "an untouched one is made again"
    shutil.rmtree(copy.parent)
    copy.parent.symlink_to(tmp_path)
    with pytest.raises(InputError, match="symbolic link"):
        snapshot(ours, sweep)


def test_a_link_in_a_sweep_leads_nowhere(tmp_path):
    for name in ("multirun.yaml", "3", ".submitit", ".submitted.json"):
        sweep = tmp_path / name
        sweep.mkdir()
        refuse_links_in(sweep)
        (sweep / name).symlink_to(tmp_path)
        with pytest.raises(InputError, match="symbolic link"):
            refuse_links_in(sweep)


def test_the_documented_resume_of_a_strangers_sweep_runs_no_pickle(tmp_path):
    """The same command again, in a folder whose copy of conf/ has a callback that loads a pickle."""
    import pickle

    command = [
        "train",
        "-m",
        "data=planted",
        "data.n=64",
        "data.p=6",
        "data.k=2",
        "k=2",
        "steps=4",
        "seed=0,1",
    ]

    def run() -> subprocess.CompletedProcess[str]:
        return run_command(tuple(command), tmp_path, {})

    assert run().returncode == 0
    (copy,) = (tmp_path / "outputs" / "sweeps").glob("*/.conf/*")

    class Runs:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "was-here"),)

    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Runs()))
    target = f"{{_target_: joblib.load, filename: {tmp_path}/evil.pkl}}"
    text = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(f"{text}\n  callbacks:\n    evil: {target}\n")
    done = run()
    assert not (tmp_path / "was-here").exists()
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and str(copy.name) in done.stderr


# What a stored configuration may say.

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{later}: &{later} [{','.join([f'*{earlier}'] * 9)}]\n"
    for earlier, later in itertools.pairwise("abcdefghij")
)


CHANGES = [
    {"run_dir": "${oc.env:HOME}/x"},
    {"data": {"path": "${oc.env:HOME}"}},
    {"${oc.env:HOME}": 1},
    {"model": {"name": "../../outside/folder"}},
    {"model": {"name": "${oc.env:HOME}"}},
    {"recipe": {"_target_": "os.mkdir", "path": "was-here"}},
    BOMB,
    "a: " + "[" * 5000,
    "a: " + "9" * 5000,
    "a: " + "x" * (2 << 20),
    "a: !!python/object/apply:os.mkdir [was-here]",
    "- a\n",
]


@pytest.mark.parametrize(
    ("change", "command"),
    every(
        [(change, command) for change in CHANGES for command in ("resume", "rerun")],
        [(CHANGES[0], "resume"), *((change, "rerun") for change in CHANGES[3:7:3]), (CHANGES[10], "resume")],
    ),
    ids=lambda value: str(value)[:40],
)
def test_a_stored_configuration_holds_values_only(tmp_path, interrupted, monkeypatch, change, command):
    import yaml

    (tmp_path / "outside" / "folder").mkdir(parents=True)
    folder = tmp_path / "run"
    shutil.copytree(interrupted, folder)
    text = change
    if isinstance(change, dict):
        config = yaml.safe_load(StoredRun.open(folder).config_yaml)
        for key, value in change.items():
            config[key] = {**config[key], **value} if isinstance(config.get(key), dict) else value
        text = yaml.safe_dump(config)

    def put(file: h5py.File) -> str:
        del file["config"]
        file["config"] = text
        return summary_text(file)

    edit(folder / "run.h5", put)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path / "outputs"))
    before = sorted(tmp_path.rglob("*"))
    with within(60, command), pytest.raises(InputError) as refused:
        resume(str(folder), []) if command == "resume" else rerun(str(folder), [])
    assert "\n" not in str(refused.value) and os.path.expanduser("~/x") not in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_rerun_writes_where_its_user_says(tmp_path, interrupted, monkeypatch):
    import yaml

    folder = tmp_path / "run"
    shutil.copytree(interrupted, folder)

    def put(file: h5py.File) -> str:
        config = {**yaml.safe_load(file["config"][()]), "outputs": str(tmp_path / "elsewhere")}
        del file["config"]
        file["config"] = yaml.safe_dump(config)
        return summary_text(file)

    edit(folder / "run.h5", put)
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path / "outputs"))
    with pytest.raises(
        SigmapcaError, match="not identical"
    ):  # the interrupted one has no end to compare with
        rerun(str(folder), [])
    assert list((tmp_path / "outputs" / "nlpca").iterdir()) and not (tmp_path / "elsewhere").exists()


# Sizes.


def memory_file(fill: Callable[[h5py.File], None], attrs: dict[str, object]) -> bytes:
    with h5py.File("memory of test", "w", driver="core", backing_store=False) as file:
        file.attrs.update(attrs)
        fill(file)
        file.flush()
        return file.id.get_file_image()


RUN = {"format": "sigmapca-run", "format_version": 1, "status": "finished", "model": "m"}
CHECKPOINT = {"format": "sigmapca-checkpoint", "format_version": 1, "config_hash": "c", "data_hash": "d"}


def many_zeros(file: h5py.File) -> None:
    """Each data set within what a compressor can do, and 4 GB together."""
    packed = zlib.compress(bytes(16 << 20), 9)
    for i in range(64):
        zeros = file.create_dataset(f"tensors/{i}", (8 << 20,), "f8", chunks=(2 << 20,), compression="gzip")
        for start in range(0, 8 << 20, 2 << 20):
            zeros.id.write_direct_chunk((start,), packed)
    file["meta"] = "{}"


def test_no_sum_of_sizes_is_believed(tmp_path, limited):
    """54 KB took 11.8 GB: each data set was within bounds, their sum was not."""
    image = memory_file(many_zeros, {**CHECKPOINT, **RUN, **CHECKPOINT})
    assert len(image) < 6 << 20
    path = tmp_path / "checkpoint.h5"
    path.write_bytes(b"".join(sealed(image)))
    with pytest.raises(InputError, match="claims"):
        checkpoints.load(path)
    run = tmp_path / "run.h5"
    run.write_bytes(b"".join(sealed(memory_file(many_zeros, RUN))))
    with pytest.raises(InputError, match="claims"):
        StoredRun.open(run)


def test_entries_that_share_one_text_are_counted_each(tmp_path, limited):
    """HDF5 keeps texts beside their data set: entries may all point to one, which is a copy for each in memory."""
    text = b"x" * 60_000
    offset = 0

    def fill(file: h5py.File) -> None:
        nonlocal offset
        names = file.create_dataset("feature_name", (20_000,), h5py.string_dtype())
        names[:] = [text, *[b""] * 19_999]
        offset = names.id.get_offset()

    image = bytearray(memory_file(fill, RUN))
    image[offset : offset + 16 * 20_000] = image[offset : offset + 16] * 20_000
    run = tmp_path / "run.h5"
    run.write_bytes(b"".join(sealed(bytes(image))))
    with pytest.raises(InputError, match="claims"):
        StoredRun.open(run).names  # noqa: B018
    with h5py.File(run) as file:
        assert file["feature_name"][12_345] == text, "the instrument: each entry is the text"

    def honest(file: h5py.File) -> None:
        file.create_dataset("feature_name", data=[text] * 1500, dtype=h5py.string_dtype())

    run.write_bytes(b"".join(sealed(memory_file(honest, RUN))))
    assert len(StoredRun.open(run).names) == 1500, "90 MB of text in a file of 90 MB are honest"


def test_attributes_are_notes(tmp_path):
    def fill(file: h5py.File) -> None:
        for i in range(40):
            file.attrs[f"note{i}"] = "x" * 60_000

    run = tmp_path / "run.h5"
    run.write_bytes(b"".join(sealed(memory_file(fill, RUN))))
    with pytest.raises(InputError, match="attributes"):
        StoredRun.open(run)


def test_a_checkpoint_within_bounds_is_loaded(tmp_path):
    path = tmp_path / "checkpoint.h5"
    path.write_bytes(checkpoint())
    tensors, meta = checkpoints.load(path, config_hash="c", data_hash="d")
    assert meta == {"a": 1} and tensors["W"].shape == (12, 4)


# Text.

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egpj.exe"


def test_texts_of_a_run_cannot_steer_a_terminal(tmp_path, interrupted):
    folder = tmp_path / EVIL.replace("/", "")
    shutil.copytree(interrupted, folder)

    def put(file: h5py.File) -> str:
        file.attrs.update(model=EVIL, error=EVIL, data=EVIL)
        return summary_text(file)

    edit(folder / "run.h5", put)
    (folder / "error.json").write_text(json.dumps({"error": EVIL, "overrides": [f"a={EVIL}"]}))
    rows = [as_row(summarise_folder(folder))]
    shown = "\n".join(
        [
            *table_lines(rows, ["run", "model", "data", "folder", "error"], None),
            *table([found for found in [outcome(folder)] if found]),
            *(str(StoredRun.open(folder).attrs[name]) for name in ("model", "error")),
            shortened(folder),
        ]
    )
    assert "gpj" in shown and not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}


@pytest.mark.parametrize("terminal", [True, False])
def test_the_programs_own_streams_let_only_its_own_sequences_through(terminal):
    import io

    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    stream = Stream()
    print(
        "\x1b[31mred\x1b[0m",
        "\x1b]52;c;ZXZpbA==\x07",
        "\x1bP$q\x1b\\",
        "\x9b2J",
        "tab\t",
        file=Escaped(stream),
    )
    assert stream.getvalue().endswith("tab\t\n")
    kept = "\x1b[31mred\x1b[0m" if terminal else "\\x1b[31mred\\x1b[0m"
    assert stream.getvalue().startswith(kept)
    assert not set(stream.getvalue().removeprefix(kept)) & {"\x1b", "\x07", "\x9b"}


@given(st.text())
def test_printable_text_has_no_control_characters(text):
    assert all(sign.isprintable() or sign == "\\" or not sign.isascii() for sign in printable(text))
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "@SUM(1)", "+1+cmd", "-1+cmd", " =1", "\t=1"])
def test_a_formula_in_a_csv_cell_is_text(cell):
    assert str(csv_cell(cell)).startswith("'") or ("\t" in cell and str(csv_cell(cell)).startswith("\\x09"))


@pytest.mark.parametrize("cell", [-1.5, "-1.5", "+1e3", "a=4", "x", None, ""])
def test_numbers_and_plain_text_stay(cell):
    assert csv_cell(cell) == cell


# Lines and notes that are none.

LINES = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["step", "loss", "x"]), inner)
        ),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
    st.integers(500, 3000).map(lambda depth: b"[" * depth),
)


@pytest.mark.full
@settings(max_examples=int(os.environ.get("SIGMAPCA_FUZZ") or 60), suppress_health_check=list(HealthCheck))
@given(lines=st.lists(LINES, max_size=4))
def test_any_bytes_as_metrics_owner_and_note(tmp_path, lines):
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    content = b"\n".join(lines)
    for name in ("metrics.jsonl", ".owner.1", "error.json"):
        (folder / name).write_bytes(content)
    with contextlib.suppress(InputError):
        for row in read_metrics_jsonl(folder / "metrics.jsonl"):
            assert isinstance(row["step"], int)
    latest(folder / "metrics.jsonl")
    found = summarise_folder(folder)
    assert found.status != UNREADABLE or found.error
    outcome(folder)

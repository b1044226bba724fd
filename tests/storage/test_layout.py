"""A run file in which another program has put something else is refused in one line that names the place."""

import io
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from composing import composed

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.write import write_evaluation
from sigmapca_cli.system.errors import InputError

SMALL = ("data=planted", "data.n=200", "data.p=6", "data.k=2", "data.group=1", "k=2", "steps=20")
TEXT, GROUP = "abc", None
WRONG = [
    ("evaluation", TEXT, "where a group belongs"),
    ("evaluation", np.ones(3), "where a group belongs"),
    ("evaluation/angle", TEXT, "holds no numbers"),
    ("evaluation/angle", np.ones(3), "1 dimensions, where 0 belong"),
    ("evaluation/angle", h5py.Empty("f8"), "has no values"),
    ("evaluation/angle", GROUP, "is a group"),
    ("evaluation/orthogonality_error", TEXT, "holds no numbers"),
    ("evaluation/kurtosis", TEXT, "where 1 belong"),
    ("evaluation/converged", 1j, "holds no numbers"),
    ("evaluation/truth_similarity", TEXT, "where 1 belong"),
    ("evaluation/pca_sigma", np.ones((2, 2)), "where 1 belong"),
    ("evaluation/identifiability", TEXT, "where a group belongs"),
    ("evaluation/identifiability/verdict", np.ones((3, 3)), "not of 2 components"),
    ("metrics", TEXT, "where a group belongs"),
    ("metrics/loss", TEXT, "where 1 belong"),
    ("metrics/loss", GROUP, "is a group"),
    ("metrics/loss", np.ones(1000), "differ in length"),
    ("filters", TEXT, "where 2 belong"),
    ("filters", GROUP, "is a group"),
    ("filters", np.ones((6, 3)), "components"),
    ("filters", np.ones((6, 2), "S1"), "holds no numbers"),
    ("sigma", np.ones((2, 2)), "where 1 belong"),
    ("mean", np.ones(7), "features"),
    ("scale", GROUP, "is a group"),
    ("config", np.ones(3), "where 0 belong"),
    ("config", 1.5, "holds no text"),
    ("overrides", GROUP, "is a group"),
    ("component", TEXT, "where 1 belong"),
    ("feature", GROUP, "is a group"),
    ("truth_filters", np.ones(6), "where 2 belong"),
]


def put(path: Path, name: str, value: object) -> None:
    """Replace an item, as a program that knows nothing of this one would."""
    copy = io.BytesIO(path.read_bytes())
    with h5py.File(copy, "r+") as file:
        if name in file:
            del file[name]
        if value is None:
            file.create_group(name)
        else:
            file.create_dataset(name, data=value)
    path.write_bytes(copy.getvalue())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a finished run."""
    from sigmapca_cli.runner.run import run

    return run(job_of(composed(f"outputs={tmp_path_factory.mktemp('outputs')}", "threads=1", *SMALL)))


@pytest.mark.parametrize(("name", "value", "words"), WRONG, ids=lambda value: str(value)[:20])
def test_another_kind_or_shape_is_named(whole, tmp_path, name, value, words):
    run = StoredRun.open(shutil.copytree(whole, tmp_path / "run"))
    put(run.path, name, value)
    with pytest.raises(InputError, match=words) as refusal:
        StoredRun.open(run.folder)
    said = str(refusal.value)
    assert name.rsplit("/", 1)[0] in said and str(run.path) in said and "\n" not in said
    with pytest.raises(InputError):
        write_evaluation(run.folder, {"mcc": 1.0})


def test_what_the_format_does_not_know_may_be_anything(train):
    run = train(*SMALL)
    for name, value in (
        ("notes", TEXT),
        ("evaluation/mine", np.ones((2, 3))),
        ("evaluation/said", TEXT),
        ("evaluation/odd", 1j),
    ):
        put(run.path, name, value)
    again = StoredRun.open(run.folder)
    assert again.evaluation["said"] == TEXT and again.evaluation["mine"].shape == (2, 3)
    write_evaluation(run.folder, {"mcc": 1.0})
    assert StoredRun.open(run.folder).evaluation["said"] == TEXT


def test_every_command_answers_in_one_line(train, sigmapca, tmp_path):
    run = train(*SMALL)
    shutil.copytree(run.folder, tmp_path / "whole")
    shutil.copytree(run.folder, tmp_path / "wrong")
    put(tmp_path / "wrong" / "run.h5", "evaluation", TEXT)
    for command in (
        "show wrong",
        "report wrong",
        "evaluate wrong",
        "compare wrong whole",
        "plot wrong -o pictures",
    ):
        done = sigmapca(*command.split())
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, (command, done.stderr)
        assert "evaluation is an array, where a group belongs" in done.stderr
    listed = sigmapca("runs", ".")
    assert listed.returncode == 0 and "internal error" not in listed.stdout + listed.stderr
    assert "whole" in listed.stdout

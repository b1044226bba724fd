"""Searches by hydra/sweeper=optuna: the objective reaches the sweeper, folders go by hash, a killed search goes on."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from mechanisms import every
from shell import run_command

from sigmapca_cli.cli.searches import Search
from sigmapca_cli.cli.sweeps import sweep_of
from sigmapca_cli.composition.compose import Folders
from sigmapca_cli.launchers.adaptive import as_result
from sigmapca_cli.launchers.outcome import outcomes
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError

SMALL = ("data=planted", "data.n=1500", "data.p=10", "data.k=3", "data.group=3", "k=3", "threads=1")
SEARCH = ("train", "-m", *SMALL, "hydra/sweeper=optuna", "objective=mcc")
SPACE = ("steps=60", "lr=tag(log,interval(0.0001,0.1))", "hydra.sweeper.n_jobs=2")

KILL_AT_THE_THIRD = """
import os, signal
from sigmapca_cli.storage.write import RunWriter
ends, finish = [], RunWriter.finish
def killed(self, *arguments, **words):
    ends.append(self)
    if len(ends) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return finish(self, *arguments, **words)
RunWriter.finish = killed
"""


@pytest.fixture
def optuna() -> None:
    pytest.importorskip(
        "hydra_plugins.hydra_optuna_sweeper", reason="skipped: hydra-optuna-sweeper is not installed"
    )


def only_sweep(folder: Path) -> Path:
    (sweep,) = (folder / "outputs" / "sweeps").iterdir()
    return sweep


def finished(sweep: Path) -> dict[str, StoredRun]:
    return {
        job.number: StoredRun.open(sweep / job.number) for job in outcomes(sweep) if job.status == "finished"
    }


def reached(sweep: Path) -> dict[str, float]:
    return {name: float(run.evaluation["mcc"]) for name, run in finished(sweep).items()}


def best(sweep: Path) -> dict[str, object]:
    return yaml.safe_load((sweep / "optimization_results.yaml").read_text())


@pytest.mark.parametrize("compared", every([False, True], [False]))
def test_a_search_is_led_by_the_objective_and_goes_on_after_a_kill(compared, optuna, tmp_path):
    folders = {name: tmp_path / name for name in ("whole", "killed")}
    for folder in folders.values():
        folder.mkdir()
    command = (*SEARCH, *SPACE, "hydra.sweeper.n_trials=3")
    killed = run_command(command, folders["killed"], {}, before=KILL_AT_THE_THIRD)
    assert killed.returncode == -9
    assert len(finished(only_sweep(folders["killed"]))) == 2
    result = run_command(command, folders["killed"], {})
    assert result.returncode == 0 and "already finished: 2 of 2 jobs" in result.stdout, result.stderr
    sweep = only_sweep(folders["killed"])
    assert len(finished(sweep)) == 3
    for name, run in finished(sweep).items():
        assert run.attrs["config_hash"].startswith(name)
    values = reached(sweep)
    # The largest, not the smallest, which is what Optuna looks for unless it is told.
    assert best(sweep)["best_value"] == max(values.values()) > min(values.values())
    winner = max(values, key=values.__getitem__)
    assert re.search(rf"best mcc {max(values.values()):.6g}: lr=\S+\n +\S+{winner}\n", result.stdout)
    if compared:
        whole = run_command(command, folders["whole"], {})
        assert "2 runs side by side" in whole.stdout and reached(only_sweep(folders["whole"])) == values


@pytest.mark.full
def test_a_failed_trial_leaves_the_others_alone(optuna, sigmapca, tmp_path):
    command = (*SEARCH, "steps=20", "a=4,-1", "hydra/sweeper/sampler=grid", "hydra/launcher=joblib")
    result = sigmapca(*command, "hydra.launcher.n_jobs=1")
    assert result.returncode == 1 and "1 finished, 1 failed" in result.stdout
    assert "a=-1: must be" in result.stderr and "float-castable" not in result.stderr
    ((name, value),) = reached(only_sweep(tmp_path)).items()
    assert re.search(rf"best mcc {value:.6g}: a=4\n +\S+{name}\n", result.stdout)
    assert "gave up" not in result.stderr


def search(*words: str) -> Search | None:
    return sweep_of(words, Folders()).search


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["hydra/sweeper=optuna", "a=1,2"], "objective=reconstruction_error|mcc"),
        (["hydra/sweeper=optuna", "objective=mcc,loss"], "objective=[stability,loss]"),
        (
            ["hydra/sweeper=optuna", "objective=mcc", "hydra/launcher=slurm", "detach=true", "a=1,2"],
            "waits for the results",
        ),
        (["hydra/sweeper=optuna", "++objective=mcc", "k=3"], "nothing to search over"),
        (["a=interval(1,8)"], "hydra/sweeper=optuna"),
    ],
)
def test_what_is_no_search(optuna, overrides, words):
    with pytest.raises(InputError) as refused:
        search(*overrides)
    assert words in str(refused.value)


def test_a_search_adds_only_what_is_not_given(optuna):
    assert search("a=1,2", "objective=mcc") is None and search("hydra/sweeper=basic") is None
    added = search("hydra/sweeper=optuna", "objective=[mcc,loss]", "a=1,2").added
    assert "hydra.sweeper.direction=[maximize,minimize]" in added and "hydra.sweeper.sampler.seed=0" in added
    given = ["objective=loss", "++hydra.sweeper.sampler.seed=3", "hydra.sweep.subdir=x", "a=interval(1,8)"]
    found = search("hydra/sweeper=optuna", *given)
    assert found.added == ["hydra.sweeper.direction=minimize", "hydra.sweeper.max_failure_rate=1.0"]
    assert found.largest == [False] and search("hydra/sweeper=optuna", "objective=mcc", "a=1,2").largest == [
        True
    ]
    turned = search("hydra/sweeper=optuna", "objective=mcc", "a=1,2", "hydra.sweeper.direction=minimize")
    assert turned.largest == [False]
    grid = search("hydra/sweeper=optuna", "hydra/sweeper/sampler=grid", "objective=mcc", "a=1,2")
    assert not any("seed" in word for word in grid.added)


def test_what_a_file_says_counts_as_on_the_command_line(optuna, tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(
        "# @package _global_\n"
        "defaults:\n  - override /hydra/launcher: joblib\n  - override /hydra/sweeper: optuna\n"
        f"outputs: {tmp_path}/there\nobjective: mcc\nif_exists: fail\n"
        "hydra:\n  sweeper:\n    params:\n      a: range(1,4)\n"
    )
    sweep = sweep_of(["experiment=mine"], Folders(further=tmp_path))
    assert sweep.folder.parent == tmp_path / "there" / "sweeps" and sweep.search.largest == [True]
    assert not any(word.startswith(("hydra/launcher", "if_exists")) for word in sweep.words)


def test_values_that_a_sweeper_takes():
    assert as_result([0.5]) == 0.5 and as_result([0.5, 2.0]) == [0.5, 2.0]
    assert as_result([float("nan")]) is None and as_result([]) is None


def test_names_of_objectives_are_checked():
    assert Config(objective=["mcc", "loss", "mcc"]).objective == ["mcc", "loss"]
    with pytest.raises(InputError, match="did you mean mcc"):
        Config(objective="mc")


def test_trials_in_a_database_need_an_sqlalchemy_that_optuna_knows(optuna, tmp_path):
    words = (
        "hydra/sweeper=optuna",
        "objective=mcc",
        "k=1,2",
        f"hydra.sweeper.storage=sqlite:///{tmp_path}/t.db",
    )
    if int(version("sqlalchemy").partition(".")[0]) < 2:
        assert search(*words)
        return
    with pytest.raises(InputError, match="pip install"):
        search(*words)

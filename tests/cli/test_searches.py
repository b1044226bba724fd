"""Searches by hydra/sweeper=optuna: the objective reaches the sweeper, folders go by hash, a killed search goes on."""

import re
from pathlib import Path

import pytest
import yaml

from sigmapca_cli.cli.searches import best_lines, objectives, refuse_nothing_to_search, search_defaults
from sigmapca_cli.config import Config
from sigmapca_cli.errors import InputError
from sigmapca_cli.launchers.adaptive import as_result
from sigmapca_cli.launchers.outcome import outcomes
from sigmapca_cli.runs.read import Run

SMALL = ("data=planted", "data.n=1500", "data.p=10", "data.k=3", "data.group=3", "k=3", "threads=1")
SEARCH = ("train", "-m", *SMALL, "hydra/sweeper=optuna", "objective=mcc")
SPACE = ("steps=60", "lr=tag(log,interval(0.0001,0.1))", "hydra.sweeper.n_jobs=2")

KILL_AT_THE_THIRD = """
import os, signal
from sigmapca_cli.runs.write import RunWriter
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


def finished(sweep: Path) -> dict[str, Run]:
    return {job.number: Run.open(sweep / job.number) for job in outcomes(sweep) if job.status == "finished"}


def reached(sweep: Path) -> dict[str, float]:
    return {name: float(run.evaluation["mcc"]) for name, run in finished(sweep).items()}


def best(sweep: Path) -> dict[str, object]:
    return yaml.safe_load((sweep / "optimization_results.yaml").read_text())


def test_a_search_is_led_by_the_objective_and_goes_on_after_a_kill(optuna, sigmapca, tmp_path):
    from shell import run_command

    folders = {name: tmp_path / name for name in ("whole", "killed")}
    for folder in folders.values():
        folder.mkdir()
    command = (*SEARCH, *SPACE)
    result = run_command((*command, "hydra.sweeper.n_trials=4"), folders["whole"], {})
    assert result.returncode == 0 and "2 runs side by side" in result.stdout, result.stderr
    sweep = only_sweep(folders["whole"])
    assert len(finished(sweep)) == 4
    for name, run in finished(sweep).items():
        assert run.attrs["config_hash"].startswith(name) and run.attrs["side_by_side"] == 2
    values = reached(sweep)
    # The largest, not the smallest, which is what Optuna looks for unless it is told.
    assert best(sweep)["best_value"] == max(values.values()) > min(values.values())
    winner = max(values, key=values.__getitem__)
    assert re.search(rf"best mcc {max(values.values()):.6g}: lr=\S+\n +\S+{winner}\n", result.stdout)

    killed = run_command(
        (*command, "hydra.sweeper.n_trials=4"), folders["killed"], {}, before=KILL_AT_THE_THIRD
    )
    assert killed.returncode == -9
    assert len(finished(only_sweep(folders["killed"]))) == 2
    again = run_command((*command, "hydra.sweeper.n_trials=4"), folders["killed"], {})
    assert again.returncode == 0 and again.stdout.count("already finished") == 2, again.stderr
    assert reached(only_sweep(folders["killed"])) == values

    more = run_command((*command, "hydra.sweeper.n_trials=5"), folders["whole"], {})
    assert more.stdout.count("already finished") == 4 and "5 finished" in more.stdout


def test_a_failed_trial_leaves_the_others_alone(optuna, sigmapca, tmp_path):
    command = (*SEARCH, "steps=20", "a=4,-1", "hydra/sweeper/sampler=grid", "hydra/launcher=joblib")
    result = sigmapca(*command, "hydra.launcher.n_jobs=1")
    assert result.returncode == 1 and "1 finished, 1 failed" in result.stdout
    assert "a=-1: must be" in result.stderr and "float-castable" not in result.stderr
    ((name, value),) = reached(only_sweep(tmp_path)).items()
    assert re.search(rf"best mcc {value:.6g}: a=4\n +\S+{name}\n", result.stdout)
    assert "gave up" not in result.stderr


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["hydra/sweeper=optuna", "a=1,2"], "objective=reconstruction_error|mcc"),
        (["hydra/sweeper=optuna", "objective=mcc,loss"], "objective=[mcc,loss]"),
        (["hydra/sweeper=optuna", "objective=mcc", "hydra.launcher.detach=true"], "waits for the results"),
    ],
)
def test_what_is_no_search(overrides, words):
    with pytest.raises(InputError) as refused:
        search_defaults(overrides)
    assert words in str(refused.value)


def test_a_search_adds_only_what_is_not_given():
    assert search_defaults(["a=1,2", "objective=mcc"]) == search_defaults(["hydra/sweeper=basic"]) == []
    added = search_defaults(["hydra/sweeper=optuna", "objective=[mcc,loss]"])
    assert "hydra.sweeper.direction=[maximize,minimize]" in added and "hydra.sweeper.sampler.seed=0" in added
    given = ["hydra/sweeper=optuna", "objective=loss", "hydra.sweeper.sampler.seed=3", "hydra.sweep.subdir=x"]
    assert search_defaults(given) == [
        "hydra.sweeper.direction=minimize",
        "hydra.sweeper.max_failure_rate=1.0",
    ]
    assert objectives(["objective=null"]) == []
    assert best_lines(Path("nowhere"), [], ["objective=mcc"]) == []


def test_a_search_needs_something_open():
    search = ["hydra/sweeper=optuna", "objective=loss", "k=3"]
    with pytest.raises(InputError, match="nothing to search over"):
        refuse_nothing_to_search(search)
    for open_ in ("a=1,2", "a=interval(1,8)", "hydra.sweeper.params={a: 'range(1,4)'}"):
        refuse_nothing_to_search([*search, open_])
    refuse_nothing_to_search(["k=3"])


def test_values_that_a_sweeper_takes():
    assert as_result([0.5]) == 0.5 and as_result([0.5, 2.0]) == [0.5, 2.0]
    assert as_result([float("nan")]) is None and as_result([]) is None


def test_names_of_objectives_are_checked():
    assert Config(objective=["mcc", "loss", "mcc"]).objective == ["mcc", "loss"]
    with pytest.raises(InputError, match="did you mean mcc"):
        Config(objective="mc")

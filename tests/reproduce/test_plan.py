"""Every experiment of the paper is there, composes, and can be run alone by the command its file names."""

from dataclasses import replace

import pytest
from mechanisms import every

from sigmapca_cli.data.config import KINDS
from sigmapca_cli.methods.check import normalise_regularisers
from sigmapca_cli.reproduce.command import settings
from sigmapca_cli.reproduce.engine import Task, job, tasks
from sigmapca_cli.reproduce.experiment import RELATIONS
from sigmapca_cli.reproduce.plan import Panel, Setting
from sigmapca_cli.reproduce.registry import EXPERIMENTS, ORDER
from sigmapca_cli.settings.conf_files import conf_folder

QUICK = Setting("default", "natural", True)
RUN = [name for name, experiment in EXPERIMENTS.items() if experiment.panels]


def test_each_experiment_has_a_file_that_names_its_figure_and_its_commands():
    files = {file.stem: file.read_text() for file in (conf_folder() / "experiment").glob("*.yaml")}
    assert (
        set(RUN) <= set(files)
        and set(ORDER) <= set(EXPERIMENTS)
        and set(EXPERIMENTS) - set(RUN) == {"theory"}
    )
    assert len(set(ORDER) & set(RUN)) == 19
    for name in RUN:
        assert f"experiment={name}" in files[name] and f"sigmapca reproduce {name}" in files[name]
    for name in set(ORDER) & set(RUN):
        assert "Figure" in files[name] or "Table" in files[name] or "figure" in files[name]


@pytest.mark.parametrize("name", RUN)
def test_main_run_composes(name):
    cfg = job(Task(name, "main", (f"experiment={name}",))).cfg
    assert (cfg.steps or cfg.epochs is None or cfg.epochs >= 3) and cfg.data.name in KINDS


def test_a_panel_with_a_solver_of_its_own_keeps_it_and_is_made_once():
    panel = Panel("own", "Its own solver", ("solver=independence", "data=planted", "k=3"))
    figure = replace(EXPERIMENTS["points-uniform"], panels=(panel,))
    (made,) = tasks(figure, Setting(solver="moments"))
    assert job(made).cfg.solver.name == "independence"
    assert len(tasks(figure, Setting(seeds=3))) == 1


PANELS = ("trainable-sigma", "zca-whitened", "latent-reconstruction", "nonlinear-summary")


@pytest.mark.parametrize("name", every(PANELS, PANELS[:2]))
def test_panels_compose_to_what_they_say(name):
    work = [task for task in tasks(EXPERIMENTS[name], QUICK) if "/" not in task.key]
    if name == "nonlinear-summary":
        work = work[7:9] + work[23:24]
    found = {task.key: job(task).cfg for task in work}
    if name == "trainable-sigma":
        assert [found[k].sigma.l2 for k in ("epoch3", "epoch10", "penalty")] == [0, 0, 1e-3]
        assert [found[k].epochs for k in ("epoch3", "epoch10", "penalty")] == [3, 10, 10]
    if name == "zca-whitened":
        assert [found[k].data.whiten for k in ("pca", "white", "nonlinear")] == ["none", "zca", "zca"]
    if name == "latent-reconstruction":
        keys = ("wtw1", "wtw0", "beta1", "beta10", "beta100")
        betas = [normalise_regularisers(found[k].regularisers).get("symmetric", 0) for k in keys]
        assert betas == [1, 0, 1, 10, 100] and found["triangular"].ordering.name == "triangular"
    if name == "nonlinear-summary":
        assert [cfg.model.name for cfg in found.values()] == list(found)
        assert found["nlpca"].lr == 0.01 and found["nlpca_triangular"].a == 6
    assert all(cfg.data.name == "natural" for cfg in found.values())


def test_halves_are_disjoint_with_their_own_randomness_and_as_many_steps():
    experiment = EXPERIMENTS["cifar-filters"]
    keys = ("a4", "a4/even", "a4/odd")
    found = {t.key: job(t).cfg for t in tasks(experiment, QUICK) if t.key in keys}
    even, odd, whole = found["a4/even"], found["a4/odd"], found["a4"]
    assert {even.data.half, odd.data.half} == {"even", "odd"} and even.seed != odd.seed
    assert even.epochs == 2 * whole.epochs and even.a == odd.a == whole.a == 4


def test_a_quick_look_gives_slow_rows_their_steps():
    experiment = EXPERIMENTS["linear-summary"]
    quick, full = (job(tasks(experiment, Setting(quick=q))[1]).cfg for q in (True, False))
    assert quick.data.images < full.data.images
    assert quick.epochs * quick.data.images == pytest.approx(full.epochs * full.data.images, rel=0.02)


def test_a_quick_look_downloads_nothing():
    for experiment in EXPERIMENTS.values():
        for task in tasks(experiment, QUICK):
            if experiment.images and "data=natural" not in task.overrides:
                assert "data.offline=true" in task.overrides


def test_both_recipes_reach_every_image_run():
    for setting in settings("both", None, False):
        for task in tasks(EXPERIMENTS["tanh-scale"], setting)[:2]:
            cfg = job(task).cfg
            assert cfg.optimizer.tangent == (setting.recipe == "default")
            assert cfg.data.epsilon == (1e-3 if setting.recipe == "paper" else None)


def test_panel_keys_are_unique_and_relations_known():
    for experiment in EXPERIMENTS.values():
        keys = [panel.key for panel in experiment.panels]
        assert len(keys) == len(set(keys))
        asked = [condition for claim in experiment.claims for condition in claim.conditions]
        assert asked and all(one.relation in RELATIONS and one.threshold < 10 for one in asked)

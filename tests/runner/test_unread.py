"""Keys that a run does not read: the table of keys × ways; typed they are refused, of an experiment they are said."""

from functools import cache

import numpy as np
import pytest
from mechanisms import every

from sigmapca_cli.cli.samples import refuse_unread as refuse_unread_of_sweep
from sigmapca_cli.composition.compose import Folders, compose_job
from sigmapca_cli.composition.overrides import parsed
from sigmapca_cli.runner.unread import refuse_unread, said_of_stored, unread
from sigmapca_cli.settings.keys import known_keys
from sigmapca_cli.system.errors import InputError

DATA = ["data=planted", "k=4"]
WAYS = {
    "steps": [],
    "steps by sgd": ["optimizer=sgd"],
    "steps from moments": ["init=moments"],
    "steps with tanh": ["model=nlpca_tanh"],
    "newton": ["solver=newton"],
    "newton from independence": ["solver=newton", "init=independence"],
    "newton lica": ["solver=newton", "model=lica"],
    "moments": ["solver=moments"],
    "independence": ["solver=independence"],
    "pca": ["model=pca_svd"],
    "fastica": ["model=fastica"],
}
STEPS = {name for name in WAYS if name.startswith("steps")}
SOLVERS = set(WAYS) - STEPS - {"pca", "fastica"}
SCALED = {*STEPS, "newton", "newton from independence"} - {"steps with tanh"}
READERS = {
    **dict.fromkeys(("batch_size", "lr", "rescale", "log_every", "tol", "stop", "keep", "dtype"), STEPS),
    **dict.fromkeys(("precision", "constraint.name", "sigma.momentum", "sigma.relative"), STEPS),
    **dict.fromkeys(("optimizer.name", "optimizer.tangent", "optimizer.schedule", "checkpoint.every"), STEPS),
    **{key: STEPS - {"steps by sgd"} for key in ("optimizer.beta1", "optimizer.epsilon")},
    "optimizer.momentum": {"steps by sgd"},
    **dict.fromkeys(("a", "nonlinearity.a"), SCALED),
    **{key: set() for key in ("nonlinearity.c", "ordering.rho", "ordering.form", "data.variant", "data.patch")},
    **{key: set() for key in ("data.key", "data.images", "data.path")},
    **dict.fromkeys(("solver.tol", "solver.max_iterations"), SOLVERS),
    "solver.starts": SOLVERS | {"steps from moments"},
    "solver.lam": {"moments", "steps from moments"},
    "solver.tau": {"independence", "newton from independence"},
    "solver.polish": {"newton", "newton from independence"},
    "init": STEPS | SOLVERS - {"newton lica"},
    "model.fun": {"fastica"},
    "model.max_iter": {"fastica"},
    "model.varimax": set(),
    **{key: set(WAYS) for key in ("data.n", "data.p", "data.seed", "data.noise", "data.half", "data.ordered")},
    **{key: set(WAYS) for key in ("k", "seed", "threads", "device", "outputs", "strict", "log_format")},
    **{key: set(WAYS) for key in ("if_exists", "model.name", "data.name", "recipe", "data.centre", "data.epsilon")},
}  # fmt: skip
"""Key: the ways that read it."""


@pytest.fixture(scope="module")
def configuration():
    return cache(lambda way: compose_job([*DATA, *WAYS[way]]).cfg)


@pytest.mark.parametrize("way", every(WAYS, ["steps", "moments", "pca"]))
def test_each_key_is_read_where_it_has_an_effect(configuration, way):
    cfg = configuration(way)
    assert not set(READERS) - set(known_keys())
    # ε has no value unless it is given: a key without a value asks for nothing.
    expected = {key for key, readers in READERS.items() if way not in readers and has_value(cfg, key)}
    assert set(unread(cfg, READERS)) == expected


def has_value(cfg, key):
    for name in key.split("."):
        cfg = getattr(cfg, name)
    return cfg is not None


def test_a_key_of_nobodys_table_is_read_by_every_way(configuration):
    for way in ("steps", "moments", "pca"):
        assert not unread(configuration(way), ["tags", "note", "data.scale_input", "nothing.of_this_name"])


@pytest.mark.parametrize(
    ("words", "key"),
    every(
        [
            ("data=array data.path=x.npy data.n=500", "data.n"),
            ("init_file=x.npy", "init_file"),
            ("steps=3 epochs=2", "epochs"),
            ("steps=3 max_steps=4", "max_steps"),
            ("recipe=paper max_steps=4", "max_steps"),
            ("solver=moments a=4", "a"),
            ("a=3 nonlinearity.a=4", "a"),
            ("solver=newton init=orthogonal", "init"),
            ("solver=moments device=cuda", "device"),
            ("checkpoint.every_steps=5 checkpoint.every=9", "checkpoint.every"),
            ("data=natural data.seed=1", "data.seed"),
            ("data=signals data.path=here data.noise=1", "data.noise"),
            ("data=signals data.mix=false", "data.mix"),
            ("device=cpu precision=high", "precision"),
            ("steps=3 ending=full_batch", "ending"),
            ("keep=best_loss ending=full_batch", "ending"),
            ("run_dir=here outputs=there", "outputs"),
            ("init=independence solver.starts=3", "solver.starts"),
            ("solver=independence data=natural solver.starts=3", "solver.starts"),
            ("solver=newton solver.a_from=sign", "solver.a_from"),
            ("model=lica a=auto solver.a_from=independence", "solver.a_from"),
            ("data=natural data.select=random", "data.select"),
            ("data=array data.path=x.npy data.delimiter=tab", "data.delimiter"),
            ("data=array data.path=[a.npz,b.npy] data.encoding=latin1", "data.encoding"),
        ],
        [("steps=3 epochs=2", "epochs"), ("data=natural data.seed=1", "data.seed")],
    ),
)
def test_a_typed_key_without_effect_is_refused_by_its_name(words, key):
    with pytest.raises(InputError) as refused:
        refuse_unread(compose_job([*DATA, *words.split()]))
    assert str(refused.value).startswith(f"{key}=")


@pytest.mark.parametrize(
    "words",
    every(
        [
            "steps=3 epochs=null",
            "max_steps=9 stop=tol",
            "solver=newton ordering=none sigma=data a=inf",
            "solver=independence init=moments solver.lam=0.2",
            "data=natural data.images=40 data.select=random data.seed=3",
            "model=pca_svd seed=3 threads=1 log_format=plain strict=true device=cpu",
            "a=3 optimizer={name:sgd,momentum:0.5}",
            "device=cpu precision=highest ending=none outputs=there",
            "run_dir=here outputs=there tracker=tensorboard",
            "data=array data.path=[x.csv,y.npy] data.delimiter=tab",
        ],
        ["solver=newton ordering=none sigma=data a=inf"],
    ),
)
def test_a_typed_key_that_is_read_is_not_refused(words):
    assert refuse_unread(compose_job([*DATA, *words.split()])) == []


def test_what_only_a_run_on_this_machine_does_not_read_is_said(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (line,) = refuse_unread(compose_job([*DATA, "precision=high"]))
    assert line.startswith("precision=high: ")


def test_keys_of_an_experiment_are_said_and_those_of_models_and_recipes_never():
    job = compose_job(["experiment=signals-orthogonal", "solver=newton", "a=2"])
    (by_steps, start) = refuse_unread(job)
    assert by_steps.startswith("experiment=signals-orthogonal: ") and "batch_size=100" in by_steps
    assert "init=orthogonal" in start
    assert refuse_unread(compose_job(["model=gha", "recipe=paper", "data=planted", "steps=3"])) == []


def test_keys_typed_for_a_stored_run_are_said():
    assert said_of_stored(compose_job([*DATA, "solver=moments", "a=3", "lr=0.1"])) == [
        "a=3, lr=0.1: solver=moments has no use for this"
    ]


@pytest.mark.parametrize(
    ("words", "key"),
    every(
        [
            ("model=pca_svd a=1,2,3", "a"),
            ("steps=10 epochs=1,2", "epochs"),
            ("model=pca_svd lr=interval(0.1,1)", "lr"),
            ("solver=newton,moments a=1,2 solver.lam=0.3", None),
            ("model=pca_svd,nlpca steps=3", None),
            ("model=pca_svd seed=range(5) hydra.sweep.dir=x", None),
        ],
        [("model=pca_svd a=1,2,3", "a"), ("model=pca_svd,nlpca steps=3", None)],
    ),
)
def test_the_jobs_of_a_sweep_may_share_keys(words, key):
    given = parsed([*DATA, *words.split()], sweep=True)
    if key is None:
        refuse_unread_of_sweep(given, Folders())
        return
    with pytest.raises(InputError) as refused:
        refuse_unread_of_sweep(given, Folders())
    assert str(refused.value).startswith(f"{key}=")


def test_a_path_without_its_kind_is_answered_with_the_kind(tmp_path):

    np.save(tmp_path / "x.npy", np.zeros((30, 3)))
    with pytest.raises(InputError, match="add data=array, which reads it"):
        refuse_unread(compose_job([f"data.path={tmp_path}/x.npy"]))
    assert not refuse_unread(compose_job([f"data.path={tmp_path}/x.npy", "data=array"]))
    with pytest.raises(InputError, match="name the kind"):
        refuse_unread(compose_job([f"data.path={tmp_path}/none.npy", "k=3"]))

"""The configurations of a sweep's jobs against those that Hydra composes one by one."""

import pytest
from mechanisms import every
from omegaconf import OmegaConf

from sigmapca_cli.composition.compose import compose_job, load, registered
from sigmapca_cli.composition.sweep_loader import SweepLoader
from sigmapca_cli.settings.conf_files import conf_folder
from sigmapca_cli.settings.quoting import without_interpolation

JOBS = [
    ("seed=3",),
    ("seed=4", "a=2.5", "note='x, y'"),
    ("data.n=500", "a=${seed}"),
    ("optimizer=sgd", "lr=0.1", "optimizer.momentum=0.5"),
    ("model=rica", "seed=1"),
    ("tags=[one,two]", "solver={name:newton}"),
    ("++note=here", "hydra.job.chdir=false"),
    ("seed=5", "seed=6"),
]


@pytest.fixture(scope="module")
def loader():
    """Hydra's loader of the files of this program, and the configuration that a sweep begins with."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.utils import create_config_search_path

    return ConfigLoaderImpl(create_config_search_path(str(conf_folder()))), load(["k=4"], sweep=True)


@pytest.mark.parametrize(
    ("words",), every([(words,) for words in JOBS], [(JOBS[2],), (JOBS[4],), (JOBS[5],)]), ids=str
)
def test_a_job_has_the_configuration_that_hydra_composes(loader, words):
    hydras, master = loader

    with registered():
        wanted = hydras.load_sweep_config(master, ["k=4", *words])
        quick = SweepLoader(hydras)
        for others in (("seed=9", "data.n=7"), words, words):  # a job leaves nothing behind for the next
            found = quick.composed(master, ["k=4", *others])
    assert OmegaConf.to_container(found, resolve=False) == OmegaConf.to_container(wanted, resolve=False)
    assert OmegaConf.is_struct(found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["data=planted", "k=4", "seed=range(0,9)"], ["data=planted", "k=4", "seed=3"]),
        (["data=planted", "k=4", "a=2", "seed=0,1"], ["data=planted", "k=4", "seed=1"]),
        (["model=nlpca,rica", "k=4", "seed=0,1"], ["model=rica", "k=4", "seed=1"]),
        (
            ["++note=x", "optimizer=sgd", "tags=[a]", "seed=0,1"],
            ["++note=x", "optimizer=sgd", "tags=[a]", "seed=1"],
        ),
    ],
    ids=" ".join,
)
def test_a_job_is_made_from_the_sweeps_own_configuration_only_where_that_has_its_choices(
    loader, given, words
):
    hydras, _ = loader

    with registered():
        master = load(given, sweep=True)
        wanted = hydras.load_sweep_config(master, words)
        found = SweepLoader(hydras).composed(master, words)
    assert OmegaConf.to_container(found, resolve=False) == OmegaConf.to_container(wanted, resolve=False)


def test_what_hydra_refuses_is_refused(loader):
    hydras, master = loader

    with registered(), pytest.raises(Exception, match="no_such_key"):
        SweepLoader(hydras).load_sweep_config(master, ["no_such_key=4"])


def test_one_number_stands_for_others_of_its_type_where_jobs_are_asked_for(loader):
    hydras, master = loader

    with registered():
        quick = SweepLoader(hydras)
        for seed in range(3):
            quick.load_sweep_config(master, ["k=4", f"seed={seed}"])
        assert len(quick.legal) == 1
        with pytest.raises(Exception, match="seed"):
            quick.load_sweep_config(master, ["k=4", "seed=1.5"])


def test_a_stored_configuration_is_what_omegaconf_writes(tmp_path):
    for words in (["note=\"# 'x': [1]\"", "tags=[a,'1']"], ["k=0.5", "data=array", "data.path=[a,'b c']"]):
        job = compose_job(words)
        wanted = OmegaConf.to_yaml(OmegaConf.create(without_interpolation(job.plain)), resolve=True)
        assert job.yaml == wanted

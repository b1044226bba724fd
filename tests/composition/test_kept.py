"""Configurations that are kept between compositions, against those that Hydra makes from all files."""

import shutil
import threading

import pytest
import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.types import RunMode
from omegaconf import OmegaConf

from sigmapca_cli.composition import compose
from sigmapca_cli.composition.compose import Folders, compose_job, load
from sigmapca_cli.composition.job import with_changes
from sigmapca_cli.settings.conf_files import conf_folder
from sigmapca_cli.settings.quoting import without_interpolation
from sigmapca_cli.system.errors import InputError

WORDS = [
    ("k=3", "seed=1"),
    ("data=planted", "model=rica", "optimizer=sgd", "lr=0.1"),
    ("seed=4", "++seed=3", "seed=5"),  # the last counts
    ("solver.starts=5", "solver={name:newton,starts:3}", "a=${seed}", "seed=2"),
    ("hydra/job_logging=disabled", "seed=4", "hydra/hydra_logging=disabled"),
    ("tags=[one,two]", "note='x, y'", "++regularisers.here=1"),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_it_is_the_configuration_that_hydra_makes(words):
    with compose.registered():
        path = create_config_search_path(str(conf_folder()))
        wanted = ConfigLoaderImpl(path).load_configuration("config", list(words), RunMode.RUN)
    for _ in range(2):
        load(["k=7", "seed=9", "note=another"])  # leaves nothing behind
        load(["k=7", "model=gha", "optimizer=sgd", "data=array"])
        found = load(words)
        assert all_of(found) == all_of(wanted)
    assert compose.job_of(found).plain == compose.job_of(wanted).plain


def all_of(config):
    """What a configuration has: values, which types they may have, and where keys may be added."""
    facts = {
        name: fact for name, fact in vars(config._metadata).items() if name != "resolver_cache"
    }  # the time
    if OmegaConf.is_dict(config) and not config._is_none():
        return facts, {key: all_of(config._get_node(key)) for key in config}
    if OmegaConf.is_list(config) and not config._is_none():
        return facts, [all_of(config._get_node(number)) for number in range(len(config))]
    return facts, config._value()


def test_the_time_is_that_of_the_composition():
    from hydra.core.utils import setup_globals

    setup_globals()  # as a sweep has done

    def now():
        return load(["++note='${now:%f}'"]).note

    load([])
    assert now() != now()


def test_a_file_that_has_changed_is_read_again(tmp_path):
    conf = tmp_path / "conf"
    shutil.copytree(conf_folder(), conf)
    for n in (123, 456):
        (conf / "data" / "planted.yaml").write_text(f"name: planted\nn: {n}\n")
        assert load(["data=planted", "seed=1"], Folders(conf)).data.n == n
        assert load(["data=planted", "seed=2"], Folders(conf)).data.n == n
        assert load(["data=planted", "model=gha"], Folders(conf)).data.n == n


def test_files_that_are_chosen_by_the_environment_are_chosen_each_time(tmp_path, monkeypatch):
    conf = tmp_path / "conf"
    shutil.copytree(conf_folder(), conf)
    config = conf / "config.yaml"
    config.write_text(config.read_text().replace("- data: natural", "- data: ${oc.env:WHICH}"))
    for name in ("planted", "array", "planted"):
        monkeypatch.setenv("WHICH", name)
        assert load(["seed=1"], Folders(conf)).data.name == name


def test_links_in_a_folder_of_configurations_may_lead_nowhere_and_in_circles(tmp_path):
    conf = tmp_path / "conf"
    shutil.copytree(conf_folder(), conf)
    (conf / "data" / ".#planted.yaml").symlink_to("user@host.1234:1")  # as Emacs locks a file that is open
    (conf / "model" / "again").symlink_to("..")
    assert load(["data=planted"], Folders(conf)).data.name == "planted"


def test_what_is_refused_is_refused_each_time():
    for words in (["no_such_key=4"], ["+k=3"], ["data=nowhere"], ["k=1,2"]):
        for _ in range(2):
            with pytest.raises(InputError):
                load(words)


def test_threads_compose_at_once():
    found = {}

    def composed(seed):
        found[seed] = [compose_job(["data=planted", f"seed={seed}", f"a={seed + 2}"]).cfg for _ in range(5)]

    threads = [threading.Thread(target=composed, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((cfg.seed, cfg.a) == (seed, seed + 2) for seed, all_ in found.items() for cfg in all_)


WORDS_OF_YAML = [
    "y",
    "no",
    "1e3",
    "inf",
    "1_000",
    "~",
    "",
    "2020-01-01",
    "1:30",
    "- a",
    "a: b",
    "a #b",
    " a",
    "é漢",
    "😀",
]


@pytest.mark.parametrize("note", [*WORDS_OF_YAML, "${seed}", "a\nb\n", "longer " * 30, "'\"\\"])
def test_what_is_stored_is_what_omegaconf_writes(note):
    job = compose_job(["data=planted", "k=3", "tags=[a,1]", "++regularisers.here=1"])
    job = with_changes(job, {"note": note})
    assert job.yaml == OmegaConf.to_yaml(OmegaConf.create(without_interpolation(job.plain)), resolve=True)
    assert OmegaConf.to_container(OmegaConf.create(yaml.safe_load(job.yaml)), resolve=False)["note"] == note

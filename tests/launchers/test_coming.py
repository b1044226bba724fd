"""The jobs of a sweep as they come: the first at once, groups together, each with the job that is composed alone."""

import pytest
from composing import composed
from mechanisms import every
from omegaconf import OmegaConf

from sigmapca_cli.composition.compose import compose_job, load, registered
from sigmapca_cli.composition.job import job_from
from sigmapca_cli.composition.sweep_loader import SweepLoader
from sigmapca_cli.launchers.coming import Queue
from sigmapca_cli.settings.conf_files import conf_folder
from sigmapca_cli.system.errors import InputError

JOBS = [
    ("seed=4", "a=2.5", "note='x, y'"),
    ("data.n=500", "seed=4", "a=${seed}"),
    ("model=pca_svd", "tags=[one,two]"),
    ("a=auto",),
]


@pytest.fixture
def queue(tmp_path):
    """Return the queue of a sweep: overrides of each job → Queue."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.utils import create_config_search_path

    def make(jobs, alone=False):
        master = load([f"hydra.sweep.dir={tmp_path}"], sweep=True)
        loader = SweepLoader(ConfigLoaderImpl(create_config_search_path(str(conf_folder()))))
        return Queue(loader, master, list(enumerate(map(list, jobs))), alone=alone)

    with registered():
        yield make


def test_the_first_job_begins_before_the_last_is_composed(queue):
    jobs = queue([("data=planted", "k=2", f"seed={seed}") for seed in range(500)])
    first = next(jobs.groups())
    assert [one.number for one in first] == [0] and len(jobs.asked) == 1


def test_jobs_that_are_trained_side_by_side_come_together(queue):
    sweep = [("data=planted", "k=2", f"a={a}", f"seed={seed}") for a in (2, 4) for seed in (0, 1)]
    assert [[one.number for one in members] for members in queue(sweep).groups()] == [[0, 2], [1, 3]]
    assert [[one.number for one in members] for members in queue(sweep, alone=True).groups()] == [
        [0],
        [1],
        [2],
        [3],
    ]


@pytest.mark.parametrize(("words",), every([(words,) for words in JOBS], [(JOBS[1],), (JOBS[2],)]), ids=str)
def test_a_job_is_the_one_that_is_composed_alone(queue, words):
    own = [word for word in words if not word.startswith("hydra")]
    jobs = queue([("k=4", "seed=9", "data.n=7"), ("k=4", "seed=9", "data.n=8"), ("k=4", *own)])
    *_, last = (one for members in jobs.groups() for one in members)
    alone = compose_job(["k=4", *own])
    assert last.job.cfg == alone.cfg and last.job.hash == alone.hash
    assert {**last.job.plain, "if_exists": ""} == {**alone.plain, "if_exists": ""}


def test_a_value_of_another_type_is_refused_and_leaves_nothing_behind():
    plain = OmegaConf.to_container(composed("k=2"), resolve=True)
    plain.pop("hydra", None)
    first = job_from(plain)
    with pytest.raises(InputError):
        job_from({**plain, "seed": "word"})
    assert job_from({**plain, "seed": 3}).cfg.seed == 3
    assert job_from(plain).plain == first.plain


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden"])
def test_a_folder_that_the_sweep_would_not_find_is_refused(queue, name):
    with pytest.raises(InputError, match=r"hydra\.sweep\.subdir"):
        next(queue([("data=planted", "k=2", f"hydra.sweep.subdir={name}")]).groups())


def test_another_job_in_the_same_folder_is_not_passed_over(queue):
    sweep = [("data=planted", "k=2", f"a={a}", "hydra.sweep.subdir=same") for a in (1, 1, 2)]
    came = [[(one.number, one.key is None) for one in members] for members in queue(sweep).groups()]
    assert came == [[(2, True)], [(0, False)]]  # which is refused by the run that it finds there

"""The hash of a configuration says that two runs are the same run: those of stored runs must stay."""

import copy
import shlex
from dataclasses import replace

import pytest

from sigmapca_cli.composition.compose import compose_job

HASHES = {
    "": "364846204c5e36a3",
    "model=nlpca": "364846204c5e36a3",
    "model=lica": "7c38cc379442eaac",
    "model=pca_svd": "3db2b6c2daa5e965",
    "model=fastica": "c4bf0b3ace0a117f",
    "data=planted": "f5695a72980b3d05",
    "data=array data.path=/tmp/x": "dadc3765f3b8f16f",
    "data=prepared": "a8bb332ca66b103d",
    "data=cifar10": "27a8c268c4d83ec4",
    "recipe=paper": "8431c4d3fc01dbb3",
    "experiment=first-64": "4b3338c7fef7a21c",
    "experiment=latent-reconstruction": "2d38b00e4f4450d7",
    "solver=newton a=auto solver.a_from=sign": "cac28c04ae66ed92",
    "a=auto nonlinearity=scaled_tanh solver.a_from=sign": "0a5d1b36dd3cf6e4",
    "model=nlpca_whitened nonlinearity=scaled_tanh a=auto": "c9886ed1a4103e01",
    "model=lica solver=moments": "703114c4f9ba0e51",
    "+regularisers.whitened=2": "4187ad3f96233881",
    "data=array data.path='a b.npy' data.drop=[a,b]": "0b9f0039ce57f89c",
    "optimizer=sgd lr=0.1 optimizer.schedule=constant": "da071dd91722f9eb",
    "k=0.95": "6eaed0883d07a26a",
}


@pytest.mark.parametrize("words", HASHES)
def test_the_hash_of_a_configuration_stays(words):
    """Runs of before had no ending."""
    assert compose_job([*shlex.split(words), "ending=none"]).hash[:16] == HASHES[words]


def test_a_run_with_an_ending_is_another_run():
    assert compose_job([]).hash != compose_job(["ending=none"]).hash
    for words in (["recipe=paper"], ["solver=newton"], ["steps=100"]):  # these have none
        assert compose_job(words).hash == compose_job([*words, "ending=none"]).hash


@pytest.mark.parametrize("words", [["solver=newton"], ["model=nlpca"]])
def test_a_chosen_at_the_answer_of_independence_is_another_run_only_where_a_is_chosen(words):
    by_sign = [*words, "solver.a_from=sign"]
    assert compose_job([*words, "a=auto"]).hash != compose_job([*by_sign, "a=auto"]).hash
    assert compose_job(words).hash == compose_job(by_sign).hash


def test_the_settings_of_a_job_do_not_change():
    job = compose_job(["a=2"])
    for settings, name in ((job.cfg, "k"), (job.cfg.data, "half"), (job.cfg.solver, "tol")):
        with pytest.raises(AttributeError, match=name):
            setattr(settings, name, 3)
    assert replace(job.cfg, k=3).k == 3
    other = copy.copy(job.cfg.solver)
    other.tol = 1.0
    assert job.cfg.solver.tol != 1.0

"""Random overrides, composed by a process that has composed many others and by one that has composed none."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from sigmapca_cli.composition import compose
from sigmapca_cli.settings.conf_files import choices_of, groups
from sigmapca_cli.system.errors import SigmapcaError

FRESH = """
import json, os, sys
import hydra._internal.config_loader_impl, hydra.core.override_parser.overrides_parser, sigmapca_cli.storage.identity
sys.path[:0] = [{folder!r}]
from test_kept_and_fresh import made
for line in sys.stdin:
    if os.fork() == 0:
        print(json.dumps(made(json.loads(line))), flush=True)
        os._exit(0)
    os.wait()
"""
VALUES = """
k=3 k=0.95 k=auto k=1.0 k=1,2 a=2 a=2.0 a=auto a=inf a=${seed} seed=1 seed=3 seed=${k} ++seed=4 epochs=null
epochs=2 steps=30 steps=null lr=1 lr=0.5 tags=a tags=[a,b] tags=[b,a] tags=null note=x note=3
note='${model.name}' tracker=[tensorboard,mlflow] objective=[loss,mcc] objective=loss solver.tol=1
solver.starts=2 solver.lam=auto solver={starts:3} +regularisers.x=1 ++regularisers.y=2 regularisers={x:1,y:2}
regularisers={y:2,x:1} regularisers=[unit,wtw] regularisers=null data.n=100 data.k=${k} data.path=[a,b]
data.path=null data.half=even data.rows=[1,2] data={n:3} data={name:array,path:x} optimizer.momentum=0
sigma.name=unit nonlinearity.a=3 nonlinearity.a=${a} model.name=foo +k=3 no=3 data.no=2 strict=yes
checkpoint={every:3} batch_size=7 batch_size='7' hydra.searchpath=[] note=${oc.env:HOME} seed=${oc.decode:'3'}
note=${hydra:job.name} k= lr=inf
"""


def made(words):
    """What composing makes of overrides: all that a run is told, or which error."""
    try:
        job = compose.compose_job(words)
    except SigmapcaError as problem:
        return [type(problem).__name__, str(problem)]
    return [job.hash, job.yaml, repr(job.cfg), list(job.overrides), list(job.experiment)]


def drawn(draw):
    """Choices of some groups and some values, in any order, as a command line may have them."""
    choices = {**groups(), "experiment": choices_of("experiment")}
    words = [f"{group}={draw.choice(names)}" for group, names in choices.items() if draw.random() < 0.15]
    words += draw.choices(VALUES.split(), k=draw.randrange(6))
    draw.shuffle(words)
    return words


@pytest.fixture(scope="module")
def fresh():
    """Compose in a process of its own, which has composed nothing before."""
    code = FRESH.format(folder=str(Path(__file__).parent))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:

        def composed(words):
            print(json.dumps(words), file=server.stdin, flush=True)
            return json.loads(server.stdout.readline())

        yield composed
        server.stdin.close()


@pytest.mark.parametrize(
    ("first", "count"), [(0, 4), pytest.param(4, 150, marks=pytest.mark.full)], ids=["some", "many"]
)
def test_what_was_composed_before_changes_nothing(fresh, first, count):
    for seed in range(first, first + count):
        words = drawn(random.Random(seed))
        assert made(words) == fresh(words), words


def test_the_order_of_regularisers_is_as_given(fresh):
    """Their terms are added up in it."""
    for words in (["regularisers={x:1,y:2}"], ["regularisers={y:2,x:1}"]):
        assert made(words) == fresh(words)

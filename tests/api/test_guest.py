"""A guest in other people's programs: threads, forked and spawned processes, asyncio, an application of Hydra's.

What belongs to the program is as it was before a call. Each program is a process of its own.
"""

import subprocess
import sys

import pytest
from shell import run_command

HEAD = """
import os, sys
import numpy as np
import sigmapca_cli as sp

X = np.random.default_rng(0).laplace(size=(400, 4)) * [4, 3, 2, 1]
FEW = {"steps": 30, "outputs": sys.argv[1], "threads": 1}
"""

LEFT_AS_FOUND = """
import logging, signal, warnings
from concurrent.futures import ThreadPoolExecutor
import torch
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.singleton import Singleton
from hydra.version import VersionBase

torch.set_num_threads(3)
torch.set_float32_matmul_precision("high")
ConfigStore.instance().store(group="schema", name="config", node={"mine": 1})

def state():
    return {
        "threads": torch.get_num_threads(), "precision": torch.get_float32_matmul_precision(),
        "torch": torch.random.get_rng_state().tolist(), "numpy": np.random.get_state()[1].tolist(),
        "environment": dict(os.environ), "place": os.getcwd(), "errors": np.geterr(),
        "handlers": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)],
        "root": list(logging.getLogger().handlers), "filters": list(warnings.filters),
        "hydra": (GlobalHydra.instance().is_initialized(), str(VersionBase.instance().getbase())),
        "store": dict(ConfigStore.instance().repo["schema"]["config.yaml"].node),
        "default type": torch.get_default_dtype(), "gradients": torch.is_grad_enabled(),
    }

def train(number):
    model = ["lica", "rica", "nlpca"][number % 3]
    return sp.train(X, k=2, model=model, seed=number, a="auto" if model == "nlpca" else None, **FEW)

sp.SigmaPCA  # imports may set what they like
before = state()
for number in range(3):
    train(number)
sp.SigmaPCA(2, solver="sgd", max_iter=2).fit(X)
sp.SigmaPCA(2, a=3.0).fit(X)
def differing():
    after = state()
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}
assert not differing(), differing()
with ThreadPoolExecutor(3) as pool:
    found = list(pool.map(train, range(3)))
    assert [run.attrs["seed"] for run in found] == list(range(3))
    assert set(pool.map(lambda _: torch.get_num_threads(), range(3))) == {3}
assert not differing(), differing()
"""

PROCESSES = """
import multiprocessing

def train(seed):
    run = sp.train(X, k=2, seed=seed, model="nlpca", a=3.0, **FEW)
    return np.asarray(run.filters).tolist(), sp.SigmaPCA(2).fit(X).components_.tolist()

if __name__ == "__main__":
    here = train(0)
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            assert pool.map_async(train, [0, 0]).get(300) == [here, here], way
"""

ASYNCIO = """
import asyncio

async def main():
    def train(seed):
        return sp.train(X, k=2, seed=seed, solver="newton", outputs=sys.argv[1])
    first = train(0)  # within a running loop
    runs = await asyncio.gather(*(asyncio.to_thread(train, seed) for seed in range(5)))
    assert [run.attrs["seed"] for run in runs] == list(range(5))
    assert (runs[0].filters == first.filters).all()

asyncio.run(main())
"""

APPLICATION = """
import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

ConfigStore.instance().store(name="config", node={"model": "mine", "data": {"path": "theirs"}, "k": 3})
outputs = sys.argv.pop(1)

@hydra.main(version_base="1.3", config_path=None, config_name="config")
def main(cfg):
    before = OmegaConf.to_container(HydraConfig.get())
    run = sp.train(X, k=cfg.k, solver="newton", outputs=outputs)
    assert run.config["k"] == cfg.k and cfg.model == "mine"
    assert OmegaConf.to_container(HydraConfig.get()) == before

main()
"""


def runs(tmp_path, text):
    program = tmp_path / "program.py"
    program.write_text(HEAD + text)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "outputs")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_state_of_the_program_is_left_as_it_was_found(tmp_path):
    program = (
        f"import sys\nsys.argv = ['program', 'outputs']\n{HEAD}{LEFT_AS_FOUND}sys.argv = ['', '--version']\n"
    )
    done = run_command((), tmp_path, {}, before=program)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.full
@pytest.mark.parametrize(
    "text", [PROCESSES, ASYNCIO, APPLICATION], ids=["processes", "asyncio", "application"]
)
def test_a_guest_in(tmp_path, text):
    runs(tmp_path, text)

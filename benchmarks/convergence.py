"""What a default run comes to, and what it costs to know that it has converged.

    python benchmarks/convergence.py rows      # default runs over numbers of rows and kinds of sources, beside Newton
    python benchmarks/convergence.py early     # runs cut short: the angle said, the angle still gone, the MCC
    python benchmarks/convergence.py cost      # seconds of the measurement over seconds of the training

Runs go to a temporary folder. MCC is the mean |cos| with the true filters.
"""

import contextlib
import io
import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.evaluation import metrics
from sigmapca_cli.runner import stochastic
from sigmapca_cli.runner.execute import load_source
from sigmapca_cli.runner.plan import method_of, resolved_k
from sigmapca_cli.runner.run import run
from sigmapca_cli.settings.conf_files import conf_folder, hydra_base
from sigmapca_cli.settings.schema import register
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.training import loop, stopping
from sigmapca_cli.training.arrays import as_numpy

KINDS = {"laplace": "4", "uniform": "0.8", "mixed": "auto"}
ROWS = (200, 500, 1000, 2000, 5000, 20_000, 100_000, 1_000_000)


def composed(*overrides: str) -> Any:
    register()
    with initialize_config_dir(str(conf_folder()), **hydra_base()):
        return compose("config", list(overrides))


def finished(*overrides: str) -> tuple[StoredRun, float]:
    """The run of these overrides, and its seconds in this process."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        began = time.perf_counter()
        found = StoredRun.open(run(job_of(composed(f"outputs={folder}", *overrides))))
        seconds = time.perf_counter() - began
        _ = found.filters, found.evaluation, found.attrs
        return found, seconds


def rows() -> None:
    print("| sources, a | n | default: MCC | steps | reported state | Newton: MCC |")
    print("|---|---|---|---|---|---|")
    for kind, a in KINDS.items():
        for n in ROWS:
            data = ("data=planted", "k=12", f"data.n={n}", f"data.sources={kind}", f"a={a}")
            ours, _ = finished(*data)
            newton, _ = finished(*data, "solver=newton")
            facts = ours.evaluation
            said = "converged" if ours.attrs["converged"] else f"{float(facts['angle']):.2f} rad to go"
            said += f", {len(facts['unheld_pairs'])} pairs not held" if len(facts["unheld_pairs"]) else ""
            print(
                f"| {kind}, {a} | {n:,} | {float(facts['mcc']):.4f} | {int(facts['steps']):,} |"
                f" {said} | {float(newton.evaluation['mcc']):.4f} |",
                flush=True,
            )


def trainer_after(*overrides: str) -> Any:
    cfg: Any = OmegaConf.to_object(composed(*overrides))
    source = load_source(cfg)
    cfg = replace(cfg, k=resolved_k(cfg, source))
    trainer = stochastic.make_trainer(cfg, method_of(cfg), source, "cpu")
    loop.train([trainer])
    return trainer


def early() -> None:
    data = ("data=planted", "k=12", "data.n=20000")
    end = as_numpy(trainer_after(*data, "steps=12000").state["W"]).astype(np.float64)
    print(
        "| steps | MCC | gradient / (2σ²), mean | reported state | largest reported angle |"
        " largest angle to the filters at 12,000 steps |"
    )
    print("|---|---|---|---|---|---|")
    for steps in (1, 16, 48, 150, 300, 500, 700, 1000, 1500, 3000):
        trainer = trainer_after(*data, f"steps={steps}")
        found = stopping.convergence_of(trainer)
        W = as_numpy(trainer.state["W"]).astype(np.float64)
        moved = np.arccos(np.minimum(np.abs(W.T @ end).max(1), 1)).max()
        said = "converged" if found.converged(trainer.cfg.tol) else "not converged"
        said += ", at a saddle" if len(found.unstable) else ""
        mcc = metrics.mcc(W, trainer.batches.source.truth.filters)
        print(
            f"| {steps:,} | {mcc:.4f} | {found.gradient.mean():.4f} | {said} |"
            f" {found.single_angle.max():.3f} | {moved:.3f} |"
        )


def cost() -> None:
    print("| run | training, s | measurement, s | share |")
    print("|---|---|---|---|")
    for words in (
        "data=natural",
        "data=natural k=64",
        "data=planted k=12 steps=6000",
        "data=planted k=12 model=nlpca_latent_wtw steps=6000",
        "data=natural model=lica steps=3000",
    ):
        began = time.perf_counter()
        trainer = trainer_after(*words.split())
        middle = time.perf_counter()
        trainer.assessed = None
        stopping.convergence_of(trainer)
        measured = time.perf_counter() - middle
        training = middle - began
        print(f"| `{words}` | {training:.2f} | {measured:.2f} | {measured / training:.0%} |", flush=True)


if __name__ == "__main__":
    {"rows": rows, "early": early, "cost": cost}[sys.argv[1]]()

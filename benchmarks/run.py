"""Timings against peers: `make bench`, or `python benchmarks/run.py NAME…` for some of them.

Prints a table and writes benchmarks/results.json. What is compared is timed in turn in one run, several times; the
ratio is the median of the ratios. Nothing here is asserted: these are measurements, not tests.
"""

import contextlib
import itertools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from answers import answer, answers, halves, ica, pca
from timing import SIGMAPCA, Row, in_turn, process, ratio, row, timed

HERE = Path(__file__).resolve().parent


def trainer(*overrides: str):
    """A trainer in this process, composed as the command line would."""
    from hydra import compose, initialize_config_dir

    from sigmapca_cli.composition.job import job_of
    from sigmapca_cli.data import build
    from sigmapca_cli.data.n_components import count_for
    from sigmapca_cli.runner import stochastic
    from sigmapca_cli.runner.plan import method_of
    from sigmapca_cli.settings.conf_files import conf_folder, hydra_base
    from sigmapca_cli.settings.schema import register

    register()
    with initialize_config_dir(str(conf_folder()), **hydra_base()):
        cfg = job_of(compose("config", list(overrides))).cfg
    source = build(cfg.data)
    return stochastic.make_trainer(replace(cfg, k=count_for(source, cfg.k)), method_of(cfg), source, "cpu")


def step() -> Row:
    """One training step, everything included, against NumPy's four matrix products alone and an eager autograd loop.

    Components are rows, W (k, p), or columns, W (p, k): the base is the layout whose products are faster here. The step
    with the rows that it trains on, and on one batch again and again (`same rows`), which stays in the cache as the
    operands of the bare products do.
    """
    import torch

    from sigmapca_cli.system.processes import blas

    torch.set_num_threads(1)
    with blas(1), contextlib.ExitStack() as stack:
        ours = trainer("model=nlpca")
        b, (p, k) = ours.cfg.batch_size, ours.state["W"].shape
        whole, batches = stepping(ours, stack)
        steps = {"step": whole, "step, same rows": stepping(trainer("model=nlpca"), stack, same=True)[0]}
        eager = eager_step(p, k)

        def autograd() -> None:
            for _ in range(STEPS):
                eager(torch.from_numpy(next(batches).x))

        compared = {"rows": products(b, p, k, True), "columns": products(b, p, k, False)}
        compared |= {**steps, "eager": autograd}
        found = in_turn({name: timed(function) for name, function in compared.items()}, 60)
    least = {name: min(values) for name, values in found.items()}  # little disturbed by other programs
    best = min(("rows", "columns"), key=least.__getitem__)
    over: Row = {"least": {name: round(value / STEPS * 1e6, 1) for name, value in least.items()}}
    for top, bottom in (*((name, best) for name in steps), ("eager", "step")):
        over[f"{top}/{bottom}"] = round(ratio(found, top, bottom), 2)
        over[f"{top}/{bottom}, least"] = round(least[top] / least[bottom], 2)
    return row("one step of nlpca, µs", found, STEPS * 1e-6, **over)


STEPS = 100


def products(b: int, p: int, k: int, rows: bool) -> Callable[[], None]:
    """The products of a step: y = xW, WᵀW, ŷWᵀW, and the gradient xᵀG; components as rows or as columns."""
    import numpy as np

    draw = np.random.default_rng(0).standard_normal
    x, W, h = (draw(shape).astype("f") for shape in ((b, p), (p, k), (b, k)))
    y, G, g, gram = np.empty_like(h), np.empty_like(h), np.empty_like(W), np.empty((k, k), "f")
    if rows:
        W, h, y, G, g = (np.ascontiguousarray(value.T) for value in (W, h, y, G, g))

    def by_rows() -> None:
        for _ in range(STEPS):
            np.matmul(W, x.T, out=y)
            np.matmul(W, W.T, out=gram)
            np.matmul(gram, h, out=G)
            np.matmul(G, x, out=g)

    def by_columns() -> None:
        for _ in range(STEPS):
            np.matmul(x, W, out=y)
            np.matmul(W.T, W, out=gram)
            np.matmul(h, gram, out=G)
            np.matmul(x.T, G, out=g)

    return by_rows if rows else by_columns


def stepping(ours, stack: contextlib.ExitStack, *, same: bool = False) -> tuple[Callable[[], None], Iterator]:
    """A function that trains so many steps, and the rows that it trains on: new ones, or the same again and again."""
    from sigmapca_cli.training.batches import Batch
    from sigmapca_cli.training.stacked_step import stacked_step

    ours.batches.prepare(True)
    step = stack.enter_context(stacked_step([ours]))
    batches: Iterator[Batch] = itertools.chain.from_iterable(ours.batches.epoch(e) for e in itertools.count())
    if same:
        first = next(batches)
        batches = itertools.repeat(Batch(first.x.copy(), first.power))

    def whole() -> None:
        for _ in range(STEPS):
            ours.step += 1
            ours.losses.append(step.advance(next(batches), ours.step, [ours.factor]))
        ours.end_window()

    return whole, batches


def eager_step(p: int, k: int) -> Callable:
    """The loop that a user of PyTorch would write from the paper."""
    import torch

    W = torch.linalg.qr(torch.randn(p, k))[0].requires_grad_()
    optimizer, variance = torch.optim.Adam([W], lr=0.01), torch.ones(k)

    def step(x):
        y = x @ W
        with torch.no_grad():
            variance.mul_(0.99).add_(0.01 * y.var(0, unbiased=False))
            sigma = (variance + 1e-3).sqrt()
        loss = (x - (4 * torch.tanh(y / sigma / 4) * sigma) @ W.detach().T).square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            W.div_(W.norm(dim=0))

    return step


def whole_run() -> Row:
    """`sigmapca train model=nlpca`, the whole process, against importing torch and the loop that a user would write."""
    import numpy as np

    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig

    natural: Any = build(DataConfig(name="natural"))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "images.npy", natural.images)
        found = in_turn(
            {
                "import torch": process(sys.executable, "-c", "import torch"),
                "train": process(*SIGMAPCA, "train", "model=nlpca", "a=4", folder=folder),
                "eager loop": process(
                    sys.executable, str(HERE / "eager.py"), "images.npy", "W.npy", folder=folder
                ),
            },
            3,
        )
    beyond = statistics.median(a - b for a, b in zip(found["train"], found["import torch"], strict=True))
    faster = round(ratio(found, "eager loop", "train"), 2)
    return row(
        "train model=nlpca, s", found, **{"beyond import torch": round(beyond, 2), "eager loop/train": faster}
    )


def sweep() -> Row:
    """12 values of a × 4 seeds: side by side against one after another (of which 4 are timed)."""
    values = "a=0.5,1,1.5,2,2.5,3,4,5,6,8,10,14"
    common = ("data=planted", "data.p=363", "data.k=32", "data.group=4", "k=32", "steps=2000")
    folder = tempfile.mkdtemp()
    command = ("train", "-m", *common, values, "seed=0,1,2,3", "hydra/launcher=vectorized")
    found = in_turn({"48 side by side": process(*SIGMAPCA, *command, folder=folder)}, 1)
    single = [process(*SIGMAPCA, "train", *common, "a=4", f"seed={s}", folder=folder)() for s in range(4)]
    shutil.rmtree(folder)
    one = statistics.median(single)
    return row(
        "sweep of 48 runs, s",
        found,
        one_run=round(one, 2),
        speedup=round(48 * one / found["48 side by side"][0], 1),
    )


def memory() -> Row:
    """Peak memory of training on half a million patches, beyond that of a run of two steps on two images.

    The small run loads whatever a run loads, so that what is left is data and buffers.
    """
    code = (
        "import sys\n"
        "from sigmapca_cli.cli import main\n"
        "from sigmapca_cli.storage.provenance import peak_memory\n"
        "def peak(*argv):\n"
        "    sys.argv = ['sigmapca', 'train', *argv]\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        "    return peak_memory() >> 20\n"
        "print(peak('data.images=2', 'k=4', 'steps=2', 'strict=false'), peak('steps=2000'))"
    )
    with tempfile.TemporaryDirectory() as folder:
        text = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
        ).stdout
    before, after = map(int, text.split()[-2:])
    return {"name": "memory, MB", "small run": before, "peak": after, "beyond": after - before}


def covariance() -> Row:
    """Exact covariance of all patches from the images, at 2,000 and 50,000 images of 32 × 32 × 3."""
    import numpy as np

    from sigmapca_cli.data.moments.of_patches import patch_moments

    images = np.random.default_rng(0).integers(0, 256, (50_000, 32, 32, 3), dtype=np.uint8)
    found = {
        f"{n} images": [timed(partial(patch_moments, images[:n], 11, 1, 5, False))()] for n in (2_000, 50_000)
    }
    return row("exact covariance of patches, s", found)


def startup() -> Row:
    """Start-up of the commands that must be quick."""
    found = in_turn(
        {
            "python": process(sys.executable, "-c", "pass"),
            "--help": process(*SIGMAPCA, "--help"),
            "train --help": process(*SIGMAPCA, "train", "--help"),
            "train --cfg job": process(*SIGMAPCA, "train", "--cfg", "job"),
        },
        7,
    )
    return row("start-up, s", found)


BENCHES = {
    "step": step, "run": whole_run, "sweep": sweep, "memory": memory, "covariance": covariance,
    "startup": startup, "answer": answer, "answers": answers, "ica": ica, "pca": pca, "halves": halves,
}  # fmt: skip


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    import numpy
    import torch

    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    """Run the benches named, or all; print and store."""
    names = sys.argv[1:] or list(BENCHES)
    if unknown := [name for name in names if name not in BENCHES]:
        sys.exit(f"no bench {unknown[0]}; choose from {', '.join(BENCHES)}")
    path = HERE / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        found = BENCHES[name]()
        results[name] = {**found, "machine": machine()}
        print("  ".join(f"{key}: {value}" for key, value in found.items()), flush=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

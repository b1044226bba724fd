"""Started by torchrun: gradients of shares against the gradient of the whole batch, for every trained method."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from methods_helpers import composed

from sigmapca_cli.methods import build
from sigmapca_cli.processes import distributed_env
from sigmapca_cli.signals import Guard
from sigmapca_cli.training.collectives import Ranks
from sigmapca_cli.training.sharded import AllReduce, ShardedBatches

N, P, K, SIZE = 30, 6, 3, 14  # batches of 14, 14 and 2 rows: over three processes one has none of the last
rows = np.random.default_rng(0).laplace(size=(N, P)) + 0.3
SOURCE = SimpleNamespace(
    n=N, p=P, rows=lambda index, out=None: rows[index] if out is None else np.copyto(out, rows[index]) or out
)


def largest_difference(overrides: list[str], ranks: Ranks) -> float:
    """The largest difference in loss, gradient and state over three batches, and how many steps were compared."""
    model, *others = overrides
    method = build(composed(model, *others))
    share_of = lambda batches: AllReduce(ranks, batches, Guard())  # noqa: E731
    by_batch = method.model.centring == "batch"
    batches = ShardedBatches(SOURCE, SIZE, 0, ranks, torch.float64, by_batch)
    model = replace(method.model, centring="data") if by_batch else method.model
    shared = replace(method, share=share_of(batches), model=model)
    W = torch.linalg.qr(torch.randn(P, K, generator=torch.manual_seed(0), dtype=torch.float64))[0]
    generators = [torch.Generator().manual_seed(1) for _ in range(2)]
    states = [
        m.init_state(W, torch.ones(K, dtype=torch.float64), torch.manual_seed(2)) for m in (method, shared)
    ]
    for m, state in zip((method, shared), states, strict=True):
        m.begin_epoch(state, torch.eye(P, dtype=torch.float64))
    order, worst = np.random.default_rng((0, 0)).permutation(N), 0.0
    whole = [
        torch.from_numpy(rows.astype(np.float32).astype(np.float64)[i]) for i in np.split(order, [14, 28])
    ]
    for x, batch in zip(whole, batches.epoch(0), strict=True):
        loss, gradients = method.gradient(states[0], x, generators[0])
        mine, parts = shared.gradient(states[1], torch.as_tensor(batch.x).double(), generators[1])
        pairs = [(loss, mine), *((gradients[n], parts[n]) for n in gradients)]
        pairs += [(states[0][n], states[1][n]) for n in states[0]]
        for a, b in pairs:
            worst = max(worst, float(((a - b).abs().nan_to_num() / (a.abs().max().nan_to_num() + 1)).max()))
        assert bool(loss.isnan()) == bool(mine.isnan())
    return worst


ranks = Ranks(distributed_env(), torch.device("cpu"))
for word in sys.argv[1:]:
    found = largest_difference(word.split(), ranks)
    if ranks.rank == 0:
        print(f"compared\t{word}\t{found:.3g}", flush=True)
with ranks.until_the_end():
    pass

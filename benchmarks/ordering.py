"""Which methods that are meant to order their components by index do so, from random starts.

Writes docs/results/ordering.json.

    python benchmarks/ordering.py            # all methods, both optimizers, ten seeds
    python benchmarks/ordering.py gha nlpca  # those whose name begins so

Data: 10,000 rows of 4 Laplace sources in 8 dimensions, standard deviations 3, 2.1, 1.47 and 1.03, noise 0.02. A run has
ordered its components if column i has |cos| ≥ 0.99 with source i, for every i. All seeds are trained as one program.
"""

import sys

import numpy as np
import torch

from sigmapca_cli.methods.method import make_method
from sigmapca_cli.reproduce.engine import composed
from sigmapca_cli.training import optimizers
from sigmapca_cli.training.length import rate_factor

P, K, ROWS, BATCH, STEPS, RATE, SEEDS = 8, 4, 10_000, 128, 4000, 0.01, 10
ALIGNED = 0.99
WSLA = ("model=subspace", "model.lambda_min=0.25")
METHODS: dict[str, tuple[str, ...]] = {
    "wsla_1": ("model=wsla_1", "model.lambda_min=0.25"),
    "wsla_2": ("model=wsla_2", "model.lambda_min=0.25"),
    "wsla_3": ("model=wsla_3", "model.lambda_min=0.25"),
    "wsla_unit_norm": ("model=wsla_unit_norm", "model.lambda_min=0.25"),
    "wsla_1_unit": (*WSLA, "model.objective=wsla_1_unit"),
    "wsla_2_unit": (*WSLA, "model.objective=wsla_2_unit"),
    "wsla_1_diagonal": (*WSLA, "model.objective=wsla_1_diagonal"),
    "wsla_2_diagonal": (*WSLA, "model.objective=wsla_2_diagonal"),
    "gha": ("model=gha",),
    "gha_encoder": ("model=gha_encoder",),
    "gha_subspace": ("model=gha_subspace",),
    "reconstruction_gha": ("model=reconstruction_gha",),
    "nested_dropout": ("model=nested_dropout",),
    "nested_dropout, sweeping": ("model=nested_dropout", "ordering.sweep=800"),
    "linear_ae, hierarchical": ("model=linear_ae", "ordering=hierarchical"),
    "bigradient_hierarchic": ("model=bigradient_hierarchic",),
    "nlpca_deflation": ("model=nlpca_deflation",),
    "nlpca_triangular": ("model=nlpca_triangular",),
    "nlpca_nested_dropout": ("model=nlpca_nested_dropout",),
    "nlpca_latent_wtw, triangular": ("model=nlpca_ema_latent_wtw", "ordering=triangular"),
    **{
        f"nlpca, triangular {form}": ("model=nlpca", "ordering=triangular", f"ordering.form={form}")
        for form in ("y_z", "z_y", "y_h", "h_y", "h_hs", "hs_h")
    },
    "nlpca, weighted_latent": ("model=nlpca", "ordering=weighted_latent"),
    "nlpca, weighted_latent update": ("model=nlpca", "model.objective=weighted_latent"),
    "nlpca, gram_schmidt_regulariser": ("model=nlpca", "ordering=gram_schmidt_regulariser"),
    "nlpca, gram_schmidt_regulariser 10": (
        "model=nlpca",
        "ordering=gram_schmidt_regulariser",
        "ordering.weight=10",
    ),
    "nlpca, gram_schmidt": ("model=nlpca", "constraint=gram_schmidt"),
}


# A sum of k losses has k times the gradient.
RATES = {"linear_ae, hierarchical": RATE / K}


def planted() -> tuple[torch.Tensor, np.ndarray]:
    """x (n, p), centred, and the true directions E (p, k) by decreasing variance."""
    random = np.random.default_rng(0)
    E = np.linalg.qr(random.normal(size=(P, K)))[0]
    s = random.laplace(size=(ROWS, K)) / np.sqrt(2) * 3 * 0.7 ** np.arange(K)
    x = s @ E.T + 0.02 * random.normal(size=(ROWS, P))
    return torch.from_numpy(x - x.mean(0)), E


def aligned(
    method: str, optimizer: str, seeds: int = SEEDS, first: int = 0, steps: int = STEPS
) -> np.ndarray:
    """|cos| of column i with source i after training, (seeds, k)."""
    x, E = planted()
    cfg = composed(("data=planted", f"optimizer={optimizer}", *METHODS[method])).cfg
    built = make_method(cfg)
    generator = torch.Generator().manual_seed(100 + first)
    starts = torch.randn(seeds + first, P, K, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    W0 = torch.linalg.qr(starts)[0][first:]
    C = x.T @ x / len(x)
    state = built.init_state(W0, ((C @ W0) * W0).sum(-2).sqrt(), generator)
    parameters = {name: state[name] for name in built.parameters}
    stepper = optimizers.make_optimizer(cfg.optimizer)
    slots = optimizers.zero_state(type(stepper).__name__.lower(), parameters)
    rate = RATES.get(method, RATE)
    for step in range(steps):
        chosen = torch.randint(len(x), (BATCH,), generator=generator)
        gradients = built.gradient(state, x[chosen], generator)[1]
        for name in built.tangent_parameters if cfg.optimizer.tangent else ():
            gradients[name] = optimizers.tangent(gradients[name], state[name])
        stepper.step(parameters, gradients, slots, step + 1, rate * rate_factor("cosine", step, steps))
        built.constrain(state)
    W = state["W"].numpy()
    return np.abs((W / np.linalg.norm(W, axis=-2, keepdims=True) * E).sum(-2))


def main(wanted: list[str]) -> None:
    """Measure what is asked for and write it into the file; the other rows stay."""
    from stored import keep, read  # here: a test imports this file alone

    methods = read("ordering").get("methods", {})
    torch.set_num_threads(1)
    for method in METHODS:
        if wanted and not method.startswith(tuple(wanted)):
            continue
        row = {}
        for optimizer in ("adam", "sgd"):
            cosines = aligned(method, optimizer)
            least = np.nan_to_num(cosines.min(-1)).round(3)  # 0 where a run diverged
            row[optimizer] = {"ordered": int((least >= ALIGNED).sum()), "least": least.tolist()}
        methods[method] = row
        print(method, row, flush=True)
    known = {"command": "python benchmarks/ordering.py", "seeds": SEEDS, "steps": STEPS, "rate": RATE}
    keep("ordering", **known, methods={name: methods[name] for name in METHODS if name in methods})


if __name__ == "__main__":
    main(sys.argv[1:])

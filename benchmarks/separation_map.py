"""Which a and which h′ of h = a·tanh(z/a) let the main loss separate sources of equal variance: prints a
table.

    python benchmarks/separation_map.py [steps]

Two sources of unit variance, Laplace or uniform, rotated by π/4 (the worst start), n = 20,000 rows,
batches of 128, SGD with momentum 0.9 and lr 0.05 (cosine) on tangent gradients. A cell is the mean |cos| to
the true axes (worst of three seeds): 1 is separated, 0.7071 is the 45° that maximises the mixing. Beside it
what theory predicts: the sign of m − c, m = E[zφ(z)], c = E[φ′(z)], φ = (z − h)h′, by quadrature on the
density: positive is a stable axis.
"""

import sys

import numpy as np
import torch

from sigmapca_cli.methods.config import ModelConfig, NonlinearityConfig, SigmaConfig
from sigmapca_cli.methods.method import make_method
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.training import length, optimizers

A = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0)
N, BATCH, LR = 20_000, 128, 0.05


def method(a: float, derivative: str):
    """The main loss with this a, σ exact on every batch."""
    return make_method(
        Config(
            model=ModelConfig(),
            nonlinearity=NonlinearityConfig(a=a, derivative=derivative),
            sigma=SigmaConfig(name="ema", start="data"),
        )
    )


def draw(kind: str, seed: int) -> torch.Tensor:
    """(n, 2) independent rows of unit variance, centred."""
    random = np.random.default_rng(seed)
    if kind == "laplace":
        s = random.laplace(size=(N, 2)) / np.sqrt(2)
    else:
        s = random.uniform(-np.sqrt(3), np.sqrt(3), (N, 2))
    return torch.from_numpy(s - s.mean(0))


def separated(kind: str, a: float, derivative: str, steps: int, seed: int, angle: float = 45) -> float:
    """Mean |cos| of the filters to the axes after training from this angle, in degrees; 45 is the worst start."""
    x, one = draw(kind, seed), method(a, derivative)
    generator = torch.Generator().manual_seed(seed)
    cosine, sine = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    W = torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)
    state = one.init_state(W, x.std(0, correction=0), generator)
    sgd, parameters = optimizers.SGD(0.9), {"W": state["W"]}
    slots = optimizers.zero_state("sgd", parameters)
    for step in range(steps):
        rows = x[torch.randint(N, (BATCH,), generator=generator)]
        gradients = one.gradient(state, rows)[1]
        gradients["W"] = optimizers.tangent(gradients["W"], state["W"])
        sgd.step(parameters, gradients, slots, step + 1, LR * length.rate_factor("cosine", step, steps))
        one.constrain(state)
    cosines = state["W"].abs().numpy()
    return float(max(np.diag(cosines).mean(), np.diag(cosines[::-1]).mean()))


def predicted(kind: str, a: float, derivative: str) -> float:
    """m − c of one source of unit variance."""
    z = np.linspace(-40, 40, 800_001) if kind == "laplace" else np.linspace(-np.sqrt(3), np.sqrt(3), 800_001)
    density = np.exp(-np.sqrt(2) * np.abs(z)) if kind == "laplace" else np.ones_like(z)
    density /= density.sum()
    t = np.tanh(z / a)
    dh = 1 - t**2 if derivative == "true" else 1.0
    curve = -2 * t * (1 - t**2) / a if derivative == "true" else 0.0
    phi, slope = (z - a * t) * dh, t**2 * dh + (z - a * t) * curve
    if derivative == "one":
        slope = t**2
    return float(density @ (z * phi) - density @ slope)


def main() -> None:
    """Print the map."""
    torch.set_num_threads(1)
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    print("| a | " + " | ".join(f"{k}, h′ {d} (m − c)" for k in KINDS for d in DERIVATIVES) + " |")
    print("|---|" + "---|" * 4)
    for a in A:
        cells = []
        for kind in KINDS:
            for derivative in DERIVATIVES:
                worst = min(separated(kind, a, derivative, steps, seed) for seed in (1, 2, 3))
                cells.append(f"{worst:.4f} ({predicted(kind, a, derivative):+.4f})")
        print(f"| {a:g} | " + " | ".join(cells) + " |", flush=True)


KINDS, DERIVATIVES = ("laplace", "uniform"), ("true", "one")

if __name__ == "__main__":
    main()

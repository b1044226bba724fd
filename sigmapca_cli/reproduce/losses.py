"""Figures that exchange the loss: latent space, asymmetric nonlinearities, sparsity."""

from __future__ import annotations

from sigmapca_cli.reproduce import draw
from sigmapca_cli.reproduce.experiment import Claim, Experiment
from sigmapca_cli.reproduce.images import keeps_variance, separates
from sigmapca_cli.reproduce.plan import Panel
from sigmapca_cli.reproduce.settings import SCALES, scale_claim

WTW, LATENT = "model=nlpca_latent_wtw", "model=nlpca_latent_symmetric"

LATENT_RECONSTRUCTION = Experiment(
    "latent-reconstruction",
    "Figures: reconstruction in latent space",
    "Latent reconstruction with [WᵀW] held constant (a–c), without it (d–f), and with a linear reconstruction (g).",
    (
        Panel("wtw1", "with WᵀW, β = 1", (WTW,)),
        Panel("wtw0", "with WᵀW, β = 0", (WTW, "regularisers={symmetric: 0}")),
        Panel("triangular", "with the triangle of WᵀW, β = 1", (WTW, "ordering=triangular")),
        Panel("beta1", "without WᵀW, β = 1", (LATENT, "regularisers={symmetric: 1}")),
        Panel("beta10", "without WᵀW, β = 10", (LATENT, "regularisers={symmetric: 10}")),
        Panel("beta100", "without WᵀW, β = 100", (LATENT, "regularisers={symmetric: 100}")),
        Panel("linear", "with a linear reconstruction", ("model=nlpca_latent_linear",)),
        Panel("asymmetric10", "without WᵀW, asymmetric term, β = 10", ("model=nlpca_latent_asymmetric",)),
    ),
    (
        Claim(
            "With WᵀW the orthonormality term is hardly needed",
            "‖WᵀW − I‖_F with β = 0",
            "≤ 0.5",
            lambda r: float(r.measure("wtw0", "orthogonality_error")),
        ),
        Claim(
            "Without WᵀW a larger β keeps the filters closer to orthonormal",
            "‖WᵀW − I‖_F with β = 100 over that with β = 1",
            "≤ 0.5",
            lambda r: r.ratio("beta100", "beta1", "orthogonality_error"),
        ),
        Claim(
            "With the triangle of WᵀW the components are ordered by index",
            "share of pairs in order",
            "≥ 0.95",
            lambda r: r.order("triangular"),
        ),
        Claim(
            "Without WᵀW an asymmetric orthogonality term does better than the symmetric one",
            "mean negentropy, asymmetric over symmetric, β = 10",
            "> 1.0",
            lambda r: r.ratio("asymmetric10", "beta10", "negentropy"),
            also=keeps_variance("asymmetric10", "beta10"),
        ),
        Claim(
            "The linear reconstruction maintains orthogonality",
            "‖WᵀW − I‖_F",
            "≤ 0.5",
            lambda r: float(r.measure("linear", "orthogonality_error")),
        ),
    ),
    draw.grid_of(3, 3.0),
)

ADAPTIVE, CONSTANT = "model=nlpca_asymmetric_adaptive", "model=nlpca_asymmetric"


def same_filters(one: str, other: str, where: str) -> Claim:
    """The claim that the constant is as good as the adaptive scale."""
    return Claim(
        f"A constant scale of 1.6 finds much the same filters as the adaptive one on {where}",
        "matched |cos| between the two",
        "≥ 0.8",
        lambda r: r.agreement(one, other),
        ours=True,
    )


ASYMMETRIC = Experiment(
    "asymmetric",
    "Figure: asymmetric nonlinearity with h′ = 1",
    "h = 1.6 tanh(z) or tanh(z)/std(tanh(z)), both with h′ := 1, on colour images and on digits.",
    (
        Panel("constant", "images, h = 1.6 tanh(z)", (CONSTANT,)),
        Panel("adaptive", "images, h = tanh(z)/std(tanh(z))", (ADAPTIVE,)),
        Panel("digits/constant", "MNIST, h = 1.6 tanh(z)", (CONSTANT,), mnist=True),
        Panel("digits/adaptive", "MNIST, h = tanh(z)/std(tanh(z))", (ADAPTIVE,), mnist=True),
        Panel("pca", "", ("model=pca_svd",), shown=False),
        Panel("digits/pca", "", ("model=pca_svd",), shown=False, mnist=True),
    ),
    (
        separates("adaptive", "pca", "The asymmetric nonlinearity separates on images", ours=True),
        separates(
            "digits/adaptive", "digits/pca", "The asymmetric nonlinearity separates on MNIST", ours=True
        ),
        same_filters("constant", "adaptive", "images"),
        same_filters("digits/constant", "digits/adaptive", "MNIST"),
    ),
    draw.grid_of(2, 3.6),
)


def localised(adaptive: str, symmetric: str, where: str) -> Claim:
    """The claim that asymmetric filters are more localised."""
    return Claim(
        f"Filters are more localised in the asymmetric case on {where}",
        "spread of a filter's energy over its pixels, asymmetric over symmetric",
        "< 1.0",
        lambda r: r.spread(adaptive) / r.spread(symmetric),
    )


FIRST_64 = Experiment(
    "first-64",
    "Figure: the first 64 filters",
    "64 filters by decreasing variance, h = 4 tanh(z/4) or the adaptive asymmetric h with h′ := 1.",
    (
        Panel("symmetric", "images, symmetric", ("a=4",)),
        Panel("asymmetric", "images, asymmetric", (ADAPTIVE,)),
        Panel("digits/symmetric", "MNIST, symmetric", ("a=4",), mnist=True),
        Panel("digits/asymmetric", "MNIST, asymmetric", (ADAPTIVE,), mnist=True),
    ),
    (
        localised("asymmetric", "symmetric", "images"),
        localised("digits/asymmetric", "digits/symmetric", "MNIST"),
    ),
    draw.square_filter_panels,
)

RICA_INPUT_SCALE = Experiment(
    "rica-input-scale",
    "Figure: RICA and the scale of the input",
    "RICA on inputs of three scales, with a fixed β and with β proportional to the mean norm of the input.",
    (
        *(
            Panel(f"fixed{s}", f"{s} x, β = 1", ("model=rica", "model.beta=1", f"data.scale_input={s}"))
            for s in SCALES
        ),
        *(
            Panel(
                f"adaptive{s}",
                f"{s} x, β = E‖x‖",
                ("model=rica", "model.beta_0=1", f"data.scale_input={s}"),
            )
            for s in SCALES
        ),
    ),
    (
        scale_claim("With β = 1 the filters depend on the scale of the input", "fixed", "< 0.99"),
        scale_claim("With β = E‖x‖ they do not", "adaptive", "≥ 0.99"),
    ),
    draw.grid_of(3, 3.2),
)

STRENGTHS = ("0.01", "0.1", "1", "2")

RICA_BETA = Experiment(
    "rica-beta",
    "Figure: RICA and the strength of sparsity",
    "RICA with β = β₀·E‖x‖ and unit norm.",
    tuple(Panel(f"b{s}", f"β = {s} E‖x‖", ("model=rica", f"model.beta_0={s}")) for s in STRENGTHS),
    (
        Claim(
            "Sparsity separates: components are more non-Gaussian at β₀ = 1 than at 0.01",
            "mean negentropy at β₀ = 1 over that at 0.01",
            "≥ 1.02",
            lambda r: r.ratio("b1", "b0.01", "negentropy"),
            ours=True,
            also=keeps_variance("b1", "b0.01"),
        ),
        Claim(
            "Too strong a sparsity term costs orthogonality",
            "‖WᵀW − I‖_F at β₀ = 2 over that at 1",
            "≥ 1.1",
            lambda r: r.ratio("b2", "b1", "orthogonality_error"),
            ours=True,
        ),
    ),
    draw.grid_of(4),
)

EXPERIMENTS = (LATENT_RECONSTRUCTION, ASYMMETRIC, FIRST_64, RICA_INPUT_SCALE, RICA_BETA)

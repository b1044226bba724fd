"""The main figure on image patches, and what whitening and rotations of its filters show."""

from __future__ import annotations

from sigmapca_cli.reproduce import draw
from sigmapca_cli.reproduce.experiment import ABOUT_A, CONSTRUCTED, Claim, Condition, Experiment
from sigmapca_cli.reproduce.plan import FASTICA, Panel, halves
from sigmapca_cli.reproduce.rotation import TOP, draw_rotation, residual, rotation_error, similar_sigma

#: Axes drawn at random in one 32-dimensional subspace match with a mean |cos| of 0.40.
NEAR_CHANCE = 0.05
# Explained variance that a separating method keeps, as a share of linear PCA's.
VARIANCE_KEPT = 0.95
# A start at the leading eigenvectors would answer for the loss: what a control finds, it must find by itself.
FREE = "init=orthogonal"

CONVENTIONAL = ("model=nlpca_conventional", FREE)
WITH_DECODER = ("model=nlpca", "model.objective=main_with_decoder", FREE)
SYMMETRIC = ("model=linear_ae", FREE)


def no_better_than_chance(key: str) -> Claim:
    """The claim that a loss leaves its axes arbitrary.

    Agreement of two runs would not show it: conventional filters are all much alike, and so match in any two.
    """
    words = {
        "symmetric": "The symmetric linear loss finds no particular axes in the PCA subspace",
        "decoder": "With the decoder's contribution nonlinear PCA finds no meaningful filters",
        "conventional": "Conventional nonlinear PCA without whitening finds no meaningful filters",
    }
    return Claim(
        words[key],
        "matched |cos| with the filters of nonlinear PCA, less that of random axes in one subspace",
        f"≤ {NEAR_CHANCE}",
        lambda r: r.agreement(key, "a4") - r.subspace_chance("a4"),
    )


def separates(
    key: str, base: str, text: str, least: float = 1.02, measure: str = "", ours: bool = False
) -> Claim:
    """The claim that components are less Gaussian than those of linear PCA, and as large in variance.

    Directions of small variance are far from Gaussian on images: without the second condition the last eigenvectors
    would pass.
    """
    return Claim(
        text,
        measure or "mean negentropy over that of linear PCA",
        f"≥ {least}",
        lambda r: r.ratio(key, base, "negentropy"),
        ours=ours,
        also=keeps_variance(key, base),
    )


def keeps_variance(key: str, base: str) -> Condition:
    """What every claim of separation asks for as well."""
    measure = "explained variance over that of linear PCA"
    return Condition(measure, f"≥ {VARIANCE_KEPT}", lambda r: r.ratio(key, base, "explained_variance"))


CIFAR_FILTERS = Experiment(
    "cifar-filters",
    "Main figure: 32 filters on image patches",
    "Filters of 11 × 11 patches by eight methods, each ordered by the standard deviation of its component.",
    (
        Panel("pca", "linear PCA, eigenvectors", ("model=pca_svd",)),
        Panel(
            "weighted",
            "linear PCA, weighted subspace with unit norm (random start)",
            ("model=wsla_unit_norm", FREE),
        ),
        Panel("a1", "nonlinear PCA, h = tanh(z)", ("a=1",)),
        Panel("a4", "nonlinear PCA, h = 4 tanh(z/4)", ("a=4",)),
        Panel("symmetric", "linear autoencoder, symmetric loss (random start)", SYMMETRIC),
        Panel("decoder", "nonlinear PCA, decoder contribution kept (random start)", WITH_DECODER),
        Panel("conventional", "conventional nonlinear PCA, not whitened (random start)", CONVENTIONAL),
        Panel("fastica", "FastICA, by std of unit-norm projections", FASTICA),
        Panel("a4/permuted", "", ("a=4", "shuffle_buffer=null"), False),
        *halves("pca", "model=pca_svd"),
        *halves("a1", "a=1"),
        *halves("a4", "a=4"),
    ),
    (
        Claim(
            "The weighted subspace loss with unit norm finds the eigenvectors",
            "matched |cos| with the filters of the eigendecomposition",
            "≥ 0.95",
            lambda r: r.agreement("weighted", "pca"),
        ),
        Claim(
            "Nonlinear PCA with a = 4 resolves what linear PCA leaves mixed",
            "matched |cos| between disjoint halves of the images, nonlinear less linear PCA",
            "> 0.0",
            lambda r: r.agreement("a4") - r.agreement("pca"),
        ),
        Claim(
            "a = 1 does not separate: its filters are reproduced less well than those of a = 4",
            "matched |cos| between disjoint halves, a = 1 less a = 4",
            "< 0.0",
            lambda r: r.agreement("a1") - r.agreement("a4"),
            not_for=ABOUT_A,
        ),
        Claim(
            "a = 1 does not separate: its components are less non-Gaussian than those of a = 4",
            "mean negentropy, a = 1 over a = 4",
            "≤ 0.95",
            lambda r: r.ratio("a1", "a4", "negentropy"),
            not_for=ABOUT_A,
        ),
        no_better_than_chance("symmetric"),
        Claim(
            "The symmetric linear loss finds the PCA subspace",
            "explained variance over that of PCA",
            "≥ 0.995",
            lambda r: r.ratio("symmetric", "pca", "explained_variance"),
        ),
        no_better_than_chance("decoder"),
        no_better_than_chance("conventional"),
        Claim(
            "FastICA's filters are not orthogonal",
            "largest |cos| between two of its filters",
            "≥ 0.1",
            lambda r: r.largest_cosine("fastica"),
        ),
        Claim(
            "FastICA's filters overlap in part with those of nonlinear PCA",
            "matched |cos| with a = 4, less that of random axes in one subspace",
            "≥ 0.1",
            lambda r: r.agreement("fastica", "a4") - r.subspace_chance("a4"),
        ),
        Claim.of_loss(25.55, "a4", "nonlinear PCA, a = 4"),
        Claim(
            "The recorded loss comes from shuffling through a buffer: with a full permutation it is higher",
            "loss with all rows shuffled over that with the authors' buffer",
            "> 1.0",
            lambda r: r.loss("a4/permuted") / r.loss("a4"),
            recorded=True,
            ours=True,
        ),
        Claim.of_loss(19.76, "symmetric", "linear autoencoder"),
        Claim.of_loss(20.49, "weighted", "weighted subspace with unit norm"),
    ),
    draw.grid_of(4),
)

# The experiment's own file whitens, and trains by SGD: plain Adam leaves a unit-norm solution on white data.
UNWHITENED = ("data.whiten=none", "data.whiten_rank=null")

PLAIN_ADAM = ("optimizer=adam", "optimizer.tangent=false")

ZCA_WHITENED = Experiment(
    "zca-whitened",
    "Figure: filters on ZCA-whitened patches",
    "Whitened with W_L Σ⁻¹ W_Lᵀ of the 32 leading filters: where every direction has the same variance, linear PCA has "
    "nothing to go by.",
    (
        Panel("pca", "linear PCA, not whitened", ("model=pca_svd", *UNWHITENED)),
        Panel("white", "linear PCA, ZCA-whitened", ("model=pca_svd",)),
        Panel("nonlinear", "nonlinear PCA, ZCA-whitened"),
        Panel("unwhitened", "nonlinear PCA, not whitened", ("optimizer=adam", *UNWHITENED)),
        Panel("adam", "plain Adam, ZCA-whitened", PLAIN_ADAM),
        Panel(
            "adam/orthogonal",
            "plain Adam with ‖I − WᵀW‖², ZCA-whitened",
            (*PLAIN_ADAM, "regularisers=[symmetric]"),
        ),
    ),
    (
        Claim(
            "Linear PCA does not find the eigenvectors again after whitening",
            "matched |cos| with the filters before whitening",
            "≤ 0.5",
            lambda r: r.agreement("white", "pca"),
        ),
        separates(
            "nonlinear",
            "white",
            "Nonlinear PCA still separates after whitening",
            1.2,
            "mean negentropy over that of linear PCA on the same data",
        ),
        separates(
            "nonlinear",
            "pca",
            "Nonlinear PCA finds less Gaussian components than the eigenvectors did",
            1.02,
            "mean negentropy over that of linear PCA before whitening",
            ours=True,
        ),
        Claim(
            "Nonlinear PCA finds the same filters after whitening as before",
            "matched |cos| between the two",
            "≥ 0.9",
            lambda r: r.agreement("nonlinear", "unwhitened"),
        ),
        Claim(
            "On whitened data Adam with unit norm does worse than SGD",
            "mean negentropy with plain Adam over that with SGD",
            "< 1.0",
            lambda r: r.ratio("adam", "nonlinear", "negentropy"),
            not_for=CONSTRUCTED,
        ),
        Claim(
            "On whitened data Adam does better with an orthogonality term",
            "mean negentropy with plain Adam and ‖I − WᵀW‖² over that without",
            "> 1.0",
            lambda r: r.ratio("adam/orthogonal", "adam", "negentropy"),
            not_for=CONSTRUCTED,
        ),
        Claim.of_loss(2.0794, "nonlinear", "ZCA-whitened, a = 4"),
    ),
    draw.grid_of(3, 3.2),
)

ROTATIONAL = Experiment(
    "rotational-indeterminacy",
    "Figures: resolving the rotational indeterminacy of linear PCA",
    "The first 64 filters of linear and nonlinear PCA; below, the first 16 linear ones (framed), each beside the "
    "nonlinear ones that it is a combination of (|R_ij| > 0.2 in W_L = W_N R, R fitted by gradient descent).",
    (
        Panel("pca", "linear PCA", ("model=pca_svd",)),
        Panel("nonlinear", "nonlinear PCA, a = 4", ("a=4",)),
    ),
    (
        Claim(
            "Linear PCA's filters are a rotation of the nonlinear ones",
            "‖W_L − W_N R‖ / ‖W_L‖",
            "≤ 0.2",
            residual,
            not_for=CONSTRUCTED,
        ),
        Claim(
            "The fitted R is close to orthogonal",
            "‖RᵀR − I‖_F / √k",
            "≤ 0.1",
            rotation_error,
            ours=True,
            not_for=CONSTRUCTED,
        ),
        Claim(
            f"Filters that make up a linear one have similar variances (first {TOP})",
            "share of matches with |R_ij| > 0.2 whose σ is within a factor of 1.5",
            "≥ 0.8",
            similar_sigma,
        ),
    ),
    draw_rotation,
)

EXPERIMENTS = (CIFAR_FILTERS, ZCA_WHITENED, ROTATIONAL)

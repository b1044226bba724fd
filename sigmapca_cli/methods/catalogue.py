"""The catalogue: one row for each method with its equation, where it stands in the paper and what it identifies.

Only the standard library is imported, so that the command line is quick. The settings of each method stand in
`conf/model/<name>.yaml`, and only there. Index 0 gets the largest variance wherever a method orders; NOTATION says
which triangle does that.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One method as it is shown to a user."""

    name: str
    family: str
    equation: str
    source: str
    identifies: str
    note: str = ""
    row: int | None = None  # in the paper's table of its family; None: it is in none


NOTATION = {
    "tri": "tri: upper triangle of what multiplies from the right, lower one of Wᵀ[W]sg; tri₋: without the diagonal",
    "⊙ m": "m: keeps a geometric number of the first components, drawn for every row (ordering.rho)",
    "off-diag": "off-diag: less its diagonal",
}
"""Symbols in the equations that the paper's notation leaves open, and what they stand for here."""

LINEAR, NONLINEAR, ICA, OTHER = "linear PCA", "nonlinear PCA", "linear ICA", "neighbours"
SUBSPACE = "the PCA subspace; the axes in it are arbitrary"
AXES = "directions of distinct variance, up to sign; a group of equal variance is arbitrary"
ORDERED = AXES + "; ordered by index"
INDEPENDENT = "orthonormal directions of distinct variance or non-Gaussian, up to sign"
INDEXED = INDEPENDENT + "; ordered by index"
ANY = "independent non-Gaussian sources under any mixing, up to sign and scale"
CONTROL = "negative control: "
SUPER = "super-Gaussian sources; a sub-Gaussian group stays mixed"


def _linear(row: int, name: str, equation: str, section: str, identifies: str, note: str = "") -> Row:
    return Row(name, LINEAR, equation, f"{section}; linear table, row {row}", identifies, note, row)


def _nonlinear(row: int, name: str, equation: str, section: str, identifies: str, note: str = "") -> Row:
    return Row(name, NONLINEAR, equation, f"{section}; nonlinear table, row {row}", identifies, note, row)


_WEIGHTED = "weighted subspace algorithm"
_GHA = "generalized Hebbian algorithm"
_MAIN = "E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖²"
_LATENT = "E‖x[W]sg − h(xWΣ⁻¹)Σ‖²"
_SPACE = "reconstruction in latent space"
_AE = "E‖x − xWWᵀ‖²"

_ROWS = [
    _linear(1, "pca_svd", "C = E(xᵀx) = WΛWᵀ, σ = √λ", "PCA as eigendecomposition", ORDERED,
        "exact, streamed"),
    _linear(2, "linear_ae", _AE, "linear autoencoder", SUBSPACE),
    _linear(3, "subspace", "ΔW ∝ xᵀy − W yᵀy", "subspace learning algorithm", SUBSPACE),
    _linear(4, "wsla_1", "ΔW ∝ xᵀy − W yᵀy Λ⁻¹", _WEIGHTED, ORDERED, "column norms √λ"),
    _linear(5, "wsla_2", "ΔW ∝ xᵀyΛ − W yᵀy", _WEIGHTED, ORDERED, "column norms √λ"),
    _linear(6, "wsla_3", "ΔW ∝ xᵀy − W (yΛ^½)ᵀ y Λ^−½", _WEIGHTED, ORDERED, "unit norm"),
    _linear(7, "wsla_unit_norm", "E(‖x[W]sgWᵀ − x‖² + ‖WΣ̂Λ^½‖² − ‖WΣ̂‖² − ‖xWΛ^½‖² + ‖xW‖²)",
        "weighted subspace algorithm with unit norm", ORDERED,
        "λ linear from 1 to model.lambda_min; unit norm"),
    _linear(8, "gha", "ΔW ∝ xᵀy − W tri(yᵀy)", _GHA, ORDERED, "Sanger's rule; unit norm"),
    _linear(9, "gha_encoder", "ΔW ∝ xᵀy − W tri(yᵀy) − xᵀy(tri(WᵀW) − I)", "autoencoder with GHA update",
        ORDERED),
    _linear(10, "gha_subspace", "ΔW ∝ xᵀy − W tri(yᵀy) − W(yᵀy − diag(y²))", _GHA, ORDERED),
    _linear(11, "reconstruction_gha", f"{_AE} + sum(W ⊙ [W tri₋(yᵀy)]sg)", "autoencoder with GHA update", AXES,
        "in order by index from about half of the random starts"),
    _linear(12, "nested_dropout", "E‖(xW ⊙ m)Wᵀ − x‖²", "nested dropout", ORDERED,
        "ordering.rho; low indices first"),
    _linear(13, "weighted_variance", "E(‖x − xWWᵀ‖² − α‖xWΛ^½‖²)", "weighted variance maximisation", AXES,
        "α = ±1; WᵀW = I + ½αΛ at the solution"),
    _linear(14, "variance_dropout", "E(‖x − xWWᵀ‖² − α‖xW ⊙ m‖²)", "weighted variance maximisation", AXES),
    _nonlinear(1, "nlpca_conventional", "E‖x − h(xW)Wᵀ‖²", "conventional nonlinear PCA",
        CONTROL + "nothing on data that is not white", "on white data: sub-Gaussian sources"),
    _nonlinear(2, "nlpca_trainable_no_sg", "E‖x − h(xWΣ⁻¹)ΣWᵀ‖², σ trained", "a closer look at the gradient",
        CONTROL + "super-Gaussian sources stay mixed"),
    _nonlinear(3, "nlpca_trainable", f"{_MAIN}, σ trained", "gradient of trainable Σ", SUPER,
        "sigma.l2 stops σ"),
    _nonlinear(4, "nlpca_latent_linear", f"{_LATENT} + E‖xW[Wᵀ]sg − x‖², σ trained", _SPACE, SUPER),
    _nonlinear(5, "nlpca_latent_symmetric", f"{_LATENT} + 10‖I − WᵀW‖², σ trained", _SPACE, SUPER),
    _nonlinear(6, "nlpca_latent_asymmetric", f"{_LATENT} + 10‖tri₋(Wᵀ[W]sg)‖², σ trained", _SPACE, SUPER),
    _nonlinear(7, "nlpca_latent_wtw", "E‖x[W]sg − h(xWΣ⁻¹)Σ[WᵀW]sg‖² + ‖I − WᵀW‖², σ trained", _SPACE, SUPER,
        "ordering=triangular: tri([WᵀW]sg), ordered by index"),
    _nonlinear(8, "nlpca_tanh", f"{_MAIN}, h = tanh", "mean and variance of data", INDEPENDENT,
        "sub-Gaussian: a = 1"),
    _nonlinear(9, "nlpca", f"{_MAIN}, h(z) = a·tanh(z/a)", "nonlinear PCA, the main loss", INDEPENDENT,
        "a ≥ 2 for super-, a ≤ 1 for sub-Gaussian sources, a=auto for both"),
    _nonlinear(10, "nlpca_modified_derivative", f"{_MAIN}, h′ = 1", "modified derivative", SUPER),
    _nonlinear(11, "nlpca_hard_tanh", f"{_MAIN}, h = clip(z, −2, 2), h′ = 1", "choice of nonlinearity", SUPER),
    _nonlinear(12, "nlpca_asymmetric_adaptive", f"{_MAIN}, h = tanh z/std(tanh z), h′ = 1", "asymmetric",
        SUPER),
    _nonlinear(13, "nlpca_asymmetric", f"{_MAIN}, h = 1.6·tanh z, h′ = 1", "asymmetric, constant", SUPER),
    _nonlinear(14, "nlpca_ema_latent_wtw", "E‖x[W]sg − h(z)Σ[WᵀW]sg‖² + ‖I − WᵀW‖²", _SPACE, INDEPENDENT),
    _nonlinear(15, "nlpca_trainable_a", f"{_MAIN}, a trained", "choice of nonlinearity", SUPER,
        "a tends to grow"),
    _nonlinear(16, "nlpca_deflation", "E‖x − h(xW P(W)Σ⁻¹)Σ[Wᵀ]sg‖², P = I − tri₋(Wᵀ[W]sg)",
        "embedded projective deflation", INDEXED),
    _nonlinear(17, "nlpca_nested_dropout", "E‖x − (h(z) ⊙ m)Σ[Wᵀ]sg‖² + ‖WᵀW − I‖²",
        "nested dropout, nonlinear", INDEPENDENT,
        "keeps the order of a PCA start; from a random start only index 0 is sure"),
    _nonlinear(18, "nlpca_tanh_linear", f"{_MAIN} + αE‖x − xW[Wᵀ]sg‖², h = tanh, h′ = 1",
        "modified derivative", SUPER),
    _nonlinear(19, "rica", f"{_AE} + βE Σ|y|", "L1 sparsity", SUPER, "β = model.beta_0·E‖x‖₂"),
    _nonlinear(20, "rica_logcosh", f"{_AE} + βE Σ log cosh y", "L1 sparsity", SUPER, "β = model.beta_0·E‖x‖₂"),
    _nonlinear(21, "skew_symmetric", f"{_AE} + β·sum(W ⊙ [W(yᵀh(y) − h(y)ᵀy)]sg)", "skew-symmetric update",
        SUPER, "β = E‖x‖₂"),
    _nonlinear(22, "symmetric_off_diagonal", f"{_AE} + β·sum(W ⊙ [W off-diag(yᵀh(y))]sg)",
        "skew-symmetric update", SUPER),
    _nonlinear(23, "symmetric_off_diagonal_sigma", f"{_AE} + β·sum(W ⊙ [W off-diag(yᵀh(yΣ⁻¹)Σ)]sg), h = sign",
        "skew-symmetric update", SUPER),
    _nonlinear(24, "nlpca_triangular", f"{_MAIN} + sum(W ⊙ [W tri(yᵀyΣ⁻¹)]sg)", "triangular weight update",
        INDEXED, "a = 6"),
    Row("lica", ICA, f"E‖x[WΣ⁻¹]sg − h(x[WΣ⁻¹]sgV)Vᵀ‖² + {_MAIN}", "linear ICA, two layers",
        "independent sub-Gaussian sources under any mixing, up to sign and scale",
        "for super-Gaussian sources: a=3 model.second=main"),
    Row("lica_two_step", ICA, "PCA whitening, then E‖x − h(xV)[Vᵀ]sg‖²", "linear ICA", ANY, "a as for nlpca"),
    Row("nlpca_whitened", ICA, "PCA whitening, then E‖x − h(xV)Vᵀ‖²", "conventional nonlinear PCA",
        "independent sub-Gaussian sources under any mixing, up to sign and scale"),
    Row("fastica", ICA, "max |E log cosh(xB) − E log cosh(n)|", "linear ICA; Hyvärinen 1999", ANY,
        "scikit-learn's"),
    Row("picard", ICA, "max likelihood over rotations", "Ablin and others 2018", ANY,
        "python-picard, optional extra"),
    Row("easi", ICA, "ΔV = −V(yᵀy − I + α(yᵀh(y) − h(y)ᵀy))", "EASI", ANY,
        "model.alpha: 1 super-, −1 sub-Gaussian"),
    Row("bigradient", OTHER, "ΔW ∝ xᵀh(yΣ⁻¹)Σ − 500·W(WᵀW − I)", "symmetric orthogonality", SUBSPACE,
        "h = z; any other makes it an ICA rule. 500 = 1/(2·lr): with another lr, regularisers={symmetric: 1/(8·lr)}"),
    Row("bigradient_hierarchic", OTHER, "ΔW ∝ xᵀh(yΣ⁻¹)Σ − WΣ²tri₋(WᵀW)", "asymmetric orthogonality", ORDERED),
    Row("ppca", OTHER, "x = yA + λε, A = (Λ − λ²I)^½Wᵀ", "probabilistic PCA", ORDERED, "closed form"),
    Row("factor_analysis", OTHER, "x = yA + ε, ε_i of variance ψ_i", "factor analysis",
        "the factors' subspace"),
]  # fmt: skip

CATALOGUE: dict[str, Row] = {row.name: row for row in _ROWS}

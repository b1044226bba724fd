"""Matrices between runs and between components."""

from dataclasses import replace

import numpy as np
from solver_helpers import orthonormal

from sigmapca_cli.evaluation.identifiability import certify
from sigmapca_cli.evaluation.stability import stability
from sigmapca_cli.figures.agreement import plot_agreement, plot_certificate, plot_rotation, plot_stability
from sigmapca_cli.figures.save import save


def test_agreement_writes_its_numbers_while_they_fit():
    few = plot_agreement(np.eye(3), list("abc"), chance=0.2)
    assert [t.get_text() for t in few.axes[0].texts] == ["1.00", "0.00", "0.00", "0.00", "1.00"] + [
        "0.00"
    ] * 3 + ["1.00"]
    assert not plot_agreement(np.eye(20), [str(i) for i in range(20)]).axes[0].texts


def test_rotation_marks_the_matches_and_only_them():
    R = np.array([[0.9, 0.1], [-0.3, 0.19], [0.2, -0.97]])
    (marks,) = plot_rotation(R).axes[0].lines
    assert sorted(zip(*marks.get_data(), strict=True)) == [(0, 0), (0, 1), (1, 2)]


def test_certificate_marks_arbitrary_pairs_and_shows_the_scores():
    g = np.random.default_rng(0)
    certificate = certify(np.hstack([g.laplace(size=(3000, 2)) * 4, g.standard_normal((3000, 2))]))
    figure = plot_certificate(certificate)
    axes = figure.axes[0]
    image = axes.images[0].get_array()
    assert image.mask.diagonal().all()
    assert image[0, 1] > certificate.threshold > abs(image[2, 3])
    (dots,) = axes.lines
    assert sorted(zip(*dots.get_data(), strict=True)) == [(2, 3), (3, 2)]
    assert (
        figure.get_supxlabel().replace("\n", " ")
        == "1 of 6 pairs are not identified: 1 arbitrary (dots), 0 repelled (red)"
    )


def test_the_certificate_of_a_run_that_has_not_converged_counts_no_pairs():
    found = certify(np.random.default_rng(0).laplace(size=(3000, 3)) * [3, 2, 1])
    assert "all pairs are identified" in plot_certificate(found).get_supxlabel().replace("\n", " ")
    words = plot_certificate(replace(found, converged=False)).get_supxlabel().replace("\n", " ")
    assert "identified" not in words and "not converged" in words


def test_stability_bars_are_the_indices(tmp_path):
    found = stability([orthonormal(12, 3, seed) for seed in range(3)])
    figure = plot_stability(found)
    np.testing.assert_allclose([bar.get_height() for bar in figure.axes[0].patches], found.index)
    assert save(figure, tmp_path / "stability.png")[1].name == "stability.pdf"

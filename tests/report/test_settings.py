"""Runs by setting, halves, and paths: what the report says of them, and when it says nothing."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from solver_helpers import orthonormal

from sigmapca_cli.figures.curves import plot_curves
from sigmapca_cli.figures.histograms import plot_histograms
from sigmapca_cli.figures.scales import from_nines, nines
from sigmapca_cli.figures.scatter import plot_points, plot_scatter
from sigmapca_cli.figures.titles import run_title
from sigmapca_cli.report import paths, settings
from sigmapca_cli.report.build import sections, title
from sigmapca_cli.report.charts import Series, up_to_one
from sigmapca_cli.report.gather import Report


def filters(seed, p=12, k=3):
    return orthonormal(p, k, seed)


def run(W, a=4.0, seed=0, half="all", loss=1.0, mcc=0.9):
    """A run as the report reads one."""
    config = {
        "a": a,
        "seed": seed,
        "data": {"half": half},
        "model": {"name": "nlpca", "family": "nonlinear_pca"},
    }
    config["nonlinearity"] = {"a": a}
    attrs = {"model": "nlpca", "data": "planted", "a": str(a), "seed": seed}
    return SimpleNamespace(
        config=config, attrs=attrs, overrides=[], filters=W, directions=W, rotation=None, evaluation={"mcc": mcc},
        metrics={"step": np.arange(3), "loss": np.array([3.0, 2.0, loss])}, folder=None, status="finished",
        name="of a test", short_name="of a test", spreads=None, sigma=None, patch_shape=None, names=None, grid=None,
        config_yaml="",
    )  # fmt: skip


def table_of(block):
    return {name: [row[i] for row in block.cells] for i, name in enumerate(block.header)}


def test_repetitions_of_a_setting_become_one_row():
    W = filters(0)
    same = [run(W, 2.0, seed, loss=1.0 + seed, mcc=0.9 + 0.05 * seed) for seed in (0, 1)]
    other = [run(filters(seed), 8.0, seed) for seed in (1, 2)]
    (table,) = settings.by_setting(Report([same[0], other[0], same[1], other[1]], []))
    found = table_of(table)
    assert [cell.text for cell in found["a"]] == ["2", "8"] and [cell.text for cell in found["runs"]] == [
        "2",
        "2",
    ]
    assert found["loss"][0].value == 1.5 and found["spread of the loss"][0].value == pytest.approx(
        np.sqrt(0.5)
    )
    assert (found["MCC"][0].value, found["least MCC"][0].value) == (pytest.approx(0.925), 0.9)
    assert found["agreement"][0].value == pytest.approx(1) and found["agreement"][1].value < 0.8


def test_without_repetitions_there_is_no_table():
    assert settings.by_setting(Report([run(filters(0), a) for a in (1.0, 2.0)], [])) == []
    assert settings.by_setting(Report([run(filters(s), 4.0, s) for s in (0, 1)], [])) == []


def test_halves_are_matched_by_setting_and_drawn_over_a():
    W, V = filters(0), filters(1)
    turned = W @ np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    runs = [
        run(W, 2.0, half="even"),
        run(W, 2.0, half="odd"),
        run(W, 8.0, half="even"),
        run(turned, 8.0, half="odd"),
    ]
    runs += [run(V, 16.0, half="even"), run(V, 16.0)]  # no odd half
    table, chart = settings.halves(Report(runs, []))
    found = table_of(table)
    assert [cell.text for cell in found["a"]] == ["2", "8"]
    assert [cell.value for cell in found["span"]] == pytest.approx([1, 1])
    assert found["agreement"][0].value == pytest.approx(1) and found["agreement"][1].value < 0.95
    assert "agreement of halves" in chart.items[0].source and chart.items[0].source.count('class="dot"') == 2
    assert settings.halves(Report(runs[:2], []))[1:] == []  # one a is no path
    assert settings.halves(Report([run(W), run(W, 2.0)], [])) == []


PATH = {
    "data": "planted", "along": "a", "k": 3, "linear_pca": 0.8, "span": 0.999, "sentence": "best: a=4 (0.9950)",
    "knots": [{"at": "inf", "agreement": 0.8}, {"at": 8, "agreement": 0.97}, {"at": 4, "agreement": 0.995}],
}  # fmt: skip


def test_a_path_beside_the_runs_is_drawn(tmp_path):
    (tmp_path / "path.json").write_text(json.dumps(PATH))
    (found,) = paths.found_in([tmp_path, tmp_path])
    assert found.at.tolist() == [np.inf, 8, 4]
    text, pictures = paths.blocks([found])
    assert text.text == "Path over a of planted, k = 3. best: a=4 (0.9950)"
    assert "∞ at the right end" in pictures.items[0].source and len(pictures.legend) == 3
    alone = Report([run(filters(0))], [])
    titles = [[part.title for part in sections(alone, stored)] for stored in ([found], [])]
    assert "Agreement of halves" in titles[0] and "Agreement of halves" not in titles[1]
    chart = pictures.items[0].source
    assert 'class="chart"' in chart  # no run is chosen in it, so that no line is faint


@pytest.mark.parametrize(
    "change",
    [
        {"knots": []}, {"knots": [{"at": -1, "agreement": 1}]}, {"knots": [{"at": 1, "agreement": "x"}]},
        {"along": "k"}, {"span": "nan"}, {"knots": 3}, {"k": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_file_that_is_no_path_is_passed_over(change, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({**PATH, **change}))
    (tmp_path / "b.json").write_text("[1, 2")
    (tmp_path / "c.json").mkdir()
    assert paths.found_in([tmp_path]) == []


def test_texts_of_a_path_are_only_texts(tmp_path):
    from sigmapca_cli.report.page import Section, render

    (tmp_path / "path.json").write_text(json.dumps({**PATH, "data": "<script>", "sentence": "<b>\x1b[2J"}))
    html = render("x", [Section("s", paths.blocks(paths.found_in([tmp_path])))])
    assert "<script>," not in html and "&lt;script&gt;" in html and "\x1b" not in html


def test_titles_name_method_data_and_a():
    one, two = run(filters(0), 2.0), run(filters(0), 10.0)
    assert run_title(one) == "nlpca on planted, a = 2, seed 0" == title(Report([one], []))
    assert title(Report([two, one], [])) == "2 runs of nlpca on planted, a = 2, 10"
    one.config["solver"], one.evaluation = {"name": "moments"}, {"lam": 0.14}
    assert run_title(one) == "nlpca on planted, λ = 0.14, seed 0"
    two.config["model"]["family"] = "linear_pca"
    assert run_title(two) == "nlpca on planted, seed 0"
    assert run_title(SimpleNamespace(attrs={})) == "run"


def test_0_999_is_apart_from_0_99():
    np.testing.assert_allclose(nines([0, 0.9, 0.99, 0.999, 1]), [0, 1, 2, 3, 5])
    np.testing.assert_allclose(from_nines(nines([0.5, 0.97])), [0.5, 0.97])
    steps = np.arange(1.0, 4.0)
    high = up_to_one([Series(steps, np.array([0.5, 0.99, 0.9985]), "#000")], "step", "MCC")
    assert ">0.99<" in high and ">0.999<" in high and ">0.5<" in high
    y = [float(at.split(",")[1]) for at in re.search(r'points="([^"]+)"', high)[1].split()]
    assert y[1] - y[2] > 50  # pixels between 0.99 and 0.9985
    low = up_to_one([Series(steps, np.array([0.2, 0.5, 0.6]), "#000")], "step", "MCC")
    assert ">1<" in low and ">0.99<" not in low
    assert up_to_one([Series(steps, np.array([-0.2, 0.5, 0.6]), "#000")], "step", "MCC") is None
    figure = plot_curves({"step": steps, "mcc": np.array([0.5, 0.99, 0.9985])})
    axes = figure.axes[0]
    assert "0.999" in [tick.get_text() for tick in axes.get_yticklabels()]
    at = axes.transData.transform([(1, 0.99), (1, 0.9985)])[:, 1]
    assert at[1] - at[0] > 0.15 * axes.bbox.height


def test_every_axis_has_a_name():
    X = np.random.default_rng(0).standard_normal((50, 2))
    for figure in (plot_scatter(X, {"a": np.eye(2)}), plot_points(X)):
        assert [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes] == [
            ("feature 1", "feature 2")
        ]
    named = plot_scatter(X, {"a": np.eye(2)}, names=["height", "$w$"]).axes[0]
    assert (named.get_xlabel(), named.get_ylabel()) == ("height", r"\$w\$")
    histograms = plot_histograms(X)
    assert [axes.get_xlabel() for axes in histograms.axes] == ["standard deviations"] * 2
    assert histograms.get_supylabel() == "density"

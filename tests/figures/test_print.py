"""Figures for print: their size, fonts and words; names, colours and arrows as a table gives them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import sigmapca_cli as sp
from sigmapca_cli.data.n_components import above_chance, chance_eigenvalues
from sigmapca_cli.figures import plot_run
from sigmapca_cli.figures.save import new_figure, save
from sigmapca_cli.figures.scores import apart, plot_scores
from sigmapca_cli.figures.spectrum import plot_scree
from sigmapca_cli.figures.style import Style, style_of
from sigmapca_cli.figures.weights import MOST_NAMES, plot_weights
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """A run on a table with a class, an age and missing values beside six features."""
    monkeypatch.chdir(tmp_path)
    rows = RNG.laplace(size=(80, 3)) @ RNG.standard_normal((3, 6)) + 0.1 * RNG.standard_normal((80, 6))
    table = pd.DataFrame(rows, columns=[f"size of {name}" for name in "abcdef"])
    table.iloc[[3, 40], 1] = np.nan
    table = table.assign(sex=np.where(rows[:, 0] > 0, "f", "m"), age=RNG.integers(20, 80, 80))
    table.to_csv("t.csv", index=False)
    return table, sp.train(
        "t.csv", k=3, solver="independence", data__drop=["sex", "age"], data__missing="drop"
    )


def test_the_command_writes_a_column_of_a_journal(trained, sigmapca):
    done = sigmapca(
        "plot",
        "last",
        "--width",
        "3.5",
        "--no-title",
        "--format",
        "pdf,svg",
        "--colour",
        "sex",
        "--what",
        "biplot",
    )
    assert done.returncode == 0, done.stderr
    files = [line for line in done.stdout.splitlines() if "biplot" in line]
    assert [name.rsplit(".")[-1] for name in files] == ["pdf", "svg"]
    pdf, svg = (Path(name).read_bytes() for name in files)
    assert b"/Type3" not in pdf and b"/CIDFontType2" in pdf
    assert re.search(rb"MediaBox \[ 0 0 252 ", pdf) and b'width="252pt"' in svg


def test_without_a_title_no_figure_has_one_and_all_are_as_wide_as_asked(trained, tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        "sigmapca_cli.figures.run.save", lambda figure, path, *_: drawn.update({path.name: figure}) or []
    )
    _, run = trained
    for style in (Style(width=3.5, titled=False), Style()):
        drawn.clear()
        plot_run(run, tmp_path, None, run.source, style)
        assert set(drawn) == {"filters", "spectrum", "scree", "histograms", "scores", "biplot"}
        for figure in drawn.values():
            assert bool(figure.get_suptitle()) == style.titled
            assert style.width is None or figure.get_figwidth() == style.width


def test_points_have_the_colour_of_their_own_row(trained):
    table, run = trained
    figure = run.plot("scores", colour="sex", title=False).figure
    whole = table.dropna()
    Y = run.transform(whole.iloc[:, :6])[:, :2]
    for points, sex in zip(figure.axes[0].collections, "fm", strict=True):
        drawn = np.asarray(points.get_offsets())
        expected = Y[(whole.sex == sex).to_numpy()]
        np.testing.assert_allclose(drawn[np.isfinite(drawn).all(axis=1)], expected, atol=1e-5)
    numbers = run.plot("scores", colour="age", components=(2, 3)).figure
    assert numbers.axes[1].get_ylabel() == "age" and "component 2" in numbers.axes[0].get_xlabel()
    for wrong in ({"components": (1, 9)}, {"colour": "nothing"}):
        with pytest.raises(InputError):
            run.plot("scores", **wrong)


def test_numbers_that_name_columns_are_an_axis_in_their_order():
    W = RNG.standard_normal((40, 2))
    axes = plot_weights(W, names=[f"{4000 - 50 * i}" for i in range(40)], x_label="cm⁻¹").axes[0]
    assert axes.get_xlim() == (4000, 2050) and not axes.patches
    np.testing.assert_allclose(axes.lines[1].get_xdata(), 4000 - 50 * np.arange(40))


def test_names_label_horizontal_bars_of_the_strongest_features():
    W = RNG.standard_normal((50, 2))
    axes = plot_weights(W, names=[f"item {i} $" for i in range(50)]).axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert len(labels) == len(axes.patches) == MOST_NAMES
    strongest = np.sort(np.argsort(-np.abs(W).max(axis=1))[:MOST_NAMES])
    assert labels == [rf"item {i} \$" for i in strongest]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], W[strongest, 0])


def test_the_scree_shows_parallel_analysis_of_the_same_covariance():
    X = RNG.standard_normal((300, 2)) @ np.kron(np.eye(2), np.ones(4)) + RNG.standard_normal((300, 8))
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    chance = chance_eigenvalues(X)
    assert chance.sum() == pytest.approx(values.sum()) and above_chance(values, chance) == 2
    data, by_chance, k = plot_scree(values, chance, k=3).axes[0].lines
    np.testing.assert_allclose(data.get_ydata(), values)
    np.testing.assert_allclose(by_chance.get_ydata(), chance)
    assert "2 above" in by_chance.get_label() and k.get_label() == "k = 3"


def test_more_classes_than_colours_leave_the_rarest_together():
    values = [f"c{i}" for i in range(12) for _ in range(12 - i)]
    figure = plot_scores(RNG.standard_normal((len(values), 2)), ["1", "2"], values, "kind")
    assert len(figure.axes[0].collections) == 8 and figure.legends[0].get_texts()[-1].get_text() == "others"


def test_names_of_arrows_keep_their_distance():
    places = apart(np.array([[1.0, 0.0], [1.0, 0.01], [-1.0, 0.0], [1.0, 5.0]]), 0.5)
    right = np.sort(places[places[:, 0] > 0, 1])
    assert np.diff(right).min() > 0.499 and places[2, 1] == 0


def test_patterns_of_linear_ica_stand_beside_their_filters(trained):
    ica = sp.train(
        "t.csv", model="lica", k=2, solver="independence", data__drop=["sex", "age"], data__missing="drop"
    )
    axes = ica.plot("patterns").figure.axes
    assert [a.get_title() for a in axes] == ["pattern 1", "filter 1", "pattern 2", "filter 2"]
    bars = np.array([[bar.get_width() for bar in a.patches] for a in axes])
    B, W = ica.decoder, ica.directions.T
    np.testing.assert_allclose(bars[::2], B / np.linalg.norm(B, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(bars[1::2], W / np.linalg.norm(W, axis=1, keepdims=True), atol=1e-6)


def test_words_of_a_command_become_a_style():
    assert style_of("svg, pdf", "3,1", width=7.0).formats == ("svg", "pdf")
    assert style_of(None, "3,1").components == (2, 0)
    for wrong in ({"formats": "gif"}, {"width": 0.0}, {"components": "1,1"}, {"components": "x"}, {"dpi": 0}):
        with pytest.raises(InputError):
            style_of(**wrong)


def test_loadings_are_drawn_rotated_and_topographies_where_electrodes_have_places(tmp_path, monkeypatch):
    from sigmapca_cli.data.samples.fields import make
    from sigmapca_cli.solution.loadings import loadings_of, rotated

    pytest.importorskip("mne")
    pytest.importorskip("factor_analyzer")
    monkeypatch.chdir(tmp_path)
    table = make("eeg").content.drop(columns="time").iloc[:2000]
    run = sp.train(table, model="lica", k=4, solver="independence")
    plot_run(run, tmp_path, ["topographies"], style=Style(width=3.5, formats=("png",)))
    assert (tmp_path / "topographies.png").stat().st_size > 5000
    bars = plot_run_figure(run, "loadings", Style(rotate="varimax")).axes
    drawn = np.array([[bar.get_width() for bar in axes.patches] for axes in bars])
    np.testing.assert_allclose(drawn.T, rotated(loadings_of(run), "varimax").values, atol=1e-9)
    plain = sp.train(np.asarray(table), k=2, model="pca_svd")
    with pytest.raises(InputError, match="cannot be drawn"):
        plot_run(plain, tmp_path, ["topographies"])
    with pytest.raises(InputError):
        style_of(rotate="sideways")


def plot_run_figure(run, name, style):
    from sigmapca_cli.figures.run import draw

    return draw(name, run, None, style)


def test_a_figure_is_drawn_once_for_each_format(tmp_path):
    """The layout is found without a drawing, and for all formats together."""

    class Counted(Text):
        drawn = 0

        def draw(self, renderer):
            Counted.drawn += 1
            super().draw(renderer)

    figure = new_figure()
    figure.add_artist(Counted(0.5, 0.5, "a word"))
    save(figure, tmp_path / "figure", ("png", "pdf"))
    assert Counted.drawn == 2

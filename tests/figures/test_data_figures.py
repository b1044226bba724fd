"""Histograms, signals, points and data: what is drawn is what was given."""

from types import SimpleNamespace

import numpy as np
import pytest
from mechanisms import every

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.figures import plot_run
from sigmapca_cli.figures.data import plot_data, plot_source
from sigmapca_cli.figures.histograms import plot_histograms
from sigmapca_cli.figures.scatter import plot_scatter
from sigmapca_cli.figures.signals import in_order_of, plot_signals
from sigmapca_cli.figures.style import Style
from sigmapca_cli.system.errors import InputError


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


def test_histograms_are_densities_of_standardised_components():
    Y = np.random.default_rng(0).laplace(size=(20_000, 17)) * 5 + 3
    figure = plot_histograms(Y)
    assert len(figure.axes) == 15 and all("kurtosis +" in title for title in titles(figure))
    values, edges, _ = figure.axes[0].patches[0].get_data()
    assert np.sum(values * np.diff(edges)) == pytest.approx(1, abs=0.01)
    assert values.argmax() == len(values) // 2


def test_recovered_signals_come_in_the_order_and_sign_of_the_sources():
    S = np.random.default_rng(0).laplace(size=(500, 3))
    Y = np.hstack([np.random.default_rng(1).standard_normal((500, 1)), -2 * S[:, [2, 0]], S[:, [1]]])
    ordered, labels = in_order_of(Y, S)
    np.testing.assert_allclose(ordered[:, :3] / S, np.tile([2.0, 1.0, 2.0], (500, 1)))
    np.testing.assert_array_equal(ordered[:, 3], Y[:, 0])
    assert labels == [", |corr| 1.000"] * 3 + [""]


def test_long_signals_keep_their_extremes():
    x = np.zeros((100_000, 1))
    x[77_777] = 9
    figure = plot_signals(x, x)
    assert len(figure.axes) == 2
    assert figure.axes[0].collections[0].get_paths()[0].vertices[:, 1].max() == 9


def test_scatter_names_the_similarity_to_the_true_axes():
    X = np.random.default_rng(0).standard_normal((100, 2)) + 4
    c = np.sqrt(0.5)
    figure = plot_scatter(X, {"A": np.eye(2), "B": np.array([[c, -c], [c, c]])}, np.eye(2))
    assert titles(figure) == ["A, |cos| 1.000", "B, |cos| 0.707"]


@pytest.mark.parametrize(
    ("name", "figures"),
    every(
        SUITING := [
            ("points", {"scatter", "scores", "biplot"}),
            ("signals", {"signals"}),
            ("planted", {"scores", "biplot"}),
        ],
        SUITING[:1],
    ),
)
def test_runs_with_their_data_get_the_figures_that_suit(name, figures, tmp_path):
    options = {"n": 2000} if name == "planted" else {}
    source = build(DataConfig(name=name, **options))
    W = np.linalg.eigh(source.covariance()[1])[1][:, ::-1][:, :2]
    run = SimpleNamespace(
        filters=W,
        sigma=np.ones(2),
        encoder=W,
        decoder=W.T,
        mean=np.zeros(len(W)),
        scale=np.ones(len(W)),
        whitening=None,
        clip=None,
        names=None,
        config={},
        patch_shape=None,
        metrics={},
        evaluation={},
        attrs={},
    )
    drawn = {path.stem for path in plot_run(run, tmp_path, source=source, style=Style(formats=("png",)))}
    assert drawn == {"filters", "spectrum", "scree", "histograms"} | figures
    with pytest.raises(InputError, match="it needs the rows of the run's data"):
        plot_run(run, tmp_path, ["histograms"])


def test_a_file_of_points_and_one_of_features(tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 2)) * [1, 100] + 50
    np.save(tmp_path / "points.npy", X)
    assert [p.name for p in plot_data(tmp_path / "points.npy", tmp_path / "out")] == ["out.png", "out.pdf"]
    source = build(DataConfig(name="array", path=str(tmp_path / "points.npy"), standardise="none"))
    offsets = plot_source(source).axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(np.asarray(offsets), X, rtol=1e-4)


@pytest.mark.full
def test_real_images_and_digits(shared_data, tmp_path):
    for name in ("cifar-10-batches-bin", "mnist"):
        assert all(path.stat().st_size > 5000 for path in plot_data(shared_data / name, tmp_path / name))

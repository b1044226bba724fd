"""What a filter picture must keep: the sign, the middle grey of zero, the order of features, one scale a
filter.
"""

import numpy as np
import pytest

from sigmapca_cli.figures.filters import as_images, as_rgb, plot_filters
from sigmapca_cli.figures.save import save
from sigmapca_cli.figures.titles import format_sigma


def test_zero_is_mid_grey_and_the_largest_weight_reaches_the_end():
    W = np.zeros((12, 3))
    W[:, 0] = np.linspace(-3, 1, 12)
    W[5, 1] = 1e-9
    images = as_images(W, (2, 2, 3))
    assert images.min() == 0 and images[0].max() == pytest.approx(0.5 + 1 / 6)
    assert images[1].max() == 1 and np.median(images[1]) == 0.5
    assert (images[2] == 0.5).all()


def test_a_filter_of_the_other_sign_is_the_negative_and_scale_changes_nothing():
    W = np.random.default_rng(0).standard_normal((27, 4))
    images = as_images(W, (3, 3, 3))
    np.testing.assert_allclose(as_images(-W, (3, 3, 3)), 1 - images)
    np.testing.assert_allclose(as_images(W * 1e-7, (3, 3, 3)), images)


def test_features_are_in_the_order_row_column_channel():
    W = np.zeros((363, 1))
    W[(11 * 5 + 5) * 3 + 1] = 1
    row, column, channel = np.argwhere(as_images(W, (11, 11, 3))[0] == 1)[0]
    assert (row, column, channel) == (5, 5, 1)


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_any_number_of_channels_becomes_a_colour(channels):
    images = np.random.default_rng(0).random((2, 4, 4, channels))
    rgb = as_rgb(images)
    assert rgb.shape == (2, 4, 4, 3)
    if channels == 1:
        assert (rgb[..., 0] == rgb[..., 2]).all()


@pytest.mark.parametrize(
    ("p", "k", "shape"), [(27, 5, (3, 3, 3)), (12, 1, (3, 4, 1)), (2, 2, None), (40, 40, None)]
)
def test_every_kind_of_filter_draws_one_label_a_filter(p, k, shape, tmp_path):
    W = np.random.default_rng(0).standard_normal((p, k))
    figure = plot_filters(W, np.arange(k, 0, -1), shape, "title")
    labels = [t.get_text() for axes in figure.axes for t in [*axes.texts, axes.title]]
    assert sum(any(c.isdigit() for c in label) for label in labels) == min(k, 32)
    if k <= 5:
        assert all(path.stat().st_size > 500 for path in save(figure, tmp_path / "filters"))


def test_short_numbers():
    assert [format_sigma(v) for v in (0, 12.345, 0.01234, 1.2e-7, 123456)] == [
        "0",
        "12.3",
        "0.0123",
        "1.2e-07",
        "1.2e+05",
    ]


def test_weights_carry_the_numbers_given_in_a_grid_as_wide_as_asked():
    figure = plot_filters(np.eye(5)[:, :4], columns=2, labels=[1, 3, 2, 4])
    assert [axes.get_title() for axes in figure.axes] == ["1", "3", "2", "4"]
    assert figure.axes[0].get_gridspec().ncols == 2


@pytest.mark.parametrize("colours", [(), (3,)])
def test_filters_of_an_array_of_pictures_are_drawn_as_pictures(tmp_path, train, colours):
    from sigmapca_cli.figures.filters import pixels_of
    from sigmapca_cli.figures.run import draw, suits

    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal((60, 8, 8, *colours)))
    run = train("data=array", f"data.path={tmp_path}/a.npy", "data.rows=0", "model=pca_svd", "k=2")
    assert run.patch_shape is None and pixels_of(run) == (8, 8, 3 if colours else 1)
    shown = draw("filters", run, None).axes[0].images[0].get_array()
    np.testing.assert_allclose(shown, as_rgb(as_images(run.filters, pixels_of(run)))[0])
    assert not suits("biplot", run, run)


def test_a_grid_with_names_or_coordinates_or_gaps_is_no_picture():
    from sigmapca_cli.storage.grid import Grid, picture_shape

    place = np.arange(64)
    assert picture_shape(Grid((8, 8), place)) == (8, 8, 1)
    others = (
        Grid((8, 8), place, ("lat", "lon")), Grid((8, 8), place, (), (place[:8] * 1.0, None)),
        Grid((8, 8), place[1:]), Grid((4, 16), place), None,
    )  # fmt: skip
    assert not any(map(picture_shape, others))

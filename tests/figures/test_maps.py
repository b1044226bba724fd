"""Filters of gridded data drawn as maps."""

import h5py
import numpy as np
import pytest

from sigmapca_cli.figures.maps import EMPTY, is_drawn, map_images, plot_maps
from sigmapca_cli.figures.run import draw
from sigmapca_cli.storage.grid import Grid
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError

LAT, LON = np.array([10.0, 20.0, 40.0]), np.array([0.0, 5.0, 10.0, 15.0])
PLACE = np.array([0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11])  # cell 6 is land
SEA = Grid((3, 4), PLACE, ("lat", "lon"), (LAT, LON))
W = np.linalg.qr(np.random.default_rng(0).standard_normal((11, 2)))[0]


def meshes(figure):
    return [axes.collections[0] for axes in figure.axes]


def test_every_filter_is_a_map_with_its_land_left_empty():
    figure = plot_maps(W, [2.0, 1.0], SEA, "title")
    for i, mesh in enumerate(meshes(figure)):
        drawn = np.ma.filled(mesh.get_array(), np.nan).ravel()
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(drawn)), [6])
        np.testing.assert_array_equal(drawn[PLACE], W[:, i])
        assert mesh.norm.vmax == -mesh.norm.vmin == np.abs(W[:, i]).max()
    low, high = figure.axes[0].get_ylim()
    assert low < 10 < 40 < high  # north is above


def test_without_coordinates_the_first_row_is_above():
    low, high = plot_maps(W, None, Grid((3, 4), PLACE)).axes[0].get_ylim()
    assert low > high


def test_images_have_greater_coordinates_above_whatever_the_order_of_the_file():
    rising = map_images(W, SEA)
    turned = Grid((3, 4), np.array([8, 9, 10, 11, 4, 5, 7, 0, 1, 2, 3]), ("lat", "lon"), (LAT[::-1], LON))
    np.testing.assert_array_equal(map_images(W, turned), rising)
    np.testing.assert_array_equal(rising[:, 1, 2], EMPTY)  # the land


@pytest.mark.parametrize(
    ("shape", "drawn"), [((3, 4), True), ((4,), False), ((6, 7, 3), True), ((9, 9, 9), False)]
)
def test_two_dimensions_are_maps_and_a_short_third_one_is_layers(shape, drawn):
    grid = Grid(shape, np.arange(np.prod(shape)))
    assert is_drawn(grid) == drawn
    if len(shape) == 3 and drawn:
        values = np.random.default_rng(0).standard_normal((126, 2))
        first, second = meshes(plot_maps(values, None, grid))[:2]
        np.testing.assert_array_equal(first.get_array().ravel(), values[::3, 0])
        np.testing.assert_array_equal(second.get_array().ravel(), values[1::3, 0])


def test_a_run_on_maps_through_time_is_drawn_as_maps(train, tmp_path):
    cube = np.random.default_rng(0).standard_normal((30, 3, 4))
    cube[:, 1, 2] = np.nan
    np.save(tmp_path / "a.npy", cube)
    run = train("data=array", f"data.path={tmp_path}/a.npy", "data.rows=0", "model=pca_svd", "k=2")
    np.testing.assert_array_equal(run.grid.place, PLACE)
    np.testing.assert_array_equal(
        np.ma.filled(meshes(draw("filters", run, None))[0].get_array(), np.nan).ravel()[PLACE],
        run.filters[:, 0],
    )
    with h5py.File(run.path, "r+") as file:
        file["grid_place"][0] = 12  # of cells 0 to 11
    with pytest.raises(InputError, match="grid_place"):
        _ = StoredRun.open(run.folder).grid

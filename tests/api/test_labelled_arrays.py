"""Arrays of xarray, and arrays of more than two dimensions, in memory: the run of their file."""

import numpy as np
import pytest

import sigmapca_cli as sp

xarray = pytest.importorskip("xarray", reason="skipped: xarray is not installed")

RNG = np.random.default_rng(0)
CELLS = (RNG.laplace(size=(300, 3)) * [3, 2, 1] @ RNG.standard_normal((3, 20))).reshape(300, 4, 5)
CELLS = (CELLS + 0.1 * RNG.standard_normal(CELLS.shape)).astype(np.float64)
CELLS[:, 0, 1] = np.nan
MAPS = xarray.DataArray(
    CELLS,
    dims=("time", "lat", "lon"),
    name="sst",
    attrs={"units": "K"},
    coords={
        "time": np.arange("1990-01", "2015-01", dtype="M8[M]").astype("M8[ns]"),
        "lat": [10.0, 20, 30, 40],
        "lon": np.arange(5) * 2.5,
    },
)
SETTINGS = {"solver": "independence", "k": 3}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_maps_in_memory_are_the_maps_of_a_file(tmp_path):
    run = sp.train(MAPS, data__rows="time", **SETTINGS)
    MAPS.to_netcdf(tmp_path / "sst.nc", engine="h5netcdf")
    same = sp.train(tmp_path / "sst.nc", data__rows="time", **SETTINGS)
    np.testing.assert_array_equal(run.filters, same.filters)
    assert run.names == same.names and "lat=10 lon=0" in run.names and len(run.names) == 19
    assert run.grid.equals(same.grid) and run.maps().shape == (3, 4, 5)
    assert run.attrs["data_hash"] == same.attrs["data_hash"]
    # a data set, another order of dimensions, and the same call again
    for data in (MAPS.to_dataset(), MAPS.transpose("lat", "time", "lon")):
        other = sp.train(data, data__rows="time", **SETTINGS)
        np.testing.assert_allclose(other.filters, run.filters, atol=1e-9)
    runs = len(sp.runs())
    sp.train(MAPS, data__rows="time", if_exists="skip", **SETTINGS)
    assert len(sp.runs()) == runs
    Y = run.transform(MAPS)
    for new in (MAPS, MAPS.transpose("lon", "lat", "time"), CELLS):
        np.testing.assert_allclose(run.transform(new), Y, atol=1e-12)
    np.testing.assert_allclose(Y.std(0), 1, rtol=1e-9)
    with pytest.raises(sp.InputError):
        run.transform(MAPS[:, :3])
    with pytest.raises(sp.InputError):
        run.transform(MAPS.rename(lat="y"))


def test_plain_arrays_of_three_dimensions_take_the_number_of_the_rows():
    run = sp.train(np.moveaxis(CELLS, 0, 1), data__rows=1, **SETTINGS)
    same = sp.train(MAPS, data__rows="time", **SETTINGS)
    np.testing.assert_array_equal(run.filters, same.filters)
    np.testing.assert_allclose(run.transform(np.moveaxis(CELLS, 0, 1)), same.transform(MAPS), atol=1e-12)
    assert run.evaluation and run.source.p == 19
    for data in (CELLS, MAPS):
        with pytest.raises(sp.InputError, match=r"data\.rows"):
            sp.train(data, **SETTINGS)
    with pytest.raises(sp.InputError, match="no dimension"):
        sp.train(MAPS, data__rows="year", **SETTINGS)


def test_columns_of_xarray_have_their_names():
    X = RNG.laplace(size=(200, 3)) * [3, 2, 1]
    array = xarray.DataArray(X, dims=("sample", "gene"), coords={"gene": ["TP53", "ätt", "身"]})
    run = sp.train(array, **SETTINGS)
    assert run.names == ["TP53", "ätt", "身"]
    np.testing.assert_array_equal(run.filters, sp.train(X, **SETTINGS).filters)
    np.testing.assert_allclose(run.transform(array[:, ::-1]), run.transform(X), atol=1e-12)
    table = xarray.Dataset({"a b": ("row", X[:, 0]), "c": ("row", X[:, 1]), "d": ("row", X[:, 2])})
    assert sp.train(table, **SETTINGS).names == ["a b", "c", "d"]
    assert sp.train(xarray.DataArray(X), **SETTINGS).names is None
    cells = xarray.DataArray(np.c_[X, X[:, :1] ** 2].reshape(200, 2, 2), dims=("t", "y", "x"))
    stacked = cells.assign_coords(y=[1, 2], x=[3, 4]).stack(cell=("y", "x"))
    assert sp.train(stacked, **SETTINGS).names[0] == "(1, 3)"
    with pytest.raises(sp.InputError, match="needs 2"):
        sp.train(array[:, 0], **SETTINGS)
    with pytest.raises(sp.InputError, match=r"data\.dataset"):
        sp.train(xarray.Dataset({"x": (("n", "p"), X), "y": (("n", "p"), X)}), **SETTINGS)
    both = xarray.Dataset({"x": (("n", "p"), X), "y": (("n", "q"), X[:, :2])})
    assert sp.train(both, data__dataset="y", solver="independence", k=2).source.p == 2
    with pytest.raises(sp.InputError, match="not numbers"):
        sp.train(xarray.DataArray([["a", "b"], ["c", "d"]]), **SETTINGS)

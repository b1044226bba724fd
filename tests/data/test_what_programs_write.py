"""What other programs say in their files: headers of numbers, units, packed values, dimensions, annotations."""

import pickle
import string
import zipfile

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray
from array_sources import source_of, values
from scipy import sparse
from scipy.io import mmwrite, savemat

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.describe.describe import describe
from sigmapca_cli.data.readers.array_files import read_matrix
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)
SPECTRA = np.round(RNG.random((30, 40)), 4)


# ---- text ----

AXES = {
    "decreasing wavenumbers": np.linspace(3999.6, 650.1, 40).round(1),
    "ppm": np.linspace(9.5, 0.5, 40).round(3),
    "micrometres among the values": np.linspace(0.1, 0.9, 40).round(3),
    "m/z at unequal distances": np.sort(RNG.uniform(0.1, 0.9, 40)).round(4),
}


@pytest.mark.parametrize("corner", [None, "", "sample"])
@pytest.mark.parametrize("axis", AXES)
def test_a_header_of_numbers_names_the_columns(tmp_path, axis, corner):
    frame = pd.DataFrame(SPECTRA, columns=list(map(str, AXES[axis])))
    if corner is not None:
        frame.insert(0, corner, range(1, 31))
    frame.to_csv(tmp_path / "a.csv", index=False)
    source = source_of(tmp_path / "a.csv")
    assert source.names == tuple(map(str, AXES[axis]))
    np.testing.assert_array_equal(values(source), SPECTRA)


ROWS = {
    "unrelated numbers": SPECTRA,
    "sums that rise in every row": np.cumsum(SPECTRA, axis=1).round(4),
    "answers from 1 to 5": np.vstack([np.arange(1, 6), RNG.integers(1, 6, (30, 5))]),
    "four numbers of one decimal": np.vstack([[1.0, 1.5, 2.1, 2.5], np.round(RNG.random((8, 4)), 1)]),
    "counts": RNG.integers(0, 100, (30, 12)),
    "smooth curves": np.sin(
        np.linspace(0, 1, 20) * RNG.uniform(1, 6, (30, 1)) + RNG.uniform(0, 3, (30, 1))
    ).round(4),
}


@pytest.mark.parametrize("rows", ROWS)
def test_a_first_row_of_measurements_is_a_row(tmp_path, rows):
    np.savetxt(
        tmp_path / "a.csv", ROWS[rows], delimiter=",", fmt="%.4f" if ROWS[rows].dtype.kind == "f" else "%d"
    )
    source = source_of(tmp_path / "a.csv")
    assert source.names is None
    np.testing.assert_array_equal(values(source), ROWS[rows])


@pytest.mark.parametrize(
    ("text", "names", "numbers"),
    [
        ("-0,988;0,123\n0,317;-0,544\n", None, [[-0.988, 0.123], [0.317, -0.544]]),
        ("Anteil;Preis\n12,34 %;1,5 €\n13,5 %;2,25 €\n", ("Anteil", "Preis"), [[12.34, 1.5], [13.5, 2.25]]),
        ("12,34 %;1,5 €\n13,5 %;2,25 €\n", None, [[12.34, 1.5], [13.5, 2.25]]),
        ("a,b\n$1.50,1\n$2,2\n", ("a", "b"), [[1.5, 1], [2, 2]]),
        ("1.5D-03 2.0D+01\n-.5d0 1.D2\n", None, [[0.0015, 20], [-0.5, 100]]),
        ("a,b\n1,2\n# the sensor was moved\n3,4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("time,temp\ns,degC\n1,2\n3,4\n5,6\n", ("time", "temp"), [[1, 2], [3, 4], [5, 6]]),
    ],
)
def test_numbers_as_other_programs_write_them(tmp_path, text, names, numbers):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    source = source_of(tmp_path / "a.csv")
    assert source.names == names
    np.testing.assert_array_equal(values(source), numbers)


def test_units_of_a_second_line_and_behind_the_numbers_are_kept(tmp_path):
    (tmp_path / "a.csv").write_text("time,temp,share\ns,degC,\n1,2,5 %\n3,4,6 %\n5,7,7 %\n")
    assert source_of(tmp_path / "a.csv").units == {"time": "s", "temp": "degC", "share": "%"}


def test_a_record_of_comment_marks_in_full_width_is_a_row(tmp_path):
    (tmp_path / "a.csv").write_text("id,a,b\n#1,1,2\n#2,3,4\n")
    assert values(source_of(tmp_path / "a.csv", drop=["id"])).tolist() == [[1, 2], [3, 4]]


# ---- HDF5, netCDF ----


def test_unsigned_numbers_and_valid_ranges_of_netcdf(tmp_path):
    bytes_ = np.arange(256, dtype=np.uint8).reshape(-1, 4)
    with h5py.File(tmp_path / "a.nc", "w") as file:
        data = file.create_dataset("v", data=bytes_.view(np.int8))
        data.attrs["_Unsigned"] = "true"
        data.attrs["_FillValue"] = np.int8(-1)  # 255
        data.attrs["valid_min"], data.attrs["scale_factor"] = np.int8(1), 0.5
    expected = np.where((bytes_ == 255) | (bytes_ < 1), np.nan, bytes_ * 0.5)
    source = source_of(tmp_path / "a.nc", missing="mean")
    filled = np.where(np.isnan(expected), np.nanmean(expected, axis=0), expected)
    np.testing.assert_allclose(values(source), filled)
    assert values(source_of(tmp_path / "a.nc", recognise=False)).min() == -128


def test_variables_that_describe_others_are_no_features(tmp_path, caplog):
    profile = xarray.Dataset({name: ("z", RNG.random(20)) for name in "ab"}).assign_coords(
        depth=("z", np.arange(20) * 50.0)
    )
    profile.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert source_of(tmp_path / "a.nc").names == ("a", "b")
    assert "depth" in caplog.text


def test_names_that_print_alike_stay_apart(tmp_path):
    masses = [1.5000001e6, 1.5000002e6, 1.5000003e6]
    xarray.Dataset({"a": (("n", "mz"), RNG.random((20, 3)))}, {"mz": masses}).to_netcdf(
        tmp_path / "a.nc", engine="h5netcdf"
    )
    assert source_of(tmp_path / "a.nc").names == tuple(map(str, masses))


def test_a_dimension_without_values_gives_no_names(tmp_path):
    xarray.Dataset({"a": (("n", "m"), RNG.random((20, 3)))}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert source_of(tmp_path / "a.nc").names is None


def test_a_block_before_hdf5_belongs_to_the_user(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=1024) as file:
        file["X"] = SPECTRA
    np.testing.assert_array_equal(values(source_of(tmp_path / "a.h5")), SPECTRA)


# ---- more than two dimensions ----

CUBE = RNG.random((6, 4, 5))


def as_file(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    if kind == "npy":
        np.save(path, CUBE)
    elif kind == "npz":
        np.savez(path, names=np.array(["x"]), cube=CUBE)
    elif kind == "mat":
        savemat(path, {"X": CUBE, "n": 3.0})
    else:
        with h5py.File(path, "w") as file:
            file["X"] = CUBE
    return path


@pytest.mark.parametrize("kind", ["npy", "npz", "mat", "h5"])
def test_a_dimension_counts_the_rows_and_the_others_are_features(tmp_path, kind):
    path = as_file(tmp_path, kind)
    with pytest.raises(InputError, match=r"6 × 4 × 5.*data.rows=0"):
        source_of(path)
    np.testing.assert_array_equal(values(source_of(path, rows=0)), CUBE.reshape(6, -1))
    np.testing.assert_array_equal(
        values(source_of(path, rows=[1, 2])), CUBE.transpose(1, 2, 0).reshape(20, 6)
    )
    for wrong in (3, "time", [0, 0], [0, 1, 2]):
        with pytest.raises(InputError, match=r"data.rows=0"):
            source_of(path, rows=wrong)


def test_maps_through_time_are_rows_without_the_cells_on_land(tmp_path, caplog):
    sst = xarray.DataArray(
        CUBE.copy(),
        dims=("time", "lat", "lon"),
        coords={
            "time": pd.date_range("2020", periods=6),
            "lat": [10.0, 20, 30, 40],
            "lon": [1.0, 2, 3, 4, 5],
        },
        name="sst",
    )
    sst[:, 1, 2] = np.nan
    sst.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    source = source_of(tmp_path / "a.nc", rows="time")
    assert source.p == 19 and source.names[:2] == ("lat=10 lon=1", "lat=10 lon=2")
    assert "lat=20 lon=3" not in source.names and "1 of 20 features" in caplog.text
    np.testing.assert_array_equal(values(source)[:, 0], CUBE[:, 0, 0])
    assert source.grid.names == ("lat", "lon") and source.grid.shape == (4, 5)
    np.testing.assert_array_equal(source.grid.coordinates[0], [10, 20, 30, 40])
    maps = source.grid.maps(values(source).T)
    np.testing.assert_array_equal(maps, np.asarray(sst))
    assert source_of(tmp_path / "a.nc", rows="time", columns=[3, 0]).grid.place.tolist() == [3, 0]
    # A file of the same cells in another order joins it by their names, and the grid is that of the first.
    sst[:, ::-1].to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    both = source_of([tmp_path / "a.nc", tmp_path / "b.nc"], rows="time")
    np.testing.assert_array_equal(both.grid.maps(values(both).T), np.concatenate([maps, maps]))


def test_a_table_of_two_dimensions_has_no_dimension_to_choose(tmp_path):
    for path in (tmp_path / "a.npy", tmp_path / "a.csv", tmp_path / "a.parquet"):
        if path.suffix == ".npy":
            np.save(path, SPECTRA)
        else:
            frame = pd.DataFrame(SPECTRA, columns=[f"c{i}" for i in range(40)])
            frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
        with pytest.raises(InputError, match=r"data.rows=0"):
            source_of(path, rows=0)


def test_files_that_contradict_each_other_are_not_joined(tmp_path):
    np.save(tmp_path / "a.npy", CUBE)
    np.save(tmp_path / "b.npy", CUBE.transpose(0, 2, 1))
    with pytest.raises(InputError, match="4 × 5"):
        source_of([tmp_path / "a.npy", tmp_path / "b.npy"], rows=0)
    (tmp_path / "a.csv").write_text("x,y\ncm,\n1,2\n3,4\n5,7\n")
    (tmp_path / "b.csv").write_text("x,y\nm,\n1,2\n3,4\n5,7\n")
    with pytest.raises(InputError, match=r"x in m.*x in cm"):
        source_of([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_labels_of_joined_tables_stay(tmp_path):
    for name in "ab":
        pd.DataFrame(SPECTRA[:5], index=[f"{name}{i}" for i in range(5)]).to_csv(tmp_path / f"{name}.csv")
    source = source_of([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert source.labels == [f"{name}{i}" for name in "ab" for i in range(5)]


# ---- annotated matrices ----


def group_of_names(group, names, kind="string"):
    group.attrs["_index"] = "_index"
    if kind == "string":
        group["_index"] = names
    elif kind == "nullable":
        group["_index/values"], group["_index/mask"] = names, np.zeros(len(names), bool)
    else:
        group["_index/categories"], group["_index/codes"] = names[::-1], np.arange(len(names))[::-1]


@pytest.mark.parametrize("kind", ["string", "nullable", "categorical"])
def test_every_array_of_an_h5ad_file_has_its_own_names(tmp_path, kind):
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file.attrs["encoding-type"] = "anndata"
        for place, width in (("X", 4), ("layers/counts", 4), ("raw/X", 6), ("obsm/X_pca", 4)):
            file[place] = RNG.random((20, width))
        group_of_names(file.create_group("var"), list("abcd"), kind)
        group_of_names(file.create_group("raw/var"), list("uvwxyz"), kind)
        group_of_names(file.create_group("obs"), [f"cell{i}" for i in range(20)], kind)
    path = tmp_path / "a.h5ad"
    assert source_of(path).names == source_of(path, dataset="layers/counts").names == tuple("abcd")
    assert source_of(path, dataset="raw/X").names == tuple("uvwxyz")
    assert source_of(path, dataset="obsm/X_pca").names is None
    assert list(source_of(path).labels[:2]) == ["cell0", "cell1"]


def test_counts_of_10x_are_cells_by_genes(tmp_path):
    counts = sparse.random(20, 8, 0.4, format="csr", random_state=0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(counts, name)
        group["shape"], group["barcodes"] = np.array([8, 20]), [f"c{i}" for i in range(20)]
        group["features/name"], group["features/id"] = ["g"] * 8, list(string.ascii_uppercase[:8])
    source = source_of(tmp_path / "a.h5")
    np.testing.assert_allclose(values(source), counts.toarray())
    assert source.names == tuple("ABCDEFGH") and source.labels[0] == "c0"


def test_labels_in_a_cell_of_matlab_name_the_channels(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["X"], file["rate"] = CUBE[0, :3], np.array([[250.0]])
        for name in ("X", "rate"):
            file[name].attrs["MATLAB_class"] = b"double"
        cell = file.create_dataset("labels", (3, 1), dtype=h5py.ref_dtype)
        cell.attrs["MATLAB_class"] = b"cell"
        for i, word in enumerate(["Fp1", "Ōz", "C4"]):
            part = file.create_dataset(f"#refs#/{i}", data=np.array([[ord(c)] for c in word], np.uint16))
            part.attrs["MATLAB_class"], cell[i, 0] = b"char", part.ref
    content = bytearray((tmp_path / "a.mat").read_bytes())
    content[:19] = b"MATLAB 7.3 MAT-file"
    (tmp_path / "a.mat").write_bytes(content)
    source = source_of(tmp_path / "a.mat", transpose=True)
    assert source.names == ("Fp1", "Ōz", "C4")
    np.testing.assert_array_equal(values(source), CUBE[0, :3].T)


# ---- columns of lists, folders of parts ----


def test_a_column_of_lists_is_a_matrix(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    E = RNG.random((40, 6)).astype(np.float32)
    fixed = arrow.FixedSizeListArray.from_arrays(E.ravel(), 6)
    columns = {"label": [0, 1] * 20, "embedding": list(E)}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    parquet.write_table(arrow.table({"e": fixed}), tmp_path / "fixed.parquet")
    parquet.write_table(arrow.table({"e": [[1.0, 2.0], [3.0]] * 5}), tmp_path / "ragged.parquet")
    with pytest.raises(InputError, match=r"data.columns=embedding"):
        source_of(tmp_path / "a.parquet")
    np.testing.assert_array_equal(values(source_of(tmp_path / "a.parquet", columns=["embedding"])), E)
    np.testing.assert_array_equal(values(source_of(tmp_path / "fixed.parquet")), E)
    with pytest.raises(InputError, match="different lengths"):
        source_of(tmp_path / "ragged.parquet")
    facts, _ = describe(tmp_path / "a.parquet")
    assert facts["features"] == 6 and "data.columns=embedding" in facts["command"]


def test_parts_in_folders_named_by_a_value(tmp_path):
    pytest.importorskip("pyarrow")
    for year in (2020, 2021):
        (tmp_path / f"year={year}").mkdir()
        pd.DataFrame(SPECTRA[:5, :2] + year, columns=["a", "b"]).to_parquet(
            tmp_path / f"year={year}/part.parquet"
        )
    np.testing.assert_array_equal(values(source_of(tmp_path))[::5, 0], SPECTRA[0, 0] + [2020, 2021])
    assert describe(tmp_path)[0]["samples"] == 10


# ---- TIFF, recordings ----


def test_a_tiff_of_bands_is_read_by_its_pixels_and_no_data_are_no_brightness(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    bands = RNG.random((8, 9, 6)).astype(np.float32)
    tifffile.imwrite(tmp_path / "a.tif", bands, photometric="minisblack", planarconfig="contig")
    np.testing.assert_array_equal(values(source_of(tmp_path / "a.tif", rows=[0, 1])), bands.reshape(72, 6))
    with pytest.raises(InputError, match="data=array"):
        source_of(tmp_path / "a.tif", name="images")
    height = RNG.random((40, 50)).astype(np.float32)
    height[3, 4:9] = -9999
    tifffile.imwrite(tmp_path / "b.tif", height, extratags=[(42113, "s", 0, "-9999", True)])
    with pytest.raises(InputError, match="5 of 2000 pixels"):
        source_of(tmp_path / "b.tif", name="images")
    assert source_of(tmp_path / "b.tif", name="images", recognise=False).n == 2000
    assert values(source_of(tmp_path / "b.tif", missing="mean")).min() >= 0


@pytest.fixture
def recording(tmp_path):
    mne = pytest.importorskip("mne")
    info = mne.create_info(["Fp1", "Fp2", "Cz", "STI"], 250.0, ["eeg"] * 3 + ["stim"])
    raw = mne.io.RawArray(RNG.standard_normal((4, 1000)) * 1e-5, info, verbose="ERROR")
    raw.info["bads"] = ["Fp2"]
    raw.set_annotations(mne.Annotations([1.0], [0.5], ["BAD_movement"]))
    raw.save(tmp_path / "a_raw.fif", verbose="ERROR")
    return tmp_path / "a_raw.fif", raw


def test_a_recording_keeps_its_channels_and_leaves_out_what_is_bad(recording, caplog):
    path, raw = recording
    source = source_of(path)
    assert source.names == ("Fp1", "Cz") and source.sample_rate == 250
    expected = raw.get_data(["Fp1", "Cz"], reject_by_annotation="omit").T
    np.testing.assert_allclose(values(source), expected, rtol=1e-6)
    assert (
        len(read_matrix(path, DataConfig(name="array", path=str(path))).pieces) == 1
    )  # windows never join over the gap
    assert "Fp2" in caplog.text and "0.5 of 4.0 s" in caplog.text
    assert source_of(path, recognise=False).names == ("Fp1", "Fp2", "Cz")
    other = path.with_name("b_raw.fif")
    raw.save(other, verbose="ERROR")
    assert source_of([path, other]).sample_rate == 250
    raw.copy().resample(125, verbose="ERROR").save(other, overwrite=True, verbose="ERROR")
    with pytest.raises(InputError, match=r"125 samples a second.*250"):
        source_of([path, other])


# ---- what other programs write besides ----


def test_structures_of_matlab_have_their_fields(tmp_path):
    names = np.array(["Fz", "Cz", "Oz"], dtype=object)
    X = RNG.laplace(size=(20, 3))
    savemat(tmp_path / "a.mat", {"data": {"trial": {"X": X}, "label": names, "fsample": 250.0}})
    found = source_of(tmp_path / "a.mat")
    np.testing.assert_array_equal(values(found), X)
    assert found.names == ("Fz", "Cz", "Oz")
    np.testing.assert_array_equal(values(source_of(tmp_path / "a.mat", key="data.trial.X")), X)
    savemat(tmp_path / "b.mat", {"data": {"X": X, "Y": X}})
    with pytest.raises(InputError, match=r"data\.X, data\.Y"):
        source_of(tmp_path / "b.mat")


@pytest.mark.parametrize("form", [sparse.coo_matrix, np.asarray], ids=["coordinates", "array"])
def test_matrix_market_is_a_matrix_and_no_table_of_places(tmp_path, form):
    X = sparse.random(30, 4, 0.4, random_state=0).toarray()
    mmwrite(tmp_path / "x.mtx", form(X))
    np.testing.assert_allclose(values(source_of(tmp_path / "x.mtx")), X, rtol=1e-12)
    if form is sparse.coo_matrix:
        mmwrite(tmp_path / "s.mtx", form(X.T @ X), symmetry="symmetric")
        np.testing.assert_allclose(values(source_of(tmp_path / "s.mtx")), X.T @ X, rtol=1e-12)
        mmwrite(tmp_path / "p.mtx", form(X), field="pattern")
        np.testing.assert_array_equal(values(source_of(tmp_path / "p.mtx")), X > 0)
        (tmp_path / "bad.mtx").write_text((tmp_path / "x.mtx").read_text().replace("\n2 ", "\n200000 ", 1))
        with pytest.raises(InputError, match="damaged"):
            source_of(tmp_path / "bad.mtx")
    text = (tmp_path / "x.mtx").read_text().splitlines()
    shape = next(i for i, line in enumerate(text) if not line.startswith("%"))
    text[shape] = "1000000000 4 900000000" if form is sparse.coo_matrix else "1000000000 400"
    (tmp_path / "x.mtx").write_text("\n".join(text))
    with pytest.raises(InputError, match="claims"):
        source_of(tmp_path / "x.mtx")


@pytest.mark.parametrize("kind", ["NETCDF3_64BIT", "NETCDF3_CLASSIC"])
def test_netcdf_3_is_what_netcdf_4_is(tmp_path, kind):
    cells = RNG.normal(10, 2, (24, 2, 3))
    cells[:, 1, 1] = np.nan
    maps = xarray.DataArray(
        cells, dims=("time", "lat", "lon"), coords={"lat": [10.0, 20], "lon": [0.0, 5, 10]}, name="t"
    )
    packing = {"t": {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -9999}}
    maps.to_netcdf(tmp_path / "3.nc", engine="scipy", format=kind, encoding=packing)
    maps.to_netcdf(tmp_path / "4.nc", engine="h5netcdf", encoding=packing)
    found, same = (source_of(tmp_path / name, rows="time") for name in ("3.nc", "4.nc"))
    np.testing.assert_allclose(values(found), values(same), atol=1e-5)  # xarray decodes int16 to float32
    assert found.names == same.names and found.p == 5 and found.grid.equals(same.grid)
    content = (tmp_path / "3.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="damaged"):
        source_of(tmp_path / "cut.nc", rows="time")


FOREIGN = {
    "a.json": (b'{"a": [1, 2]}', "JSON"),
    "lines.json": (b'{"a": 1}\n{"a": 2}\n', "JSON"),
    "rows.json": (b'[{"a": 1}, {"a": 2}]', "JSON"),
    "a.pkl": (pickle.dumps(SPECTRA), "pickled"),
    "a.csv.gz": (b"\x1f\x8b\x08\x00", "gunzip"),
    "a.xls": (b"\xd0\xcf\x11\xe0" + bytes(600), "old spreadsheet"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_formats_that_are_no_tables_are_called_by_their_names(tmp_path, name):
    content, word = FOREIGN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=word):
        source_of(tmp_path / name)


def test_a_spreadsheet_is_no_archive_of_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(InputError, match="is a spreadsheet: save the sheet as CSV"):
        source_of(tmp_path / "a.xlsx")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_dates_of_any_time_zone_count_the_rows(tmp_path, kind, zone):
    times = pd.date_range("2021-03-27", periods=48, freq="h", tz=zone)  # an hour of Berlin is missing
    table = pd.DataFrame({"time": times, "a": RNG.random(48), "b": RNG.random(48)})
    table = pd.concat([table.iloc[:20], table.iloc[40:]])
    path = tmp_path / f"x.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, index=False)
    found = source_of(path, drop=["time"])
    assert found.timed and list(found.pieces) == [20]


def test_lines_above_a_table_are_named(tmp_path):
    table = pd.DataFrame(SPECTRA[:, :5], columns=list("abcde")).to_csv(index=False)
    (tmp_path / "a.csv").write_text("Instrument: ACME 3000\nOperator: N.N.\n\n" + table)
    with pytest.raises(InputError, match="begins below 2 other lines"):
        source_of(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("# Instrument: ACME 3000\n# Operator: N.N.\n\n" + table)
    assert source_of(tmp_path / "a.csv").names == tuple("abcde")


def test_the_index_of_two_levels_is_no_measurement(tmp_path):
    index = pd.MultiIndex.from_product([range(15), range(6)], names=["subj", "trial"])
    table = pd.DataFrame(RNG.laplace(size=(90, 4)), index=index, columns=list("abcd"))
    table["age"] = np.sort(RNG.integers(18, 90, 90))  # sorted by a measurement
    table.to_csv(tmp_path / "a.csv")
    _, command = describe(tmp_path / "a.csv")
    assert "data.drop=trial data.subject=subj" in command.text


@pytest.mark.parametrize("form", ["fortran", "truth"])
def test_rows_without_a_header_may_have_any_form_of_number(tmp_path, form):
    X = (
        np.round(RNG.normal(size=(12, 8)), 3)
        if form == "fortran"
        else (RNG.random((12, 8)) > 0.5).astype(float)
    )
    words = [[f"{v:.4E}".replace("E", "D") if form == "fortran" else str(bool(v)) for v in row] for row in X]
    (tmp_path / "x.txt").write_text("\n".join(" ".join(row) for row in words))
    np.testing.assert_allclose(values(source_of(tmp_path / "x.txt")), X)


def test_a_minus_has_several_forms(tmp_path):
    X = np.round(RNG.normal(size=(12, 3)), 2)
    for name, form in (("sign", "−{:.2f}"), ("parentheses", "({:.2f})")):
        words = [[form.format(-v) if v < 0 else f"{v:.2f}" for v in row] for row in X]
        (tmp_path / f"{name}.csv").write_text("a,b,c\n" + "\n".join(",".join(row) for row in words))
    np.testing.assert_array_equal(values(source_of(tmp_path / "sign.csv")), X)
    with pytest.raises(InputError, match="a minus instead of parentheses"):
        source_of(tmp_path / "parentheses.csv")


@pytest.mark.parametrize("kind", ["nc", "3.nc", "zarr"])
def test_bounds_of_a_coordinate_are_not_the_data(tmp_path, kind):
    pytest.importorskip("zarr")
    cells = RNG.normal(size=(24, 2, 3))
    data = xarray.Dataset({"t": (("time", "lat", "lon"), cells), "crs": 0}, {"time": np.arange(24.0)})
    data["time_bnds"] = (("time", "bnds"), np.arange(48.0).reshape(24, 2))
    data.time.attrs["bounds"], data.t.attrs["grid_mapping"] = "time_bnds", "crs"
    path = tmp_path / f"x.{kind}"
    if kind == "zarr":
        data.to_zarr(path)
    else:
        data.to_netcdf(path, **({"engine": "h5netcdf"} if kind == "nc" else {"engine": "scipy"}))
    np.testing.assert_allclose(values(source_of(path, rows="time")), cells.reshape(24, 6))
    assert source_of(path, dataset="time_bnds").p == 2


def test_a_column_without_a_name_is_left_out_by_its_number(tmp_path):
    rows = np.column_stack([np.arange(80) * 0.1, RNG.laplace(size=(80, 3))])
    np.savetxt(tmp_path / "x.txt", rows)
    _, command = describe(tmp_path / "x.txt")
    assert "data.drop=0" in command.text
    text = "\n".join(f"{'ab'[i % 2]},{','.join(map(str, row))}" for i, row in enumerate(rows))
    (tmp_path / "y.csv").write_text(text)
    _, command = describe(tmp_path / "y.csv")
    assert "data.drop=[0,1]" in command.text


def test_a_questionnaire_of_two_answers_has_fewer_factors_than_items(tmp_path):
    agreed = RNG.normal(size=(90, 1))
    np.save(tmp_path / "x.npy", agreed + RNG.normal(size=(90, 5)) > 0)
    _, command = describe(tmp_path / "x.npy")
    assert "model=factor_analysis" in command.text and command.k < 5


def test_epochs_stand_one_after_the_other_each_a_piece_of_its_own(recording):
    mne = pytest.importorskip("mne")
    path, raw = recording
    whole = raw.copy().set_annotations(None)
    epochs = mne.make_fixed_length_epochs(whole, 0.5, preload=True, verbose="ERROR")
    epochs.save(path.with_name("a-epo.fif"), verbose="ERROR")
    source = source_of(path.with_name("a-epo.fif"))
    expected = epochs.get_data(["Fp1", "Cz"])
    count, _, times = expected.shape
    assert source.names == ("Fp1", "Cz") and source.n == count * times
    assert source.pieces == tuple(range(times, count * times, times))
    found = values(source).reshape(count, times, 2).transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-12)

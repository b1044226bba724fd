"""Zarr stores: what xarray and zarr write is read, and nothing in a stranger's store runs code or takes the memory."""

import gzip
import json
import pickle
import sys

import numpy as np
import pytest

xarray = pytest.importorskip("xarray", reason="skipped: xarray is not installed")
zarr = pytest.importorskip("zarr", reason="skipped: zarr is not installed")
numcodecs = pytest.importorskip("numcodecs", reason="skipped: numcodecs is not installed")

from array_sources import source_of, values  # noqa: E402

from sigmapca_cli.data.describe.describe import describe  # noqa: E402
from sigmapca_cli.system.errors import InputError  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(0)
X = RNG.laplace(size=(60, 4)).astype(np.float32)


def maps():
    """A field on land and sea, packed as climate centres pack it."""
    cells = np.round(RNG.normal(10, 2, (40, 3, 5)), 1)
    cells[:, 0, 0] = np.nan
    coordinates = {
        "time": np.arange("2000-01", "2003-05", dtype="M8[M]").astype("M8[ns]"),
        "lat": [10.0, 20, 30],
    }
    return xarray.Dataset(
        {"t": (("time", "lat", "lon"), cells, {"units": "K"})}, {**coordinates, "lon": np.arange(5) * 2.5}
    )


@pytest.mark.parametrize("version", [2, 3])
def test_a_field_in_zarr_is_the_field_in_netcdf(tmp_path, version):
    packing = {"t": {"dtype": "int16", "scale_factor": 0.1, "_FillValue": -9999}}
    field = maps()
    field.to_zarr(tmp_path / "t.zarr", zarr_format=version, encoding=packing)
    field.to_netcdf(tmp_path / "t.nc", engine="h5netcdf", encoding=packing)
    found, same = (source_of(tmp_path / name, rows="time") for name in ("t.zarr", "t.nc"))
    np.testing.assert_allclose(values(found), values(same), atol=1e-12)
    assert found.names == same.names and "lat=10 lon=2.5" in found.names and found.p == 14
    assert found.grid.equals(same.grid)
    _, command = describe(tmp_path / "t.zarr")
    assert "data.rows=0" in command.text and found.n == 40


@pytest.mark.parametrize("version", [2, 3])
def test_names_and_tables_of_xarray(tmp_path, version):
    names = xarray.DataArray(X, dims=("sample", "channel"), coords={"channel": list("aböd")}, name="x")
    names.to_dataset().to_zarr(tmp_path / "names.zarr", zarr_format=version)
    found = source_of(tmp_path / "names.zarr")
    np.testing.assert_array_equal(values(found), X)
    assert found.names == ("a", "b", "ö", "d")
    columns = xarray.Dataset({name: ("row", X[:, i]) for i, name in enumerate("wxyz")})[list("zxyw")]
    columns.to_zarr(tmp_path / "columns.zarr", zarr_format=version)
    found = source_of(tmp_path / "columns.zarr", drop=["x"])
    np.testing.assert_array_equal(values(found), X[:, [0, 2, 3]])
    assert found.names == ("w", "y", "z")


CODECS = {
    2: [None, numcodecs.Zstd(), numcodecs.GZip(), numcodecs.Zlib(), numcodecs.LZ4(), numcodecs.Blosc()],
    3: [None, zarr.codecs.ZstdCodec(checksum=True), zarr.codecs.GzipCodec(), zarr.codecs.BloscCodec(),
        [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]],
}  # fmt: skip


@pytest.mark.parametrize("version", [2, 3])
def test_plain_arrays_by_every_codec(tmp_path, version):
    for number, codec in enumerate(CODECS[version]):
        place = tmp_path / f"{number}.zarr"
        zarr.create_array(place, data=X, chunks=(7, 3), compressors=codec, zarr_format=version)
        np.testing.assert_array_equal(values(source_of(place)), X)
    group = zarr.open_group(tmp_path / "group.zarr", mode="w", zarr_format=version)
    group.create_array("a/x", data=X)
    group.create_array("b/y", data=X[:, :2])
    np.testing.assert_array_equal(values(source_of(tmp_path / "group.zarr", dataset="b/y")), X[:, :2])
    with pytest.raises(InputError, match="a/x, b/y"):
        source_of(tmp_path / "group.zarr")


def refused(path, **options):
    """The one line that a store is refused with."""
    with pytest.raises(InputError) as caught:
        source_of(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Trap:
    """Creates a file where it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return open, (self.place, "w")


def test_a_pickle_in_a_store_is_never_loaded(tmp_path):
    place, mark = tmp_path / "trap.zarr", tmp_path / "mark"
    zarr.create_array(place, data=X, chunks=X.shape, compressors=None, zarr_format=2)
    said = json.loads((place / ".zarray").read_text())
    (place / "0.0").write_bytes(pickle.dumps(Trap(str(mark))))
    for change in (
        {"filters": [{"id": "pickle", "protocol": 5}], "dtype": "|O", "fill_value": None},
        {"compressor": {"id": "pickle"}},
        {"filters": [{"id": "msgpack2"}]},
        {"filters": [{"id": "vlen-utf8"}, {"id": "pickle"}], "dtype": "|O", "fill_value": None},
    ):
        (place / ".zarray").write_text(json.dumps(said | change))
        assert "codec" in refused(place)
    three = tmp_path / "three.zarr"
    zarr.create_array(three, data=X, chunks=X.shape, compressors=None)
    said = json.loads((three / "zarr.json").read_text())
    for name in ("numcodecs.pickle", "pickle", "sharding_indexed"):
        said["codecs"] = [{"name": name, "configuration": {}}]
        (three / "zarr.json").write_text(json.dumps(said))
        assert name.removeprefix("numcodecs.") in refused(three)
    assert not mark.exists()


def test_metadata_beside_those_that_were_checked_are_not_used(tmp_path):
    place = tmp_path / "two.zarr"
    xarray.DataArray(X, dims=("n", "p"), name="x").to_dataset().to_zarr(
        place, zarr_format=2, consolidated=True
    )
    said = json.loads((place / ".zmetadata").read_text())
    said["metadata"]["x/.zarray"]["filters"] = [{"id": "pickle"}]
    (place / ".zmetadata").write_text(json.dumps(said))
    np.testing.assert_array_equal(values(source_of(place)), X)


def test_a_chunk_is_no_link(tmp_path):
    place = tmp_path / "link.zarr"
    zarr.create_array(place, data=X, chunks=X.shape, compressors=None)
    secret = tmp_path / "secret"
    secret.write_bytes(X.tobytes())
    (place / "c/0/0").unlink()
    (place / "c/0/0").symlink_to(secret)
    assert "symbolic link" in refused(place)
    group = tmp_path / "group.zarr"
    zarr.open_group(group, mode="w").create_array("x", data=X)
    (group / "other").symlink_to(place)
    assert "symbolic link" in refused(group)


def frames(content, count):
    """Frames of Zstandard one behind the other."""
    return numcodecs.Zstd().encode(content) * count


ZEROS = bytes(8 << 20)
BOMBS = {
    "gzip": (numcodecs.GZip(), gzip.compress(ZEROS)),
    "gzip in parts": (numcodecs.GZip(), gzip.compress(bytes(1000)) * 4000),
    "zlib": (numcodecs.Zlib(), numcodecs.Zlib().encode(ZEROS)),
    "zstd": (numcodecs.Zstd(), frames(ZEROS, 1)),
    "zstd in parts": (numcodecs.Zstd(), frames(bytes(100_000), 40)),
    "lz4": (numcodecs.LZ4(), numcodecs.LZ4().encode(ZEROS)),
    "blosc": (numcodecs.Blosc(), numcodecs.Blosc().encode(ZEROS)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_chunk_unfolds_to_no_more_than_its_place(tmp_path, name):
    codec, content = BOMBS[name]
    place = tmp_path / "bomb.zarr"
    zarr.create_array(place, data=X, chunks=X.shape, compressors=codec, zarr_format=2)
    (place / "0.0").write_bytes(content)
    assert "unfolds to more" in refused(place)


def test_a_store_holds_what_it_claims(tmp_path):
    place = tmp_path / "empty.zarr"
    zarr.create_array(place, shape=(10**7, 10**4), chunks=(1000, 1000), dtype="f8", compressors=None)
    assert "claims 800.0 GB" in refused(place)
    (place / "zarr.json").write_text("[" * 100)
    assert "damaged" in refused(place)


def test_missing_packages_are_named(tmp_path, monkeypatch):
    zarr.create_array(tmp_path / "x.zarr", data=X)
    monkeypatch.setitem(sys.modules, "zarr", None)
    assert refused(tmp_path / "x.zarr").endswith("pip install zarr xarray")

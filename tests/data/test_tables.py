"""What a table says about itself: names, index columns, headers, decimal signs, encodings, fill values."""

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray
from array_sources import source_of, values
from scipy.io import savemat

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.matrix import arrays, in_rows
from sigmapca_cli.data.on_disk import row_file
from sigmapca_cli.data.readers import text as text_reader
from sigmapca_cli.data.readers.text_fields import is_number, number
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(30, 3)) * [1, 2, 5], columns=["height", "weight", "age (years)"])
IRIS = pd.DataFrame(
    {"width": [1.5, 2.5, 3.0, 1.0, 2.0], "kind": list("abcab"), "length": [2.0, 1.0, 4.0, 3.0, 5.0]}
)


def same(source, frame):
    """The source holds the frame: its columns by name, its numbers in order."""
    assert list(source.names) == list(map(str, frame.columns))
    np.testing.assert_allclose(values(source), frame.to_numpy(float), rtol=1e-6)


FILTERED = FRAME[FRAME.height > 0]
NUMBERED = FRAME.set_axis(range(3), axis=1)
AS_PANDAS_WRITES = {
    "index.csv": (lambda p: FRAME.to_csv(p), FRAME),
    "filtered.csv": (lambda p: FILTERED.to_csv(p), FILTERED),
    "shuffled.csv": (
        lambda p: FRAME.sample(frac=1, random_state=0).to_csv(p),
        FRAME.sample(frac=1, random_state=0),
    ),
    "dates.csv": (lambda p: FRAME.set_index(pd.date_range("2020", periods=30)).to_csv(p), FRAME),
    "twice.csv": (lambda p: FRAME.rename_axis("Unnamed: 0").reset_index().to_csv(p), FRAME),
    "named.csv": (lambda p: FRAME.rename_axis("id").to_csv(p), FRAME),
    "plain.csv": (lambda p: FRAME.to_csv(p, index=False), FRAME),
    "tab.tsv": (lambda p: FRAME.to_csv(p, index=False, sep="\t"), FRAME),
    "continental.csv": (lambda p: FRAME.to_csv(p, index=False, sep=";", decimal=","), FRAME),
    "tab_comma.tsv": (lambda p: FRAME.to_csv(p, index=False, sep="\t", decimal=","), FRAME),
    "bar.csv": (lambda p: FRAME.to_csv(p, index=False, sep="|"), FRAME),
    "utf16.csv": (lambda p: FRAME.to_csv(p, index=False, encoding="utf-16"), FRAME),
    "utf16le.csv": (lambda p: FRAME.to_csv(p, index=False, encoding="utf-16-le"), FRAME),
    "bom.csv": (lambda p: FRAME.to_csv(p, index=False, encoding="utf-8-sig"), FRAME),
    "numbers.csv": (lambda p: NUMBERED.to_csv(p, index=False), NUMBERED),
    "both.csv": (lambda p: NUMBERED.to_csv(p), NUMBERED),
    "waves.csv": (
        lambda p: FRAME.set_axis([400, 450, 500], axis=1).to_csv(p, index=False),
        FRAME.set_axis([400, 450, 500], axis=1),
    ),
    "a.parquet": (lambda p: FRAME.to_parquet(p), FRAME),
    "filtered.parquet": (lambda p: FILTERED.to_parquet(p), FILTERED),
    "named.parquet": (lambda p: FRAME.rename_axis("height_id").to_parquet(p), FRAME),
    "a.feather": (lambda p: FRAME.to_feather(p), FRAME),
    "records.npy": (lambda p: np.save(p, FRAME.to_records()), FRAME),
    "frame.nc": (lambda p: FRAME.to_xarray().to_netcdf(p, engine="h5netcdf"), FRAME),
    "named.npz": (lambda p: np.savez(p, x=FRAME.to_numpy(), names=np.array(FRAME.columns, dtype=str)), FRAME),
    "named.mat": (
        lambda p: savemat(
            p, {"x": FRAME.to_numpy(), "n": 30, "names": np.array(list(FRAME.columns), object)}
        ),
        FRAME,
    ),
}


@pytest.mark.parametrize("name", AS_PANDAS_WRITES)
def test_a_frame_comes_back_with_its_names_and_without_its_index(tmp_path, name):
    write, frame = AS_PANDAS_WRITES[name]
    write(tmp_path / name)
    same(source_of(tmp_path / name), frame)


@pytest.mark.parametrize(
    "name", ["index.csv", "filtered.csv", "filtered.parquet", "numbers.csv", "named.csv"]
)
def test_what_was_recognised_is_said_and_can_be_refused(tmp_path, name, caplog):
    write, frame = AS_PANDAS_WRITES[name]
    write(tmp_path / name)
    source = source_of(tmp_path / name)
    assert "data.recognise=false reads it" in caplog.text or "data.header=no reads it" in caplog.text
    caplog.clear()
    as_it_lies = source_of(tmp_path / name, recognise=False)
    assert (as_it_lies.n, as_it_lies.p) != (source.n, source.p) and not caplog.text
    assert as_it_lies.n * as_it_lies.p > frame.size


def test_rows_of_counts_are_no_header(tmp_path):
    """0 1 2 on top of 3 4 5 is the first of many such rows, and 5 7 9 lies among its column."""
    np.savetxt(tmp_path / "a.csv", np.arange(12).reshape(4, 3), fmt="%d", delimiter=",")
    assert source_of(tmp_path / "a.csv").n == 4
    counts = np.vstack([[5, 7, 9], RNG.integers(0, 12, (20, 3))])
    np.savetxt(tmp_path / "b.csv", counts, fmt="%d", delimiter=",")
    assert source_of(tmp_path / "b.csv").n == 21
    FRAME.set_axis(range(3), axis=1).to_csv(tmp_path / "c.csv", index=False)
    assert source_of(tmp_path / "c.csv", header="no").n == 31


def test_a_first_column_that_counts_from_0_without_a_name(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", header=False)
    assert source_of(tmp_path / "a.csv").p == 3
    swapped = FRAME.reset_index()[["height", "index", "weight"]]
    swapped.to_csv(tmp_path / "b.csv", header=False, index=False)
    assert source_of(tmp_path / "b.csv").p == 3  # another column may count: it is somebody's time


def test_columns_are_chosen_and_dropped_by_name(tmp_path):
    IRIS.to_csv(tmp_path / "a.csv", index=False)
    IRIS.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        path = tmp_path / name
        same(source_of(path, drop="kind"), IRIS[["width", "length"]])
        same(source_of(path, columns=["length", "width"]), IRIS[["length", "width"]])
        same(source_of(path, columns="length"), IRIS[["length"]])
        same(source_of(path, columns=[2, 0]), IRIS[["length", "width"]])
        with pytest.raises(
            InputError, match=r"no column 'lenght': did you mean 'length'\? it has width, kind, length"
        ):
            source_of(path, columns="lenght")
        with pytest.raises(InputError, match="no column remains"):
            source_of(path, drop=["width", "kind", "length"])
    np.save(tmp_path / "a.npy", IRIS[["width", "length"]].to_numpy())
    np.testing.assert_array_equal(values(source_of(tmp_path / "a.npy", drop=[0])), IRIS[["length"]])
    with pytest.raises(InputError, match=r"a\.npy have no names; give numbers"):
        source_of(tmp_path / "a.npy", columns="width")
    with pytest.raises(InputError, match=r"has columns 0 to 1"):
        source_of(tmp_path / "a.npy", columns=[2])


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.feather"])
def test_words_dates_and_ids_are_refused_by_name_with_the_key(tmp_path, name):
    frame = IRIS.assign(day=pd.date_range("2020-01-01", periods=5), code=[f"A{i}" for i in range(5)])
    getattr(frame, {"a.csv": "to_csv", "a.parquet": "to_parquet", "a.feather": "to_feather"}[name])(
        tmp_path / name, **({"index": False} if name == "a.csv" else {})
    )
    with pytest.raises(InputError) as refused:
        source_of(tmp_path / name)
    text = str(refused.value)
    assert "day is dates" in text and "data.drop=[" in text and "\n" not in text
    assert all(word in text for word in ("kind", "code"))
    key = text.split("leave them out with ")[1].strip("'")
    names = key.removeprefix("data.drop=[").removesuffix("]").split(",")
    same(source_of(tmp_path / name, drop=names), IRIS[["width", "length"]])


def test_a_headerless_label_column_does_not_make_the_first_row_a_header(tmp_path):
    (tmp_path / "a.csv").write_text("5.1,3.5,setosa\n4.9,3.0,setosa\n6.1,2.8,virginica\n")
    with pytest.raises(InputError, match=r"column number 2 \(counted from 0\) is text .* data\.drop=2"):
        source_of(tmp_path / "a.csv")
    assert source_of(tmp_path / "a.csv", drop=2).n == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a,b\n"1,234.5",1\n"2,001.0",2\n', "line 2, column 1 .* without thousands separators"),
        ("a;b\n1.234,5;1\n2.001,0;2\n", "without thousands separators"),
        ("a;b\n1,234;1\n2,001;2\n", "'1,234' may be a decimal comma or a thousands separator"),
        ('a,b\n"1,5",1.0\n"2,5",2.0\n', "if the comma is a decimal sign, add data.decimal=comma"),
        ("a,b\n1,2\n\n3,4\n5,x\n", r"line 5, column 2 \(b\): 'x' is not a number"),
        ('a,b\n1,2\n"3\n",4\n5,y\n', r"line 5, column 2"),
        ("a,b\n1,2\n3,\n5,6\n", "a missing value, on line 3, in column 'b': .* data.missing=drop"),
        ("1,2\n1,nan\n3,4\n", "NaN, a missing value, on line 2, in column 2"),
        ("\n\n", "is empty"),
        ("a,b\n", r"a header \(a, b\) and no rows"),
        ("1,2\n", "1 sample"),
        ("a,b\n1,2\n3,4,5\n6,7\n", "line 3: 3 fields, but the lines before have 2"),
        ("a,b,c\n1,2\n3,4\n", "3 names in the first line, but 2 fields in the lines below"),
        ("a,b\nu,v\nw,x\n", "no column holds numbers"),
        ("a,b\n12 kg,1\n13 g,2\n", "column a is numbers with a unit or currency"),
        ("a,b\n12%,1\n13,2\n", r"line 2, column 1 \(a\): '12%' is not a number"),
    ],
)
def test_the_cause_of_a_refusal_is_named(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        source_of(tmp_path / "a.csv")
    assert "\n" not in str(refused.value)


def test_keys_for_decimal_delimiter_and_encoding(tmp_path):
    (tmp_path / "a.csv").write_text('a,b\n"1,5",1\n"2,5",3\n')
    np.testing.assert_array_equal(
        values(source_of(tmp_path / "a.csv", decimal="comma")), [[1.5, 1], [2.5, 3]]
    )
    (tmp_path / "b.csv").write_text("a:b\n1:2\n3:5\n")
    same(source_of(tmp_path / "b.csv", delimiter=":"), pd.DataFrame({"a": [1, 3], "b": [2, 5]}))
    (tmp_path / "c.csv").write_text("a;b\n1,234;1\n2,001;2\n")
    assert values(source_of(tmp_path / "c.csv", decimal="comma"))[0, 0] == 1.234
    (tmp_path / "d.csv").write_bytes("Größe,b\n1,2\n3,5\n".encode("cp850"))
    assert source_of(tmp_path / "d.csv", encoding="cp850").names[0] == "Größe"
    with pytest.raises(InputError, match=r"data\.encoding=utf8x: no such encoding"):
        DataConfig(encoding="utf8x")
    with pytest.raises(InputError, match=r"data\.delimiter=ab: give one character"):
        DataConfig(delimiter="ab")
    with pytest.raises(InputError, match=r"d\.csv is not utf-8 text: give its encoding"):
        source_of(tmp_path / "d.csv", encoding="utf-8")


def test_latin_letters_are_read_and_said(tmp_path, caplog):
    (tmp_path / "a.csv").write_bytes("Größe,Länge\n1,2\n3,5\n".encode("latin-1"))
    assert source_of(tmp_path / "a.csv").names == ("Größe", "Länge")
    assert "is not UTF-8: it is read as Windows-1252" in caplog.text


def test_row_names_as_r_writes_them_and_comments_as_numpy_does(tmp_path):
    (tmp_path / "a.txt").write_text('"x 1" "y"\n"1" 2.5 3\n"2" 4 5.5\n"3" 1 2\n')
    source = source_of(tmp_path / "a.txt")
    assert source.names == ("x 1", "y") and source.labels == ["1", "2", "3"]
    np.savetxt(tmp_path / "b.txt", FRAME.to_numpy(), header="height weight age")
    assert source_of(tmp_path / "b.txt").names == ("height", "weight", "age")
    assert source_of(tmp_path / "b.txt").n == 30


WAVENUMBERS = [3999.6, 3500.2, 3000.1, 2500.9, 2000.3, 1500.5, 1000.7, 650.1]


def test_a_header_of_many_numbers_in_order_is_a_header(tmp_path):
    frame = pd.DataFrame(RNG.normal(size=(20, 8)), columns=WAVENUMBERS)
    frame.to_csv(tmp_path / "a.csv", index=False)
    same(source_of(tmp_path / "a.csv"), frame)
    assert source_of(tmp_path / "a.csv", header="no").n == 21
    frame.rename_axis("sample").set_index([[f"s{i}" for i in range(20)]]).to_csv(
        tmp_path / "b.csv", index_label="sample"
    )
    same(source_of(tmp_path / "b.csv", drop="sample"), frame)
    smooth = pd.DataFrame(np.sort(RNG.normal(size=(20, 8)), axis=1))
    smooth.to_csv(tmp_path / "c.csv", index=False, header=False)
    assert source_of(tmp_path / "c.csv").n == 20


PAGES = {
    "plain": lambda f: f.to_csv(index=False),
    "holes": lambda f: f.mask(f > 4).to_csv(index=False),
    "no last": lambda f: f.assign(last=f["weight"].mask(f["weight"] > 0)).to_csv(index=False),
    "quotes": lambda f: f.to_csv(index=False, quoting=1),
    "labels over lines": lambda f: f.set_index([[f"row\n{i}" for i in range(len(f))]]).to_csv(),
    "counter": lambda f: f.rename_axis("id").to_csv(),
    "blank lines": lambda f: f.to_csv(index=False).replace("\n", "\n\n"),
    "rows of delimiters": lambda f: f.to_csv(index=False).replace("\n", "\n,,\n", 5),
    "white space": lambda f: f.set_axis(list("abc"), axis=1).to_csv(index=False, sep=" "),
    "spaces": lambda f: f.to_csv(index=False).replace(",", " , "),
    "continental": lambda f: f.to_csv(index=False, decimal=",", sep=";"),
    "truth": lambda f: f.assign(last=f["weight"] > 0).to_csv(index=False),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_large_table_is_read_in_blocks_into_a_file(tmp_path, monkeypatch, page):
    """The same numbers, names, labels and lines, however the text is cut and wherever the rows lie."""
    text = PAGES[page](FRAME)
    (tmp_path / "a.csv").write_text(text)
    whole = source_of(tmp_path / "a.csv", missing="drop")
    monkeypatch.setattr(text_reader, "CHARACTERS_AT_ONCE", 100)
    monkeypatch.setattr(text_reader, "CHARACTERS_A_COLUMN", 1)
    for limit in (row_file.MEMORY_LIMIT, 0):
        monkeypatch.setattr(row_file, "MEMORY_LIMIT", limit)
        table = arrays.read_one(tmp_path / "a.csv", DataConfig(path=str(tmp_path / "a.csv")))
        assert isinstance(table.data, row_file.RowFile) == (limit == 0)
        source = source_of(tmp_path / "a.csv", missing="drop")
        np.testing.assert_array_equal(values(source), values(whole))
        assert (source.names, source.labels) == (whole.names, whole.labels)
        assert source.row_words(7) == whole.row_words(7)


def test_numbers_are_read_to_the_last_bit(tmp_path):
    bits = RNG.integers(0, 1 << 64, 4000, dtype=np.uint64).view(np.float64)
    numbers = bits[np.isfinite(bits)][:3000].reshape(-1, 3)
    for decimal, separator in ((".", ","), (",", ";")):
        frame = pd.DataFrame(numbers, columns=list("abc"))
        frame.to_csv(tmp_path / "a.csv", index=False, sep=separator, decimal=decimal)
        table = arrays.read_one(tmp_path / "a.csv", DataConfig(path=str(tmp_path / "a.csv")))
        assert table.data.tobytes() == numbers.tobytes()


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_a_large_column_file_is_read_in_batches_into_a_file(tmp_path, monkeypatch, name):
    frame = FRAME.assign(count=range(5, 35), whole=np.arange(30.0)).mask(lambda f: f["count"] == 9)
    frame["count"] = frame["count"].astype("Int32")
    frame.to_parquet(tmp_path / name, row_group_size=7) if "parquet" in name else frame.to_feather(
        tmp_path / name, chunksize=7
    )
    whole = source_of(tmp_path / name, missing="mean")
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
    source = source_of(tmp_path / name, missing="mean")
    np.testing.assert_array_equal(values(source), values(whole))
    assert source.names == whole.names == tuple(frame.columns)


def test_fill_values_and_scale_factors_of_netcdf(tmp_path):
    station = xarray.DataArray(
        np.array([[1.5, 2.5], [np.nan, 4.0], [5.0, 6.5]]), dims=("time", "station"),
        coords={"station": ["Oslo", "Rome"]}, name="t", attrs={"units": "K"},
    )  # fmt: skip
    path = tmp_path / "a.nc"
    station.to_netcdf(path, engine="h5netcdf", encoding={"t": {"_FillValue": 1e20}})
    with pytest.raises(InputError, match="NaN, a missing value, in column 'Oslo', row 1, counted from 0"):
        source_of(path)
    assert values(source_of(path, recognise=False)).max() == 1e20
    packed = {"dtype": "int16", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -99}
    station.fillna(3.0).to_netcdf(path, engine="h5netcdf", encoding={"t": packed})
    source = source_of(path)
    assert source.names == ("Oslo", "Rome") and source.units == {"": "K"}
    np.testing.assert_allclose(values(source), station.fillna(3.0))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = np.array([[1, 2], [3, 9999], [5, 6]])
        file["x"].attrs["missing_value"] = 9999
    with pytest.raises(InputError, match="NaN"):
        source_of(tmp_path / "b.h5")


def test_safetensors(tmp_path):
    from safetensors.numpy import save_file

    save_file({"x": np.ascontiguousarray(FRAME), "bias": np.zeros(3)}, tmp_path / "a.safetensors")
    np.testing.assert_array_equal(values(source_of(tmp_path / "a.safetensors")), FRAME.to_numpy())
    (tmp_path / "b.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes()[:200])
    with pytest.raises(InputError, match="truncated or damaged"):
        source_of(tmp_path / "b.safetensors")


def test_truth_values_and_the_words_of_spreadsheets_for_missing(tmp_path):
    frame = pd.DataFrame({"x": [1.5, np.nan, 2.5, 0.5], "alone": [True, False, True, True]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("x,alone\n1.5,TRUE\n#N/A,FALSE\n2.5,TRUE\n0.5,true\n")
    expected = frame.dropna().to_numpy(float)
    for name in ("a.csv", "b.csv", "a.parquet"):
        np.testing.assert_array_equal(values(source_of(tmp_path / name, missing="drop")), expected)


def test_an_identifier_that_counts_is_left_out_by_its_name_only(tmp_path, caplog):
    rows = pd.DataFrame({"PassengerId": range(1, 31), "fare": RNG.normal(size=30)})
    rows.to_csv(tmp_path / "a.csv", index=False)
    assert source_of(tmp_path / "a.csv").names == ("fare",)
    assert "column 'PassengerId' only numbers the rows (1, 2, …): left out" in caplog.text
    assert source_of(tmp_path / "a.csv", columns=["PassengerId", "fare"]).p == 2
    rows.rename(columns={"PassengerId": "day"}).to_csv(tmp_path / "b.csv", index=False)
    assert source_of(tmp_path / "b.csv").p == 2
    rows.assign(PassengerId=[*range(1, 30), 99]).to_csv(tmp_path / "c.csv", index=False)
    assert source_of(tmp_path / "c.csv").p == 2


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("limit", [1 << 28, 0])
def test_packed_values_and_chosen_columns_of_data_on_disk(tmp_path, monkeypatch, limit, transpose):
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", limit)
    monkeypatch.setattr(in_rows, "CONVERT_BLOCK", 100)
    raw = RNG.integers(-50, 50, (40, 3)).astype(np.int16)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = raw.T if transpose else raw
        file["x"].attrs.update(scale_factor=0.5, add_offset=1.0, _FillValue=np.int16(99))
    source = source_of(tmp_path / "a.h5", transpose=transpose)
    np.testing.assert_array_equal(values(source), raw * 0.5 + 1)
    np.save(tmp_path / "a.npy", raw)
    if not transpose:
        np.testing.assert_array_equal(values(source_of(tmp_path / "a.npy", columns=[2, 0])), raw[:, [2, 0]])
        np.testing.assert_array_equal(
            values(source_of(tmp_path / "a.h5", drop=[1])), raw[:, [0, 2]] * 0.5 + 1
        )


def test_what_labels_the_rows_names_the_features_of_a_transposed_table(tmp_path):
    FRAME.T.to_csv(tmp_path / "a.csv")
    same(source_of(tmp_path / "a.csv", transpose=True), FRAME)
    with pytest.raises(InputError, match=r"not together with data\.transpose"):
        np.save(tmp_path / "a.npy", FRAME.T)
        source_of(tmp_path / "a.npy", transpose=True, columns=[1])


@pytest.mark.parametrize("decimal", [".", ","])
def test_a_field_is_a_number_where_it_can_be_read_as_one(decimal):
    for text in (
        "1", "-1.5", "1,5", "1_0", "1e3", "1.5D-03", "nan", "inf", "true", "−5", "", "x", " 2 ", "1.2,3",
    ):  # fmt: skip
        try:
            number(text, decimal)
        except ValueError:
            assert not is_number(text, decimal), text
        else:
            assert is_number(text, decimal), text

"""Names of columns: when they identify a column, and when they are set aside."""

import h5py
import numpy as np
import pandas as pd
import pyarrow.ipc
import pyarrow.parquet
import pytest
from array_sources import source_of, values
from scipy import sparse
from scipy.io import savemat

from sigmapca_cli.data.readers.columns import identifying_names
from sigmapca_cli.data.readers.table import in_order
from sigmapca_cli.system.errors import InputError


@pytest.mark.parametrize(
    ("names", "identify"),
    [
        (["a", "b"], True),
        ((), True),
        (["0", "0"], False),
        (["a", "b", "a"], False),
        (["a", ""], False),
        (None, False),
    ],
)
def test_names_identify_columns_if_all_are_different_and_none_is_empty(names, identify):
    assert identifying_names(names) == (list(names) if identify else None)


X = np.array([[1.0, 2, 3], [4, 5, 7], [0, 2, 1]])
NAMES = ["a", "b", "a"]


def write_csv(path):
    pd.DataFrame(X, columns=NAMES).to_csv(path, index=False)


def write_parquet(path):
    pyarrow.parquet.write_table(pyarrow.table(list(X.T), names=NAMES), path)


def write_feather(path):
    with pyarrow.ipc.new_file(path, pyarrow.table(list(X.T), names=NAMES).schema) as file:
        file.write_table(pyarrow.table(list(X.T), names=NAMES))


def write_npz(path):
    np.savez(path, x=X, names=np.array(NAMES))


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        file["x"], file["column"] = X, NAMES
        file["column"].make_scale("column")
        file["x"].dims[1].attach_scale(file["column"])


def write_mat(path):
    savemat(path, {"x": X, "names": np.array(NAMES, object)})


def write_h5ad(path):
    with h5py.File(path, "w") as file:
        matrix = sparse.csr_matrix(X)
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": X.shape})
        group["data"], group["indices"], group["indptr"] = matrix.data, matrix.indices, matrix.indptr
        file.create_group("var").attrs["_index"] = "gene"
        file["var/gene"] = NAMES


WRITERS = {
    "a.csv": write_csv, "a.parquet": write_parquet, "a.feather": write_feather, "a.npz": write_npz,
    "a.h5": write_hdf5, "a.mat": write_mat, "a.h5ad": write_h5ad,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_names_that_occur_twice_are_set_aside_in_every_format(tmp_path, name, caplog):
    WRITERS[name](tmp_path / name)
    source = source_of(tmp_path / name)
    assert source.names is None and "set aside" in caplog.text
    np.testing.assert_array_equal(values(source), X)


def test_several_files_without_identifying_names_go_by_position(tmp_path):
    for name in ("1.csv", "2.csv"):
        write_csv(tmp_path / name)
    source = source_of(tmp_path)
    assert source.names is None
    np.testing.assert_array_equal(values(source), np.concatenate([X, X]))


def test_names_go_by_position_only_where_the_counts_agree():
    assert in_order(["c", "b", "a"], ["a", "b"], "f") == [2, 1]
    assert in_order(["a", "b", "a"], ["a", "b", "a.1"], "f") == [0, 1, 2]
    assert in_order(["i", "a", "b", "a"], ["a", "b", "a.1"], "f", left_out=[0]) == [1, 2, 3]
    for names in (["a", "b", "a"], ["b", "c"]):
        with pytest.raises(InputError):
            in_order(names, ["a", "b"], "f")


def test_a_word_of_a_name_that_occurs_twice_is_no_choice(tmp_path):
    write_csv(tmp_path / "a.csv")
    assert source_of(tmp_path / "a.csv", columns=["b"]).names == ("b",)
    with pytest.raises(InputError, match="rename them"):
        source_of(tmp_path / "a.csv", columns=["a"])

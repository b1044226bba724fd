"""What `data FILE` reports."""

import shlex

import numpy as np
import pandas as pd
import pytest

from sigmapca_cli.cli.data_page import page
from sigmapca_cli.data.cache.preparing import prepare
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.describe.describe import describe
from sigmapca_cli.data.describe.recognise import guess_kind
from sigmapca_cli.data.readers.columns import excess_kurtosis
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)


def test_kurtosis_of_known_distributions():
    n = 400_000
    x = np.c_[RNG.uniform(size=n), RNG.laplace(size=n), RNG.normal(size=n), np.ones(n)]
    np.testing.assert_allclose(excess_kurtosis(x), [-1.2, 3, 0, 0], atol=0.2)
    np.testing.assert_allclose(excess_kurtosis(x * 1e-7 + 3)[:3], [-1.2, 3, 0], atol=0.2)


def test_a_matrix_with_a_constant_and_a_dependent_column(tmp_path):
    X = RNG.laplace(size=(5000, 3))
    np.save(tmp_path / "a.npy", np.c_[X, X[:, 0] + X[:, 1], np.full(5000, 7)])
    facts, _ = describe(tmp_path / "a.npy")
    assert (facts["kind"], facts["samples"], facts["features"]) == ("array", 5000, 5)
    assert facts["rank"] == 3 and facts["constant_features"] == 1
    assert facts["total_variance"] == pytest.approx(10, rel=0.1)
    assert facts["command"].endswith("k=3 solver=independence")


def test_all_constant_data_is_described_without_nan(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((10, 3)))
    facts, _ = describe(tmp_path / "a.npy")
    assert facts["rank"] == 0 and facts["command"] is None


def test_real_files_are_recognised(shared_data, tmp_path):
    kinds = {
        "cifar-10-batches-py": "cifar10",
        "cifar-10-batches-bin/test_batch.bin": "cifar10",
        "mnist": "mnist",
        "mnist/t10k-images-idx3-ubyte.gz": "mnist",
    }
    for name, kind in kinds.items():
        assert guess_kind(shared_data / name) == kind
    facts, _ = describe(shared_data / "mnist", images=50)
    assert facts["samples"] == 50 * 784 and facts["patch_shape"] == (11, 11, 1)
    path = prepare(DataConfig(name="points"), tmp_path / "p.h5")
    assert guess_kind(path) == "prepared" and "solver=independence" in describe(path)[0]["command"]


def test_a_folder_of_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no data of a known kind"):
        describe(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        describe(tmp_path / "none")


def test_the_page_of_a_table_says_what_is_to_be_decided(tmp_path):
    n = 200
    frame = pd.DataFrame(
        {
            "name": [f"n{i}" for i in range(n)],
            "year": np.arange(1800, 1800 + n),
            "x": RNG.normal(size=n),
            "y": RNG.normal(size=n) * 1000,
            "z": RNG.normal(size=n),
            "class": RNG.integers(0, 3, n),
        }
    )
    frame.loc[3, "x"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    facts, _ = describe(tmp_path / "t.csv")
    assert (
        facts["left_out"] == {"name": "ids"} and facts["rising"] == ["year"] and facts["labels"] == ["class"]
    )
    columns = {column["name"]: column for column in facts["columns"]}
    assert columns["x"]["missing"] == facts["missing_values"] == facts["missing_rows"] == 1
    assert [columns[name]["kind"] for name in ("class", "year", "x")] == [
        "3 whole numbers", "rising whole numbers", "numbers",
    ]  # fmt: skip
    assert columns["y"]["std"] == pytest.approx(frame.y.std(ddof=0))
    assert "the standard deviation of y is" in facts["scales"] and facts["components"]["95 %"] == 1
    assert facts["components_then"]["95 %"] == 3
    for word in ("data.drop=[name,class,year]", "data.missing=drop", "data.standardise=feature", "k=3"):
        assert word in shlex.split(facts["command"])
    text = "\n".join(page(facts))
    assert all(word in text for word in ("labels?", "index?", "components then", "data.drop=year", "missing"))


def test_a_page_for_many_columns_stays_a_page(tmp_path):
    pd.DataFrame(RNG.normal(size=(50, 100))).add_prefix("gene").to_csv(tmp_path / "t.csv", index=False)
    lines = page(describe(tmp_path / "t.csv")[0])
    assert len(lines) < 40 and any("88 more columns" in line for line in lines)
    np.save(tmp_path / "a.npy", RNG.normal(size=(50, 100)))
    assert not any(line.startswith("feature 3") for line in page(describe(tmp_path / "a.npy")[0]))

"""Sums of parts: merged they equal the sums of all rows, and what needs rows is refused in words."""

import h5py
import numpy as np
import pandas as pd
import pytest

from sigmapca_cli.cli.partial import partial
from sigmapca_cli.composition.compose import compose_job
from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.figures.run import draw
from sigmapca_cli.runner.run import run
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder with all rows, and with three unequal parts of them and their sums."""
    folder = tmp_path_factory.mktemp("parts")
    random = np.random.default_rng(0)
    X = random.laplace(size=(5000, 6)) @ random.normal(size=(6, 6)) + 1e4
    np.savetxt(folder / "all.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="", fmt="%.17g")
    for i, (start, stop) in enumerate([(0, 2), (2, 4000), (4000, 5000)]):
        text = (folder / "all.csv").read_text().splitlines()
        (folder / f"rows-{i}.csv").write_text("\n".join([text[0], *text[1 + start : 1 + stop]]) + "\n")
        partial(str(folder / f"rows-{i}.csv"), [], output=str(folder / f"part-{i}.h5"))
    return folder


def sums(parts, **options):
    return build(DataConfig(name="moments", path=str(parts / "part-*.h5"), **options))


@pytest.mark.parametrize("options", [{}, {"standardise": "feature"}, {"whiten": "pca", "whiten_rank": 3}])
def test_merged_parts_have_the_moments_of_all_rows(parts, options):
    one = build(DataConfig(name="array", path=str(parts / "all.csv"), **options))
    merged = sums(parts, **options)
    assert (merged.n, merged.p, merged.names) == (one.n, one.p, one.names)
    assert np.abs(merged.mean / one.mean - 1).max() < 1e-12
    C, D = merged.covariance()[1], one.covariance()[1]
    assert np.abs(C - D).max() < 1e-12 * np.abs(D).max()


def test_parts_with_their_columns_in_another_order_are_matched_by_name(parts, tmp_path):
    frame = pd.read_csv(parts / "rows-1.csv")
    frame[list("fdbace")].to_csv(tmp_path / "turned.csv", index=False)
    partial(str(tmp_path / "turned.csv"), [], output=str(tmp_path / "turned.h5"))
    files = [str(parts / "part-0.h5"), str(tmp_path / "turned.h5"), str(parts / "part-2.h5")]
    merged, wanted = build(DataConfig(name="moments", path=files)), sums(parts)
    assert merged.names == wanted.names
    C, D = merged.covariance()[1], wanted.covariance()[1]
    np.testing.assert_allclose(merged.mean, wanted.mean, rtol=1e-14)
    assert np.abs(C - D).max() < 1e-12 * np.abs(D).max()


def test_pca_of_merged_parts_is_that_of_all_rows(parts, tmp_path):
    def solved(name, *words):
        overrides = ["model=pca_svd", "k=3", f"run_dir={tmp_path / name}", *words]
        return StoredRun.open(run(compose_job(overrides)))

    one = solved("one", "data=array", f"data.path={parts / 'all.csv'}")
    merged = solved("merged", "data=moments", f"data.path='{parts}/part-*.h5'")
    assert np.abs(one.filters - merged.filters).max() < 1e-11
    assert np.abs(one.sigma / merged.sigma - 1).max() < 1e-12
    assert merged.evaluation["explained_variance"] == pytest.approx(one.evaluation["explained_variance"])
    assert "kurtosis" in one.evaluation and "kurtosis" not in merged.evaluation
    source = sums(parts)
    assert evaluate_solution(merged.filters, merged.sigma, None, source)["total_variance"] > 0
    assert draw("histograms", merged, source) is None and draw("spectrum", merged, source) is not None


@pytest.mark.parametrize(
    "words", [["solver=newton"], ["solver=moments"], ["model=fastica"], ["model=nlpca", "steps=10"]]
)
def test_what_needs_rows_is_refused_before_a_folder_is_made(parts, tmp_path, words):
    overrides = [*words, "k=2", f"run_dir={tmp_path / 'run'}", "data=moments"]
    with pytest.raises(InputError, match="no rows: use model=pca_svd"):
        run(compose_job([*overrides, f"data.path='{parts}/part-*.h5'"]))
    assert not (tmp_path / "run").exists()


def changed(parts, tmp_path, change):
    with h5py.File(parts / "part-1.h5") as old, h5py.File(tmp_path / "bad.h5", "w") as new:
        new.attrs.update(old.attrs)
        for name in old:
            new[name] = old[name][()]
        change(new)
    return str(tmp_path / "bad.h5")


def other_names(file):
    file["names"][0] = "z"


def negative(file):
    file["second"][0, 0] = -1.0


def cut(file):
    second = file["second"][()]
    del file["second"]
    file["second"] = second[:4]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_names, "has no column"),
        (negative, "damaged"),
        (cut, "damaged"),
        (lambda file: file.attrs.update(format_version=9), "upgrade"),
        (lambda file: file.attrs.update(format="other"), "not written by sigmapca partial"),
        (lambda file: file.create_group("fourth"), "fourth moments, which are no longer read"),
    ],
)
def test_files_that_do_not_fit_are_refused(parts, tmp_path, change, words):
    with pytest.raises(InputError, match=words):
        build(DataConfig(name="moments", path=[str(parts / "part-2.h5"), changed(parts, tmp_path, change)]))


def test_a_part_given_twice_and_sums_taken_for_rows_are_refused(parts, tmp_path):
    part = str(parts / "part-1.h5")
    with pytest.raises(InputError, match="the same rows"):
        build(DataConfig(name="moments", path=[part, part]))
    with pytest.raises(InputError, match="use data=moments"):
        partial(part, [], output=str(tmp_path / "again.h5"))
    with pytest.raises(InputError, match=r"data\.standardise"):
        partial(
            str(parts / "rows-1.csv"),
            ["data.standardise=feature"],
            output=str(tmp_path / "x.h5"),
        )
    with pytest.raises(InputError, match=r"data\.half"):
        sums(parts, half="even")

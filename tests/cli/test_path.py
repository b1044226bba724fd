"""`sigmapca path` says which τ the data support, draws it, and refuses what it does not know."""

import json
import re

import numpy as np
import pytest
import scipy.sparse

DATA = ["data=planted", "data.n=4000", "data.p=12", "data.k=4", "data.group=2", "k=4"]


def test_path_names_the_best_knot_and_draws(sigmapca, tmp_path):
    result = sigmapca("path", *DATA, "-o", str(tmp_path / "tau"))
    assert result.returncode == 0, result.stderr
    assert "halves agree in linear PCA" in result.stdout and "best: tau=" in result.stdout
    assert (tmp_path / "tau.png").stat().st_size > 5000 and (tmp_path / "tau.pdf").exists()


@pytest.mark.full
def test_path_as_json(sigmapca):
    found = json.loads(sigmapca("path", *DATA, "--json").stdout)
    assert found["linear_pca"] < 0.98 < found["knots"][5]["agreement"] <= found["span"] + 1e-6
    assert found["best"] in [knot["at"] for knot in found["knots"]]


@pytest.mark.full
def test_path_over_a_and_over_lam(sigmapca):
    result = sigmapca("path", *DATA, "--along", "a")
    assert result.returncode == 0 and "best: a=" in result.stdout and "inf" in result.stdout
    result = sigmapca("path", *DATA, "--along", "lam")
    assert result.returncode == 0 and "best: lam=" in result.stdout


def test_an_unknown_path_is_refused(sigmapca):
    result = sigmapca("path", *DATA, "--along", "k")
    assert result.returncode == 2 and "--along=k: choose one of tau, lam, a" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.full
def test_a_path_keeps_its_numbers_beside_the_figure(sigmapca, tmp_path):
    result = sigmapca("path", *DATA, "-o", str(tmp_path / "tau"), "--json")
    kept = json.loads((tmp_path / "tau.json").read_text())
    assert kept == json.loads(result.stdout) and kept["k"] == 4 and len(kept["knots"]) == 9


@pytest.mark.full
def test_gaussian_rows_support_no_value_and_k_may_be_left_to_the_data(sigmapca, tmp_path):
    np.save(tmp_path / "g.npy", np.random.default_rng(0).normal(size=(2000, 6)))
    result = sigmapca("path", "data=array", "data.path=g.npy", "--json")
    found = json.loads(result.stdout)
    assert found["k"] == 6 and found["good"] == []
    assert found["sentence"].startswith("the halves agree at no tau:")


def test_one_filter_has_no_path(sigmapca, tmp_path):
    np.save(tmp_path / "one.npy", np.random.default_rng(0).normal(size=(200, 1)))
    result = sigmapca("path", "data=array", "data.path=one.npy")
    assert result.returncode == 2 and "k=1: " in result.stderr and len(result.stderr.splitlines()) == 1


def named(sigmapca, tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    return json.loads(sigmapca("data", "x.npy", "--json").stdout)


def test_the_page_of_a_table_says_how_well_its_halves_agree(sigmapca, tmp_path):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    facts = named(sigmapca, tmp_path, rng.laplace(size=(3000, 6)) * [3, 3, 2, 2, 1, 1] @ axes)
    assert facts["command"].endswith("k=4 solver=independence")
    found, linear, chance = agreements(facts["halves"])
    assert found > 0.99 > 0.95 > linear and found > chance
    facts = named(sigmapca, tmp_path, rng.normal(size=(3000, 4)))
    found, linear, chance = agreements(facts["halves"])
    assert max(found, linear) < 0.9  # rows without axes


def agreements(sentence):
    """The numbers of a sentence on halves: of the components, of linear PCA, of chance."""
    return [float(number) for number in re.findall(r"0\.\d+|1\.0+", sentence)]


def test_the_page_of_many_rows_names_the_command(sigmapca, tmp_path):
    facts = named(sigmapca, tmp_path, np.random.default_rng(0).laplace(size=(20_000, 24)))
    assert facts["halves"].startswith("sigmapca path data=array data.path=x.npy k=")


@pytest.mark.full
def test_wide_and_sparse_rows_have_a_page_and_a_path(sigmapca, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "wide.npy", rng.laplace(size=(80, 3000)).astype(np.float32))
    assert sigmapca("data", "wide.npy").returncode == 0
    assert sigmapca("path", "data=array", "data.path=wide.npy", "--json").returncode == 0
    scipy.sparse.save_npz(tmp_path / "s.npz", scipy.sparse.random_array((300, 2500), density=0.01, rng=rng))
    result = sigmapca("data", "s.npz")
    assert result.returncode == 0, result.stderr


def without_axes(n=3000):
    """Series of one spectrum and one variance: no axes, and every second row is nearly the row beside it."""
    rng = np.random.default_rng(0)
    noise, x = rng.normal(size=(n, 5)), np.zeros((n, 5))
    for t in range(1, n):
        x[t] = 0.98 * x[t - 1] + 0.2 * noise[t]
    return x


def test_rows_in_time_are_halved_into_stretches_and_are_not_called_stable(sigmapca, tmp_path):
    np.save(tmp_path / "ar.npy", without_axes())
    found = json.loads(sigmapca("path", "data=array", "data.path=ar.npy", "k=5", "--json").stdout)
    assert "stretches" in found["halves"] and found["good"] == []
    assert found["every_second"] > 0.93 > max(knot["agreement"] for knot in found["knots"])
    facts = json.loads(sigmapca("data", "ar.npy", "--json").stdout)
    assert facts["task"] == "separation" and facts["halves"].startswith("two stretches")
    stretches, _, _, every_second, _, _ = agreements(facts["halves"])
    assert stretches < 0.75 < 0.85 < every_second
    refused = json.loads(
        sigmapca("path", "data=array", "data.path=ar.npy", "k=5", "data.ordered=false", "--json").stdout
    )
    assert refused["halves"] == "even and odd rows" and "every_second" not in refused
    part = sigmapca("path", "data=array", "data.path=ar.npy", "data.part=1/2")
    assert part.returncode == 2 and "data.part" in part.stderr


def test_a_warning_about_a_file_is_said_once_though_its_halves_read_it_again(sigmapca, tmp_path):
    X = np.random.default_rng(0).laplace(size=(400, 4))
    X[3, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    result = sigmapca("path", "data=array", "data.path=x.npy", "data.missing=mean", "k=2")
    lines = result.stderr.splitlines()
    assert result.returncode == 0 and len(lines) == len(set(lines)) > 0

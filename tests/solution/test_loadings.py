"""Loadings of a run, and rows without some of its components, by the command."""

import io

import numpy as np
import pandas as pd
import pytest

import sigmapca_cli as sp


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Standardised PCA of five named columns, in a folder with its table."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 2)) @ rng.standard_normal((2, 5)), columns=list("abcde"))
    X += 0.3 * rng.standard_normal(X.shape) + 7
    X.to_csv("x.csv", index=False)
    run = sp.train("x.csv", model="pca_svd", k=3, data__standardise="feature")
    return X, run


def test_loadings_are_the_correlations_of_features_and_components(trained, sigmapca):
    X, run = trained
    assert sigmapca("loadings", "last", "l.csv").returncode == 0
    table = pd.read_csv("l.csv", index_col="feature")
    Z = (X - X.mean()) / X.std(ddof=0)
    expected = Z.T.to_numpy() @ run.transform(X) / len(X)
    np.testing.assert_allclose(table.iloc[:, :3], expected, atol=1e-5)
    np.testing.assert_allclose(table["communality"], (expected**2).sum(axis=1), atol=1e-5)
    assert sigmapca("loadings", "last", "l.csv").returncode == 2  # it exists
    assert sigmapca("loadings", "last", "l.txt").returncode == 2
    printed = sigmapca("loadings", "last").stdout.splitlines()
    assert len(printed) == 7 and printed[-1].startswith("share of variance")
    every = sigmapca("show", "last", "--all").stdout.splitlines()
    assert [line.split()[0] for line in every[-7:]] == ["feature", *"abcde", "σ"]
    np.testing.assert_allclose([float(w) for w in every[-6].split()[1:]], run.filters[0], atol=6e-4)


def test_components_of_noise_are_not_congruent_in_two_halves(tmp_path, monkeypatch, sigmapca):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2)) * [2.0, 1.5] @ np.repeat(np.eye(2), 8, axis=1)
    X += rng.standard_normal(X.shape)
    X[5, 3] = np.nan
    pd.DataFrame(X).add_prefix("x").to_csv("x.csv", index=False)
    run = sp.train("x.csv", model="pca_svd", k=4, data__missing="mean")
    done = sigmapca("loadings", "last", "--halves")
    assert done.returncode == 0 and "even and odd rows" in done.stdout
    assert "missing" not in done.stderr  # the training said it
    found = [float(value) for value in done.stdout.splitlines()[-1].split()]
    assert min(found[:2]) > 0.98 and max(found[2:]) < 0.85
    assert len(sp.runs("outputs")) == 1  # the halves leave no runs
    half = sp.train("x.csv", model="pca_svd", k=2, data__half="even", data__missing="mean")
    assert sigmapca("loadings", str(half.folder), "--halves").returncode == 2
    assert run.folder.exists()


def test_without_components_the_rest_of_the_rows_stays(trained, sigmapca):
    X, run = trained
    assert sigmapca("reconstruct", "last", "x.csv", "y.csv", "--without", "1,3").returncode == 0
    kept = pd.read_csv("y.csv")
    Y = run.transform(X)
    back = run.solution.back
    np.testing.assert_allclose(kept, X - np.outer(Y[:, 0], back[0]) - np.outer(Y[:, 2], back[2]), atol=1e-9)
    np.testing.assert_allclose(run.transform(kept)[:, 1], Y[:, 1], atol=1e-6)  # the other component stays
    np.testing.assert_allclose(run.transform(kept)[:, [0, 2]], 0, atol=1e-6)
    for wrong in ("0", "4", "1,1", "a"):
        done = sigmapca("reconstruct", "last", "x.csv", "z.csv", "--without", wrong)
        assert done.returncode == 2 and "1 to 3" in done.stderr


def test_a_rotation_finds_the_items_of_each_factor_and_keeps_the_space(tmp_path, monkeypatch, sigmapca):
    pytest.importorskip("factor_analyzer")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    correlated = np.linalg.cholesky(0.5 * np.eye(3) + 0.5)
    factors = rng.standard_normal((2000, 3)) @ correlated.T
    items = np.repeat(factors, 4, axis=1) * 0.8 + 0.6 * rng.standard_normal((2000, 12))
    pd.DataFrame(items).add_prefix("item").to_csv("q.csv", index=False)
    sp.train("q.csv", model="factor_analysis", k=3, data__standardise="feature")
    plain = pd.read_csv(io.StringIO(written(sigmapca, "plain.csv")), index_col=0)
    varimax = pd.read_csv(io.StringIO(written(sigmapca, "v.csv", "--rotate", "varimax")), index_col=0)
    oblimin = pd.read_csv(io.StringIO(written(sigmapca, "o.csv", "--rotate", "oblimin")), index_col=0)
    np.testing.assert_allclose(varimax.communality, plain.communality, atol=1e-6)
    groups = np.abs(oblimin.iloc[:, :3]).to_numpy().argmax(axis=1).reshape(3, 4)
    assert (groups == groups[:, :1]).all() and len(set(groups[:, 0])) == 3
    largest = np.sort(np.abs(oblimin.iloc[:, :3]).to_numpy(), axis=1)
    assert largest[:, 2].min() > 0.6 and largest[:, 1].max() < 0.15  # oblique factors are simple here
    printed = sigmapca("loadings", "last", "--rotate", "oblimin").stdout
    assert "correlations of the factors" in printed
    assert sigmapca("loadings", "last", "--rotate", "nonsense").returncode == 2


def written(sigmapca, name, *options):
    done = sigmapca("loadings", "last", name, *options)
    assert done.returncode == 0, done.stderr
    return open(name).read()


def test_loadings_of_factors_are_those_of_the_likelihood_and_their_squares_are_shares(
    tmp_path, monkeypatch, sigmapca
):
    from sklearn.decomposition import FactorAnalysis

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    items = np.kron(rng.standard_normal((500, 2)), [[0.9, 0.8, 0.5]]) * [1, 1, 1, 0.8, 0.8, 0.8]
    items = pd.DataFrame(items + 0.5 * rng.standard_normal((500, 6))).add_prefix("item")
    items.to_csv("q.csv", index=False)
    sp.train("q.csv", model="factor_analysis", k=2, data__standardise="feature")
    assert sigmapca("loadings", "last", "l.csv", "--contributions").returncode == 0
    found = pd.read_csv("l.csv", index_col=0)
    Z = ((items - items.mean()) / items.std(ddof=0)).to_numpy()
    A = FactorAnalysis(2, tol=1e-8, max_iter=2000).fit(Z).components_
    np.testing.assert_allclose(found.communality, (A**2).sum(axis=0), atol=1e-2)
    np.testing.assert_allclose(found.filter(like="contribution").sum(), 1)
    np.testing.assert_allclose(found.filter(like="cos2").sum(axis=1), found.communality, atol=1e-9)
    assert sigmapca("loadings", "last", "--rotate", "oblimin", "--contributions").returncode == 2


def test_scores_keep_the_ids_and_dates_that_training_left_out(tmp_path, monkeypatch, sigmapca):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.standard_normal((60, 4)), columns=list("abcd"))
    table = X.assign(
        day=pd.date_range("2020-01-01", periods=60).strftime("%Y-%m-%d"), who=[f"P{i}" for i in range(60)]
    )
    table.iloc[5, 0] = np.nan
    table.to_csv("t.csv", index=False)
    run = sp.train("t.csv", model="pca_svd", k=2, data__drop=["who", "day"], data__missing="drop")
    assert sigmapca("transform", "last", "t.csv", "y.csv").returncode == 0
    scores = pd.read_csv("y.csv")
    assert list(scores) == ["who", "day", "component_1", "component_2"]
    assert (scores.who == table.who).all() and (scores.day == table.day).all()
    expected = run.transform(X.where(table[list("abcd")].notna()))
    np.testing.assert_allclose(scores.iloc[:, 2:], expected, atol=1e-9)
    assert sigmapca("transform", "last", "t.csv", "y.parquet").returncode == 0
    stored = pd.read_parquet("y.parquet")
    assert stored.index.names == ["who", "day"] and stored.index[7] == ("P7", table.day[7])
    whole = table.drop(index=5)
    whole.to_csv("w.csv", index=False)
    assert sigmapca("transform", "last", "w.csv", "z.csv").returncode == 0
    assert (
        sigmapca("reconstruct", "last", "z.csv", "back.csv").returncode == 0
    )  # names of rows are no components
    np.testing.assert_allclose(
        pd.read_csv("back.csv"), run.inverse_transform(run.transform(whole[list("abcd")])), atol=1e-6
    )


def test_a_run_finds_its_data_from_another_folder(trained, tmp_path, monkeypatch):
    _, run = trained
    monkeypatch.chdir(run.folder)
    again = sp.Run.open(run.folder)
    assert again.config["data"]["path"] == "x.csv" and again.source.hash == run.attrs["data_hash"]

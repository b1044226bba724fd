"""A table whose rows are written several times says no more than each row once."""

import numpy as np
import pytest
from array_sources import source_of

import sigmapca_cli as sp
from sigmapca_cli.cli.halves import halves
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.describe.describe import describe
from sigmapca_cli.data.halves import halves_of
from sigmapca_cli.evaluation import compare
from sigmapca_cli.system.errors import InputError


def once(n=201):
    rng = np.random.default_rng(3)
    E = np.linalg.qr(rng.standard_normal((8, 8)))[0][:, :4]
    return rng.laplace(size=(n, 4)) * [4, 3, 2.8, 1] @ E.T + 0.3 * rng.standard_normal((n, 8))


def written(how, X):
    return (
        np.concatenate([X] * 3)
        if how == "again"
        else np.random.default_rng(0).permutation(np.repeat(X, 3, axis=0))
    )


@pytest.mark.parametrize("how", ["again", "mixed"])
def test_errors_and_tests_count_different_rows(tmp_path, how):
    X = once()
    both = [X, written(how, X)]
    certificates = [sp.train(x, k=4, outputs=tmp_path, solver="independence").certificate() for x in both]
    np.testing.assert_allclose(certificates[1].angle, certificates[0].angle, rtol=1e-3)
    # Linear PCA has its errors from groups of rows, which are not the same ones.
    scores = [sp.train(x, k=4, outputs=tmp_path, model="pca_svd").certificate().variance_score for x in both]
    assert 0.8 < np.nanmedian(scores[1] / scores[0]) < 1.25
    model = sp.SigmaPCA(4)
    angles = [model.fit(x).certificate(x).angle for x in both]
    np.testing.assert_allclose(angles[1], angles[0], rtol=1e-3)


def test_rows_that_come_more_often_count_more(tmp_path):
    X = once()
    often = np.random.default_rng(0).integers(1, 4, len(X))
    run = sp.train(np.repeat(X, often, axis=0), k=4, solver="independence", outputs=tmp_path)
    weighted = sp.SigmaPCA(4).fit(X, sample_weight=often)
    np.testing.assert_allclose(np.abs(run.filters.T @ weighted.components_.T), np.eye(4), atol=1e-4)
    assert run.evaluation["tested_rows"] == len(X)


def test_the_page_counts_different_rows_and_halves_that_share_some_are_refused(tmp_path):
    X, place = once(), tmp_path / "rows.npy"
    found = {}
    for name, rows in (("once", X), ("mixed", written("mixed", X))):
        np.save(place, rows)
        found[name] = describe(place)[0]["components"]
    chance = [found[name]["eigenvalues_by_chance"] for name in found]
    np.testing.assert_allclose(chance[1], chance[0], rtol=0.1)
    cfg = DataConfig(name="array", path=str(place))
    with pytest.raises(InputError, match="copies"):
        halves_of(cfg)
    np.save(place, written("again", once(200)))  # each row and its copies are all even, or all odd
    assert halves_of(cfg).names == ("even", "odd")


def test_parts_that_share_rows_are_no_evidence(tmp_path):
    np.save(tmp_path / "rows.npy", written("again", once()))
    runs = [
        sp.train(
            tmp_path / "rows.npy", k=4, steps=40, outputs=tmp_path, init="orthogonal", data__part=f"{i}/3"
        )
        for i in (1, 2, 3)
    ]
    assert all(run.attrs["copies_elsewhere"] > 0 for run in runs)
    assert compare.tested_by(runs) == "nothing" and any("copies" in note for note in compare.weaknesses(runs))
    assert "copies_elsewhere" not in source_of(tmp_path / "rows.npy").facts


def test_two_different_rows_have_one_component_and_equal_halves_say_why(tmp_path, monkeypatch):
    """A page on such rows ended with a traceback, and a half of equal rows asked for k = 0."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "two.npy", np.repeat(rng.standard_normal((2, 4)), 30, axis=0))
    assert "k=1" in describe(tmp_path / "two.npy")[0]["command"]
    X = rng.laplace(size=(300, 4))
    X[::2] = 0
    np.save(tmp_path / "half.npy", X)
    facts, suggestion = describe(tmp_path / "half.npy")
    assert "equal" in halves(facts, suggestion)["halves"]

"""`sigmapca path` says which λ the data support, draws it, and refuses what it does not know."""

import json

DATA = ["data=planted", "data.n=4000", "data.p=12", "data.k=4", "data.group=2", "k=4"]


def test_path_names_the_best_knot_and_draws(sigmapca, tmp_path):
    result = sigmapca("path", *DATA, "-o", str(tmp_path / "lam"))
    assert result.returncode == 0, result.stderr
    assert "halves agree in linear PCA" in result.stdout and "best: lam=" in result.stdout
    assert (tmp_path / "lam.png").stat().st_size > 5000 and (tmp_path / "lam.pdf").exists()


def test_path_as_json(sigmapca):
    found = json.loads(sigmapca("path", *DATA, "--json").stdout)
    assert found["linear_pca"] < 0.98 < found["knots"][6]["agreement"] <= found["span"] + 1e-6
    assert found["best"] in [knot["at"] for knot in found["knots"]]


def test_path_over_a(sigmapca):
    result = sigmapca("path", *DATA, "--along", "a")
    assert result.returncode == 0 and "best: a=" in result.stdout and "inf" in result.stdout


def test_an_unknown_path_is_refused(sigmapca):
    result = sigmapca("path", *DATA, "--along", "k")
    assert result.returncode == 2 and "--along=k: choose one of lam, a" in result.stderr
    assert len(result.stderr.splitlines()) == 1

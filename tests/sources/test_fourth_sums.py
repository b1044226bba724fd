"""Fourth moments of parts: merged they solve solver=moments as all rows do, and what does not fit is refused."""

import h5py
import numpy as np
import pytest

from sigmapca_cli.cli.partial import partial
from sigmapca_cli.composing import compose_job
from sigmapca_cli.errors import InputError
from sigmapca_cli.runner.run import run
from sigmapca_cli.runs.read import Run
from sigmapca_cli.solvers.fourth import Fourth
from sigmapca_cli.solvers.from_sums import summed
from sigmapca_cli.sources import build
from sigmapca_cli.sources.config import DataConfig

N, P, K = 6000, 9, 5
CUTS = ((0, 2), (2, 4100), (4100, N))


def second_pass(folder, name, *keys, k=K, axes="part-*.h5"):
    for i in range(len(CUTS)):
        out = str(folder / f"{name}-{i}.h5")
        partial(str(folder / f"rows-{i}.npy"), list(keys), output=out, axes=str(folder / axes), k=k)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder with all rows, three unequal parts of them, their sums and their fourth moments."""
    folder = tmp_path_factory.mktemp("fourth")
    random = np.random.default_rng(0)
    Q = np.linalg.qr(random.standard_normal((P, P)))[0]
    s = random.laplace(size=(N, P)) * np.array([3, 3, 3, 2, 2, 0.5, 0.4, 0.3, 0.2])
    X = s @ Q.T + 50
    np.save(folder / "all.npy", X)
    for i, (start, stop) in enumerate(CUTS):
        np.save(folder / f"rows-{i}.npy", X[start:stop])
        partial(str(folder / f"rows-{i}.npy"), [], output=str(folder / f"part-{i}.h5"), axes=None, k=None)
    second_pass(folder, "fourth")
    second_pass(folder, "scaled", "data.standardise=feature")
    return folder


def solved(folder, runs, files, *words, k=K):
    data = ["data=array", f"data.path={folder / 'all.npy'}"]
    if files:
        data = ["data=moments", f"data.path='{folder}/{files}'"]
    return Run.open(run(compose_job([f"k={k}", f"outputs={runs}", "if_exists=new", *data, *words])))


def sums_of(folder, files="fourth-*.h5", **options):
    return build(DataConfig(name="moments", path=str(folder / files), **options))


def test_merged_sums_are_the_fourth_moments_of_all_rows(parts):
    source = sums_of(parts)
    X = np.load(parts / "all.npy")
    Y = (X - X.mean(axis=0)) @ source.fourth.axes
    exact = Fourth.of(Y)
    sums = source.fourth
    found = Fourth.of_sums(sums.second, sums.products, sums.sigma, sums.n)
    size = np.abs(exact.K).max()
    np.testing.assert_allclose(found.K, exact.K, atol=1e-11 * size)
    np.testing.assert_allclose(found.C, exact.C, atol=1e-12 * exact.C.max())
    few = Fourth.of(Y[:, :3])
    np.testing.assert_allclose(found.leading(3).K, few.K, atol=1e-11 * size)
    factor = np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(few.scaled(factor).K, Fourth.of(Y[:, :3] * factor).K, atol=1e-10 * size)


def test_blocks_do_not_change_the_sums():
    z = np.random.default_rng(0).laplace(size=(3000, 4))
    one, other = summed([z], 4), summed([z[:1], z[1:1], z[1:2000], z[2000:]], 4)
    assert one[0] == other[0] == 3000
    for a, b in zip(one[1:], other[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    ("files", "words", "k"),
    [
        ("fourth-*.h5", (), K),
        ("fourth-*.h5", ("solver.lam=1",), 4),
        ("fourth-*.h5", ("init=orthogonal", "seed=3"), K),
        ("fourth-*.h5", ("solver.starts=3",), K),
        ("fourth-*.h5", ("model=lica",), K),
        ("scaled-*.h5", ("data.standardise=feature",), K),
    ],
    ids=str,
)
def test_the_solution_is_that_of_all_rows(parts, tmp_path, files, words, k):
    one = solved(parts, tmp_path, "", "solver=moments", *words, k=k)
    merged = solved(parts, tmp_path, files, "solver=moments", *words, k=k)
    assert merged.evaluation["converged"] and one.evaluation["converged"]
    # The solver of rows projects in float32.
    np.testing.assert_allclose(merged.filters, one.filters, atol=2e-6)
    np.testing.assert_allclose(merged.sigma, one.sigma, rtol=1e-6)
    np.testing.assert_allclose(merged.encoder, one.encoder, atol=1e-5)
    for name in ("contrast", "kurtosis"):
        np.testing.assert_allclose(merged.evaluation[name], one.evaluation[name], rtol=1e-4, atol=1e-5)
    assert "filter_error" not in merged.evaluation  # that needs rows
    assert "negentropy" not in merged.evaluation


def test_it_differs_from_linear_pca(parts, tmp_path):
    """The parts' second moments alone could not have found these axes."""
    pca = solved(parts, tmp_path, "fourth-*.h5", "model=pca_svd")
    found = solved(parts, tmp_path, "fourth-*.h5", "solver=moments")
    assert np.abs(pca.filters - found.filters).max() > 0.1
    assert solved(parts, tmp_path, "fourth-*.h5", "solver=moments", k="auto").filters.shape == (P, K)
    again = solved(parts, tmp_path, "fourth-*.h5", "solver=moments", "init=file", f"init_file={found.folder}")
    np.testing.assert_allclose(again.filters, found.filters, atol=1e-6)


def test_what_needs_rows_or_more_axes_is_refused(parts, tmp_path):
    for words, why in (
        (("solver=newton",), "no rows"),
        (("steps=10",), "no rows"),
        (("solver=moments", "solver.clip=0.99"), r"solver\.clip needs rows"),
        (("solver=moments", "solver.lam=auto"), r"solver\.lam=auto needs rows"),
    ):
        with pytest.raises(InputError, match=why):
            solved(parts, tmp_path / "no", "fourth-*.h5", *words)
    with pytest.raises(InputError, match=r"k=7: the fourth moments of data\.path are those of 5 axes"):
        solved(parts, tmp_path / "no", "fourth-*.h5", "solver=moments", k=7)
    with pytest.raises(InputError, match="partial --axes"):
        solved(parts, tmp_path / "no", "part-*.h5", "solver=moments")
    assert not (tmp_path / "no").exists()


def test_parts_that_do_not_fit_together_are_refused(parts, tmp_path):
    with pytest.raises(InputError, match="fourth moments of 5998 rows, and its axes are those of 6000"):
        sums_of(parts, "fourth-[12].h5")
    with pytest.raises(InputError, match="only one of them has fourth moments"):
        build(DataConfig(name="moments", path=[str(parts / "part-0.h5"), str(parts / "fourth-1.h5")]))
    with pytest.raises(InputError, match=r"data\.standardise=none: .* made with data\.standardise=feature"):
        sums_of(parts, "scaled-*.h5")
    with pytest.raises(InputError, match="other axes"):
        build(DataConfig(name="moments", path=[str(parts / "fourth-0.h5"), str(parts / "scaled-1.h5")]))
    with pytest.raises(InputError, match="the same rows"):
        build(DataConfig(name="moments", path=[str(parts / "fourth-0.h5")] * 2))
    with pytest.raises(InputError, match=r"all\.npy was not written by sigmapca partial"):
        sums_of(parts, "all.npy")
    with pytest.raises(InputError, match=r"use data=moments data\.path=.*fourth-\*\.h5"):
        build(DataConfig(name="array", path=str(parts / "fourth-*.h5")))


def test_axes_that_cannot_be_used_are_refused_before_the_rows_are_read(parts, tmp_path):
    out, axes = str(tmp_path / "o.h5"), str(parts / "part-*.h5")
    refused = [
        (
            "no such file.npy",
            axes,
            100,
            r"-k 100: 4421275 fourth moments, .* a matrix of 0\.2 GB; at most 64",
        ),
        ("no such file.npy", axes, 10, "k = 10 is more than min"),
        ("no such file.npy", axes, 0, "k = 0"),
        ("no such file.npy", str(parts / "fourth-*.h5"), 3, "hold fourth moments"),
        ("no such file.npy", str(parts / "all.npy"), 3, "all.npy"),
        (str(parts / "all.npy"), str(parts / "part-0.h5"), 1, "all.npy has 6000 rows, and --axes is of 2"),
    ]
    np.save(tmp_path / "narrow.npy", np.random.default_rng(0).normal(size=(9, 3)))
    refused.append((str(tmp_path / "narrow.npy"), axes, 3, "has 3 features, and --axes has 9"))
    for path, given, k, why in refused:
        with pytest.raises(InputError, match=why):
            partial(path, [], output=out, axes=given, k=k)
    with pytest.raises(InputError, match=r"data\.whiten"):
        partial(str(parts / "all.npy"), ["data.whiten=zca"], output=out, axes=None, k=None)
    with pytest.raises(InputError, match="give --axes"):
        partial(str(parts / "all.npy"), [], output=out, axes=None, k=3)
    assert not (tmp_path / "o.h5").exists()


@pytest.mark.parametrize("change", ["shape", "nan", "sigma", "words"])
def test_damaged_sums_are_refused(parts, tmp_path, change):
    path = tmp_path / "bad.h5"
    path.write_bytes((parts / "fourth-1.h5").read_bytes())
    with h5py.File(path, "r+") as file:
        group = file["fourth"]
        if change == "shape":
            kept = group["products"][:-1]
            del group["products"]
            group["products"] = kept
        elif change == "nan":
            group["products"][0] = np.nan
        elif change == "sigma":
            group["sigma"][0] = 0
        else:
            group.attrs["standardisation"] = "{"
    with pytest.raises(InputError, match="damaged"):
        build(DataConfig(name="moments", path=str(path)))

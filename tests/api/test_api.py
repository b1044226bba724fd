"""The Python interface makes the runs of the command, reads them, and says in words what it cannot do."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas
import pytest
import torch
from mechanisms import every
from scipy import sparse
from shell import run_command

import sigmapca_cli as sp
from sigmapca_cli.composition.compose import compose_job
from sigmapca_cli.figures.run import NAMES
from sigmapca_cli.settings.quoting import override


def rows(n=1500, p=6, seed=0):
    g = np.random.default_rng(seed)
    return (
        (g.laplace(size=(n, 3)) * [3, 3, 1.5]) @ np.linalg.qr(g.standard_normal((p, 3)))[0].T
        + 5
        + np.round(0.02 * g.standard_normal((n, p)), 3)
    )


X = rows()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGMAPCA_OUTPUTS", raising=False)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    return sp.train(X, k=3, a="auto", solver="newton", outputs=tmp_path_factory.mktemp("outputs"))


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, sigmapca_cli as sp; dir(sp); print([m for m in sys.modules if m.split('.')[0] in %r])"
    heavy = (
        "numpy",
        "torch",
        "h5py",
        "hydra",
        "omegaconf",
        "sklearn",
        "scipy",
        "matplotlib",
        "pandas",
        "rich",
        "typer",
    )
    done = subprocess.run([sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_is_there():
    for name in sp.__all__:
        assert getattr(sp, name) is not None
    assert sp.nn.SigmaPCA is not sp.SigmaPCA
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        sp.trian  # noqa: B018


def test_the_run_is_that_of_the_command(tmp_path):
    words = (
        "data=planted",
        "data.n=1500",
        "data.p=10",
        "data.k=3",
        "data.group=1",
        "k=3",
        "steps=60",
        "seed=5",
    )
    done = run_command(("train", *words, "a=2", "optimizer.schedule=constant"), tmp_path, {}, 120)
    assert done.returncode == 0, done.stderr
    typed = sp.Run.open("last")
    called = sp.train(
        "planted", k=3, a=2, seed=5, steps=60, data__n=1500, data__p=10, data__k=3, data__group=1,
        optimizer__schedule="constant",
    )  # fmt: skip
    assert called.folder != typed.folder and called.attrs["config_hash"] == typed.attrs["config_hash"]
    np.testing.assert_array_equal(called.filters, typed.filters)
    assert called.overrides[0] == "data=planted"
    again = sp.train("planted", overrides=[*words, "a=2", "optimizer.schedule=constant"], if_exists="skip")
    assert again.folder in (called.folder, typed.folder)


def test_rows_in_memory_are_kept_for_the_commands(tmp_path, capsys):
    run = sp.train(X, k=3, solver="newton")
    assert capsys.readouterr().out == ""
    files = list((tmp_path / "outputs" / "arrays").iterdir())
    assert len(files) == 1 and np.array_equal(np.load(files[0]), X)
    for words in (("show", "last"), ("evaluate", "last", "--json")):
        done = run_command(words, tmp_path, {}, 120)
        assert done.returncode == 0, done.stderr
    before = files[0].stat().st_mtime_ns
    assert sp.train(X.copy(), k=3, solver="newton", if_exists="skip").folder == run.folder
    assert files[0].stat().st_mtime_ns == before
    assert len(list((tmp_path / "outputs" / "arrays").iterdir())) == 1
    files[0].unlink()
    with pytest.raises(sp.InputError, match="no such file"):
        sp.Run.open("last").certificate()


@pytest.mark.parametrize(
    "given",
    [
        X.tolist(),
        np.asfortranarray(X),
        torch.tensor(X),
        pandas.DataFrame(X, columns=[f"c{i}" for i in range(6)]),
        sparse.csr_array(X),
    ],
    ids=["list", "fortran", "torch", "pandas", "sparse"],
)
def test_all_kinds_of_rows_give_the_same_filters(given, solved):
    run = sp.train(given, k=3, a="auto", solver="newton")
    np.testing.assert_allclose(np.abs((run.filters * solved.filters).sum(0)), 1, atol=1e-9)
    assert run.names == (list(given.columns) if isinstance(given, pandas.DataFrame) else None)


def test_every_value_of_an_array_is_meant():
    counted = np.column_stack([np.arange(len(X)), X])  # a file's first column would be taken for an index
    assert sp.train(counted, k=2, solver="newton").attrs["p"] == 7


def test_columns_of_a_table_are_taken_by_name():
    table = pandas.DataFrame(X, columns=list("abcdef"))
    run = sp.train(table, k=3, solver="newton")
    mixed = table[list("fedcba")].assign(more="text")
    np.testing.assert_array_equal(run.transform(mixed), run.transform(X))
    with pytest.raises(sp.InputError, match="no column a"):
        run.transform(table[list("bcdef")])


def test_a_path_is_read_as_the_command_reads_it(tmp_path, solved):
    np.save(tmp_path / "my rows.npy", X)
    run = sp.train(tmp_path / "my rows.npy", k=3, a="auto", solver="newton")
    np.testing.assert_array_equal(run.filters, solved.filters)


def test_a_list_of_files_is_read_as_the_command_reads_it(tmp_path, solved):
    for name, part in (("a.npy", X[:700]), ("b.npy", X[700:])):
        np.save(tmp_path / name, part)
    run = sp.train([tmp_path / "a.npy", "b.npy"], k=3, a="auto", solver="newton")
    np.testing.assert_allclose(run.filters, solved.filters, atol=1e-9)
    assert run.attrs["n"] == len(X)


def test_the_name_of_a_file_is_told_from_rows(solved):
    with pytest.raises(sp.InputError, match=r"x\.csv.*sigmapca transform"):
        solved.transform("x.csv")


def test_transform_its_inverse_and_the_estimator(solved):
    Y = solved.transform(X)
    np.testing.assert_allclose(Y.std(0), 1, rtol=1e-6)
    assert np.abs(solved.inverse_transform(Y) - X).max() < 0.2
    estimator = solved.to_sklearn()
    np.testing.assert_allclose(estimator.transform(X), Y, atol=1e-9)
    np.testing.assert_allclose(estimator.inverse_transform(Y), solved.inverse_transform(Y), atol=1e-9)
    np.testing.assert_array_equal(estimator.certificate(X).identified, solved.certificate().identified)
    assert sp.SigmaPCA.from_run(solved.folder).n_components_ == 3
    peer = sp.SigmaPCA(3, solver="newton").fit(X)
    for name in ("noise_variance_", "explained_variance_ratio_", "singular_values_", "a_", "sigma_"):
        np.testing.assert_allclose(getattr(estimator, name), getattr(peer, name), rtol=1e-4)


def test_the_estimator_of_fewer_rows_than_features_has_the_noise_of_a_fit():
    few = np.random.default_rng(0).laplace(size=(30, 50)) * np.linspace(3, 0.1, 50)
    found, peer = sp.train(few, k=3, solver="independence").to_sklearn(), sp.SigmaPCA(3).fit(few)
    assert found.noise_variance_ == pytest.approx(peer.noise_variance_, rel=1e-4)


def test_a_run_with_scales_is_a_pipeline():
    run = sp.train(X * [1, 10, 1, 1, 1, 100], k=3, solver="newton", data__standardise="feature")
    pipeline = run.to_sklearn()
    np.testing.assert_allclose(pipeline.transform(X), run.transform(X), atol=1e-9)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(pipeline)).transform(X), run.transform(X), atol=1e-9)
    with pytest.raises(sp.InputError, match="puts a scaler before it"):
        sp.SigmaPCA.from_run(run)


def test_a_stochastic_run_inverts_too():
    run = sp.train(X, k=3, steps=200)
    Y, estimator = run.transform(X), run.to_sklearn()
    np.testing.assert_allclose(estimator.transform(X), Y, atol=1e-9)
    np.testing.assert_allclose(estimator.inverse_transform(Y), run.inverse_transform(Y), atol=1e-9)


def test_linear_ica_has_no_orthonormal_estimator():
    run = sp.train(X, k=3, model="lica", solver="newton")
    with pytest.raises(sp.InputError, match="linear ICA is not orthonormal"):
        run.to_sklearn()


def test_the_certificate_speaks(solved):
    found = solved.certificate()
    assert str(found).startswith("3 of 3 components have identified axes")
    gaussian = np.random.default_rng(0).standard_normal((2000, 4))
    run = sp.train(gaussian, k=3, a=4, solver="newton")
    assert run.sentences == [] and "run.certificate()" in run._repr_html_()
    assert str(run.certificate()).startswith("0 of 3")
    assert run.sentences[0].startswith("0 of 3") and "0 of 3" in run._repr_html_()
    assert "<li>0 of 3" in run.certificate()._repr_html_()


def test_what_a_notebook_shows(solved, tmp_path):
    assert "k 3" in repr(solved) and str(solved.folder.name) in repr(solved)
    html = solved._repr_html_()
    assert "data:image/png;base64" in html and "σ: " in html
    picture = solved.plot("spectrum")
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert picture.save(tmp_path / "s.svg").read_text().lstrip().startswith("<?xml")
    with pytest.raises(sp.InputError, match=r"ends in .png"):
        picture.save("s.bmp")
    for name in NAMES:
        if name in ("signals", "scatter", "curves", "topographies"):
            with pytest.raises(sp.InputError, match="nothing to draw"):
                solved.plot(name)
        else:
            assert solved.plot(name).figure is not None


def test_runs_as_a_table(tmp_path):
    first = sp.train(X, k=2, solver="newton")
    second = sp.train(X, k=3, solver="moments")
    found = sp.runs("outputs")
    assert {run.folder for run in found} == {first.folder, second.folder}  # both of one second: in any order
    table = found.to_pandas()
    assert sorted(table["k"]) == [2, 3] and {"explained_variance", "folder", "model"} <= set(table.columns)
    assert [run.folder for run in sp.runs(where="k==3")] == [second.folder]
    assert [run.folder for run in found[1:]] == [found[1].folder]
    assert repr(found).startswith("2 runs\n") and found._repr_html_().count("<tr>") == 3
    assert len(sp.runs(tmp_path / "outputs" / "arrays")) == 0


def test_within_an_application_of_hydras(tmp_path):
    """Its own configuration is neither read nor changed, and a sweep's folder is not taken."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig

    (tmp_path / "theirs.yaml").write_text("k: 7\n")
    with initialize_config_dir(str(tmp_path), version_base="1.2"):
        theirs = compose("theirs", ["hydra.mode=MULTIRUN"], return_hydra_config=True)
        HydraConfig.instance().set_config(theirs)
        try:
            before = GlobalHydra.instance().hydra
            job = compose_job(["k=3"])
            assert job.cfg.k == 3 and job.hydra_folder is None and job.overrides == ["k=3"]
            with pytest.raises(sp.InputError):
                compose_job(["k=three"])
            assert HydraConfig.get().mode.name == "MULTIRUN" and GlobalHydra.instance().hydra is before
            assert compose("theirs").k == 7
        finally:
            HydraConfig.instance().cfg = None


def test_in_several_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    def train(seed):
        return sp.train(X, k=2, solver="newton", seed=seed)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(train, range(4)))
    assert [run.attrs["seed"] for run in found] == list(range(4))
    assert all(run.status == "finished" and run.config["k"] == 2 for run in found)


PATHS = ("it's", "a=b,c", "$x", "back\\slash", "trailing\\", "null", "ö {1}", "#no")


@pytest.mark.parametrize("path", every(PATHS, ["trailing\\"]))
def test_odd_paths_come_through(path):
    assert compose_job(["data=array", override("data.path", path)]).cfg.data.path == path


BAD = {
    "needs 2: X": lambda: sp.train(X[0]),
    "no matrix of numbers": lambda: sp.train([[1, 2], [3]]),
    "is complex": lambda: sp.train(X + 1j),
    "column 'x' holds no numbers": lambda: sp.train(pandas.DataFrame({"x": ["a", "b"]})),
    "is empty": lambda: sp.train(np.zeros((0, 4))),
    "NaN at row 0": lambda: sp.train(X * np.nan),
    "NaN at row 0, column 1": lambda: sp.train(
        np.ma.masked_array(X, np.arange(X.size).reshape(X.shape) == 1)
    ),
    "cannot be created": lambda: sp.train(X, outputs=os.devnull),
    "no such file": lambda: sp.train("nofile.csv"),
    "rows are given already": lambda: sp.train(X, overrides=["data.path=nofile.npy"]),
    "did you mean seed": lambda: sp.train(X, sed=3),
    "did you mean nlpca": lambda: sp.train(X, model="nlpcaa"),
    "lower k": lambda: sp.train(X, k=40),
    "lr=object": lambda: sp.train(X, lr=object()),
    "nofolder: no such folder": lambda: sp.runs("nofolder"),
    "no column loss": lambda: sp.runs(where="loss>1"),
    "there are no runs": lambda: sp.Run.open("last"),
}


@pytest.mark.parametrize("words", BAD)
def test_what_cannot_be_done_is_said_in_one_line(words):
    with pytest.raises(sp.InputError, match=words) as problem:
        BAD[words]()
    assert "\n" not in str(problem.value)
    assert not os.path.exists("outputs/nlpca") or not list(os.scandir("outputs/nlpca"))

"""Whole runs: what the main method must reach, the invariances it must have, and what is written."""

import json

import h5py
import numpy as np
import pytest
from mechanisms import every
from solver_helpers import matched_each as matched

PLANTED = ("data=planted", "data.n=40000", "data.p=32", "data.k=8", "data.group=2", "k=8")


def test_nlpca_separates_what_pca_cannot(train):
    data = ("data=planted", "data.n=20000", "k=12")
    nonlinear = train("model=nlpca", "a=4", *data, "steps=2000")
    linear = train("model=pca_svd", *data)
    assert nonlinear.evaluation["mcc"] >= 0.999
    assert linear.evaluation["mcc"] < 0.95
    assert nonlinear.evaluation["converged"]
    assert nonlinear.metrics["mcc"][-1] >= 0.999


@pytest.mark.full
def test_random_start_and_sgd_reach_it_too(train):
    run = train("data=planted", "k=12", "steps=6000", "init=orthogonal", "optimizer=sgd")
    assert run.evaluation["mcc"] >= 0.999


def test_pca_equals_scikit_learn(train, tmp_path):
    from sklearn.decomposition import PCA

    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig

    run = train("model=pca_svd", *PLANTED, "data.group=1", "data.n=5000")
    source = build(DataConfig(name="planted", n=5000, p=32, k=8, group=1, standardise="none"))
    x = np.concatenate(list(source.blocks())).astype(np.float64)
    peer = PCA(8, svd_solver="full").fit(x)
    np.testing.assert_allclose(matched(run.filters, peer.components_.T), 1, atol=1e-5)
    np.testing.assert_allclose(run.sigma**2, peer.explained_variance_ * (len(x) - 1) / len(x), rtol=1e-5)


def subspace_cosine(A, B):
    """Smallest cosine of the principal angles between two column spaces."""
    return np.linalg.svd(np.linalg.qr(A)[0].T @ np.linalg.qr(B)[0], compute_uv=False).min()


LINEAR = ("data=planted", "data.n=20000", "k=12", "epochs=15")


@pytest.mark.full
def test_identity_keeps_the_pca_subspace(train):
    pca = train("model=pca_svd", *LINEAR)
    # SGD: at an exactly stationary point Adam turns rounding noise into steps of size lr.
    kept = train("model=nlpca", "nonlinearity=identity", "init=pca", "optimizer=sgd", *LINEAR)
    assert subspace_cosine(kept.filters, pca.filters) > 0.9999
    learned = train("model=linear_ae", "init=orthogonal", "lr=0.01", *LINEAR)
    assert subspace_cosine(learned.filters, pca.filters) > 0.999


def test_identity_in_the_main_loss_does_not_look_for_the_subspace(train):
    # The encoder's gradient 2E[xᵀ(yWᵀW − y)] vanishes at every orthonormal W: with h = identity the main loss
    # only keeps W orthonormal (docs/findings.md). It is the decoder's part that finds the PCA subspace.
    short = ("data=planted", "data.n=4000", "k=12", "epochs=15")
    pca = train("model=pca_svd", *short)
    run = train("model=nlpca", "nonlinearity=identity", "init=orthogonal", *short)
    assert run.evaluation["orthogonality_error"] < 1e-2
    assert subspace_cosine(run.filters, pca.filters) < 0.9


@pytest.mark.parametrize("scale", every([0.01, 1000], [0.01]))
def test_input_scale_changes_no_filter_and_scales_sigma(train, scale):
    # σ in the loss has no floor here: an ε of 1e-3 would be the whole variance of data scaled by 0.01.
    common = ("data=planted", "data.n=5000", "k=12", "epochs=3", "sigma.epsilon=0", "sigma.start=data")
    plain = train(*common)
    scaled = train(*common, f"data.scale_input={scale}")
    assert matched(plain.filters, scaled.filters).min() > 0.9999
    np.testing.assert_allclose(scaled.sigma, plain.sigma * scale, rtol=1e-3)


def test_same_seed_same_bits_other_seed_other_rows(train):
    data = (*PLANTED, "data.n=4000", "steps=100")
    runs = [train(*data, f"seed={seed}") for seed in (1, 1, 2)]
    assert np.array_equal(runs[0].filters, runs[1].filters)
    assert not np.array_equal(runs[0].filters, runs[2].filters)
    assert runs[0].folder != runs[1].folder


def test_run_file_is_the_published_format(train):
    run = train(*PLANTED, "steps=200", "log_every=10")
    with h5py.File(run.path) as file:
        assert file.attrs["format"] == "sigmapca-run" and file.attrs["status"] == "finished"
        assert file["filters"].shape == (32, 8) and file["decoder"].shape == (8, 32)
        assert len(file["metrics/loss"]) == len(file["metrics/step"]) == 20
        W, B = file["filters"][()], file["encoder"][()]
    assert (np.diff(run.sigma) <= 0).all()
    assert (W[np.abs(W).argmax(0), np.arange(8)] > 0).all()
    np.testing.assert_allclose(run.decoder @ B, np.eye(8), atol=1e-8)
    import xarray

    with xarray.open_dataset(run.path, engine="h5netcdf") as data:
        assert data["filters"].dims == ("feature", "component")
    with xarray.open_dataset(run.path, engine="h5netcdf", group="metrics") as data:
        assert data["loss"].dims == ("step",)
    lines = (run.folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(10, 201, 10))
    assert (run.folder / ".hydra" / "config.yaml").exists() and (run.folder / "train.log").exists()


def test_components_have_unit_variance(train):
    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig

    run = train(*PLANTED, "data.n=4000", "steps=100")
    source = build(DataConfig(name="planted", n=4000, p=32, k=8, group=2, standardise="none"))
    z = np.concatenate(list(source.blocks())).astype(np.float64) @ run.encoder
    np.testing.assert_allclose(z.std(0), 1, rtol=1e-5)


def test_divergence_names_the_step(train):
    from sigmapca_cli.system.errors import RunFailed

    with pytest.raises(RunFailed, match=r"diverged at step \d+"):
        train(*PLANTED, "model=linear_ae", "optimizer=sgd", "lr=10", "steps=500")


def test_strict_turns_an_unconverged_run_into_a_failure(train):
    from sigmapca_cli.system.errors import RunFailed

    with pytest.raises(RunFailed, match="not converged"):
        train(*PLANTED, "steps=3", "init=orthogonal", "strict=true")


@pytest.mark.full
def test_float64(train):
    single = train(*PLANTED, "steps=1500")
    double = train(*PLANTED, "steps=1500", "dtype=float64")
    assert matched(single.filters, double.filters).min() > 0.999


SIGNALS = ("data=signals", "data.variant=non_orthogonal", "a=0.8", "optimizer=sgd", "init=orthogonal")


@pytest.mark.full
@pytest.mark.parametrize("kind", ["uniform", "mixed"])
def test_linear_ica_separates_every_kind_of_source_with_no_further_key(train, kind, tmp_path):
    """Sources under a mixing that is not orthogonal."""
    random = np.random.default_rng(0)
    heavy, light = random.laplace(size=(10000, 4)), random.uniform(-1, 1, (10000, 4)) * 2.4
    s = {"uniform": light, "mixed": np.hstack([heavy[:, :2], light[:, :2]])}[kind]
    np.save(tmp_path / "x.npy", s @ random.normal(size=(4, 4)))
    run = train("model=lica", "data=array", f"data.path={tmp_path / 'x.npy'}", "k=4")
    x = (np.load(tmp_path / "x.npy") - run.mean) / run.scale
    found = np.abs(np.corrcoef((x @ run.encoder).T, s.T)[:4, 4:]).max(0)
    # The first layer leaves the components of uniform sources correlated by up to 0.1, which a rotation cannot undo.
    assert found.min() > 0.93 and found.mean() > 0.97


@pytest.mark.full
def test_two_layers_recover_signals_under_a_non_orthogonal_mixing(train):
    settings = (*SIGNALS, "epochs=120", "batch_size=100")
    for seed in range(3):
        printed = train("model=lica", *settings, "recipe=paper", "init=orthogonal", f"seed={seed}")
        assert printed.evaluation["truth_similarity"].min() >= 0.98, f"seed {seed}"
    ours = train("model=lica", "data=signals", "data.variant=non_orthogonal")  # with no further key
    assert ours.evaluation["truth_similarity"].min() >= 0.98 and ours.attrs["converged"]
    for model in ("nlpca", "pca_svd"):  # orthonormal filters cannot undo such a mixing
        assert train(f"model={model}", *settings).evaluation["truth_similarity"].min() < 0.95


def test_an_unconverged_closed_form_says_what_to_raise(train, caplog):
    run = train("data=planted", "data.n=2000", "k=12", "model=fastica", "model.max_iter=1")
    assert not run.attrs["converged"] and "model=fastica model.max_iter=3" in caplog.text


def test_the_suggested_number_of_components_cuts_no_group_of_equal_variance():
    from sigmapca_cli.data.n_components import at_a_gap

    values = np.array([9.0, 4.1, 4.0, 3.9, 1.0, 0.5])
    assert [at_a_gap(values, k, 3000) for k in (1, 2, 3, 4, 5)] == [1, 4, 4, 4, 5]

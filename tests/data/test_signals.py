"""Signals, points and planted data: the recorded numbers, and truths that are true."""

import numpy as np
import pytest
from scipy.io import wavfile

from sigmapca_cli.data import build
from sigmapca_cli.data.cache.preparing import prepare
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.system.errors import InputError

VARIANTS = ("distinct_variance", "two_same_variance", "same_variance", "non_orthogonal")
ROTATION = [[0.5, 0, 0.866025], [-0.612372, 0.707107, 0.353553], [-0.612372, -0.707107, 0.353553]]


def signals(**options):
    return build(DataConfig(**{"name": "signals", "standardise": "none", "noise": 0.2, **options}))


def raw(source):
    return source.take(np.arange(source.n)) * source.scale + source.mean


def test_recorded_numbers_of_seed_0():
    source = signals()
    np.testing.assert_allclose(source.truth.sources.std(axis=0), [4.140534, 3.005002, 0.610021], atol=1e-6)
    np.testing.assert_allclose(source.truth.mixing, ROTATION, atol=1e-6)
    np.testing.assert_allclose(
        raw(signals(variant="non_orthogonal")).std(axis=0), [3.43654, 3.7583, 2.06794], atol=1e-5
    )


def test_variances_of_the_variants():
    two = signals(variant="two_same_variance").truth.sources.std(axis=0)
    np.testing.assert_allclose(two, [4.140534, 1, 1], atol=1e-6)
    same = signals(variant="same_variance")
    np.testing.assert_allclose(same.truth.sources.std(axis=0), 1)
    np.testing.assert_allclose(raw(same).std(axis=0), 1, atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_data_are_the_sources_mixed(variant):
    """X = S Aᵀ exactly (cases 2)."""
    source = signals(variant=variant)
    np.testing.assert_allclose(raw(source), source.truth.sources @ source.truth.mixing.T, atol=1e-5)
    if source.truth.filters is not None:
        np.testing.assert_allclose(source.truth.filters.T @ source.truth.filters, np.eye(3), atol=1e-12)


def test_another_seed_is_another_mixing():
    one, two = (signals(variant="non_orthogonal", seed=seed).truth.mixing for seed in (0, 1))
    assert abs(one - two).max() > 0.1
    np.testing.assert_allclose(np.linalg.norm(two.T, axis=0), 1)


def test_wav_files_are_mixed_and_keep_their_rate(tmp_path):
    t = np.arange(4000) / 8000
    tracks = [np.sin(900 * t), np.sign(np.sin(500 * t)), np.mod(70 * t, 1) - 0.5]
    for i, track in enumerate(tracks):
        wavfile.write(tmp_path / f"{i}.wav", 8000, np.rint(track[: 4000 - i] * 20000).astype(np.int16))
    source = signals(path=str(tmp_path))
    assert (source.n, source.p, source.sample_rate) == (3998, 3, 8000)
    S = np.stack(tracks, axis=1)[:3998] * 20000 / 32768
    np.testing.assert_allclose(raw(source), S @ np.array(ROTATION).T, atol=1e-4)
    plain = signals(path=str(tmp_path / "0.wav"), mix=False, n=50)
    assert (plain.n, plain.p, plain.truth) == (50, 1, None)


def test_wav_faults(tmp_path):
    with pytest.raises(InputError, match=r"no \.wav file"):
        signals(path=str(tmp_path))
    wavfile.write(tmp_path / "a.wav", 8000, np.zeros(100, np.int16))
    with pytest.raises(InputError, match="silent"):
        signals(path=str(tmp_path), variant="same_variance")
    wavfile.write(tmp_path / "b.wav", 16000, np.ones(100, np.int16))
    with pytest.raises(InputError, match=r"rates differ \(8000, 16000 Hz\)"):
        signals(path=str(tmp_path))
    (tmp_path / "b.wav").write_bytes(b"RIFF????WAVEnonsense")
    with pytest.raises(InputError, match=r"b\.wav cannot be read as WAV"):
        signals(path=str(tmp_path))


@pytest.mark.parametrize(("distribution", "variance"), [("uniform", 2 / 3), ("laplace", 1.0)])
def test_points(distribution, variance):
    source = build(DataConfig(name="points", distribution=distribution, n=20_000, standardise="none"))
    R = source.truth.filters
    np.testing.assert_allclose(R, np.array([[1, -1], [1, 1]]) / np.sqrt(2))
    S = raw(source) @ R
    np.testing.assert_allclose(S, source.truth.sources, atol=1e-5)
    np.testing.assert_allclose(S.var(axis=0), variance, rtol=0.03)
    assert distribution != "uniform" or abs(S).max() <= np.sqrt(2) + 1e-5


@pytest.mark.parametrize("kind", ["laplace", "uniform", "mixed"])
def test_planted_directions_and_variances(kind):
    options = {"name": "planted", "p": 20, "k": 6, "group": 2, "sources": kind, "standardise": "none"}
    source = build(DataConfig(n=40_000, noise=0.01, **options))
    E = source.truth.filters
    np.testing.assert_allclose(E.T @ E, np.eye(6), atol=1e-12)
    y = source.take(np.arange(source.n)) @ E
    np.testing.assert_allclose(y.std(axis=0), [3, 3, 2.1, 2.1, 1.47, 1.47], rtol=0.03)
    excess = (y**4).mean(axis=0) / y.var(axis=0) ** 2 - 3
    signs = {"laplace": [1] * 6, "uniform": [-1] * 6, "mixed": [1, -1] * 3}[kind]
    assert np.sign(excess).tolist() == signs


def test_planted_truth_is_withheld_where_standardising_tilts_it():
    tilted = build(DataConfig(name="planted", n=500, standardise="feature"))
    assert tilted.truth.filters is None and tilted.truth.sources.shape == (500, 12)
    with pytest.raises(InputError, match=r"data\.k=12 sources do not fit into data\.p=5"):
        build(DataConfig(name="planted", p=5))


@pytest.mark.parametrize("standardise", ["none", "feature"])
@pytest.mark.parametrize("whiten", ["none", "pca"])
@pytest.mark.parametrize("name", ["planted", "points", "signals", "prepared"])
def test_one_rule_says_which_truth_still_holds(name, standardise, whiten, tmp_path):
    """Scaled or whitened rows have other directions; the sources are the same rows' wherever they are kept."""
    options = {"n": 300, "standardise": standardise, "whiten": whiten, "half": "odd"}
    if name == "prepared":
        path = prepare(DataConfig(name="planted", n=300), tmp_path / "p.h5")
        source = build(DataConfig(name="prepared", path=str(path), **{**options, "n": None}))
    else:
        source = build(DataConfig(name=name, **options))
    turned = standardise != "none" or whiten != "none"
    assert (source.truth.filters is None) == turned
    assert source.truth.sources.shape[0] == source.n == 150
    if turned:
        assert source.truth.kind == "sources"
    values = evaluate_solution(source.principal_axes()[1][:, :2], np.ones(2), None, source)
    assert 0 < values["mcc"] <= 1

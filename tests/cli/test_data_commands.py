"""Preparing data from the shell: files that train, one line when that cannot be."""

import json

import h5py
import numpy as np
import pytest
from scipy.io import wavfile


def test_extract_patches_from_real_cifar(sigmapca, shared_data, tmp_path):
    result = sigmapca(
        "extract-patches", f"data.path={shared_data / 'cifar-10-batches-py'}", "data.images=20", "-o", "c.h5"
    )
    assert result.returncode == 0, result.stderr
    facts = json.loads(sigmapca("data", "c.h5", "--json").stdout)
    assert facts["samples"] == 20 * 1024 and facts["features"] == 363
    run = sigmapca("train", "data=array", "data.path=c.h5", "steps=20", "k=4")
    assert run.returncode == 0, run.stderr
    with h5py.File(next(tmp_path.rglob("run.h5"))) as file:
        assert tuple(file["filters"].attrs["patch_shape"]) == (11, 11, 3)


@pytest.mark.full
def test_train_uses_what_was_extracted(sigmapca, shared_data, tmp_path):
    path = f"data.path={shared_data / 'cifar-10-batches-py'}"
    assert sigmapca("extract-patches", path, "data.images=20").returncode == 0
    same = sigmapca("train", "data=cifar10", "data.images=20", "data.offline=true", "steps=20", "k=4")
    assert same.returncode == 0, same.stderr
    half = sigmapca(
        "train", "data=cifar10", "data.images=20", "data.half=odd", "data.offline=true", "steps=5", "k=4"
    )
    assert half.returncode == 0, half.stderr
    other = sigmapca("train", "data=cifar10", "data.offline=true", "steps=20", "k=4")
    assert other.returncode == 2 and "add data.images=20" in other.stderr


def test_bare_extraction_without_network_names_two_ways_on(sigmapca, tmp_path):
    result = sigmapca("extract-patches", "--offline")
    assert result.returncode == 2 and len(result.stderr.strip().splitlines()) == 1
    assert "data.path=" in result.stderr and "data=natural" in result.stderr
    result = sigmapca("extract-patches", SIGMAPCA_MIRROR="http://127.0.0.1:9", timeout=120)
    assert result.returncode in (1, 2) and len(result.stderr.strip().splitlines()) == 1
    assert "data=natural" in result.stderr
    assert not list(tmp_path.rglob("*.h5"))


def test_mixed_signals_and_points(sigmapca, tmp_path):
    assert sigmapca("mix-signals", "data.variant=non_orthogonal", "-o", "s.h5").returncode == 0
    assert sigmapca("sample-points", "data.distribution=laplace", "-o", "p.h5").returncode == 0
    facts = json.loads(sigmapca("data", "s.h5", "--json").stdout)
    assert facts["samples"] == 2000 and facts["features"] == 3
    run = sigmapca("train", "data=array", "data.path=s.h5", "k=3", "steps=50", "a=0.8", "--run-dir", "r")
    assert run.returncode == 0, run.stderr
    with h5py.File(tmp_path / "r" / "run.h5") as file:
        assert "mcc" in file["evaluation"]  # the truth travelled with the file


@pytest.mark.full
def test_a_cocktail_party(sigmapca, tmp_path):
    rate, t = 8000, np.arange(16000) / 8000
    generator = np.random.default_rng(0)
    sources = [np.sign(np.sin(2 * np.pi * 3 * t)), (t * 5) % 1 * 2 - 1, generator.laplace(size=len(t))]
    folder = tmp_path / "voices"
    folder.mkdir()
    for i, s in enumerate(sources):
        wavfile.write(folder / f"{i}.wav", rate, (s / np.abs(s).max() * 20000).astype(np.int16))
    result = sigmapca("mix-signals", f"data.path={folder}", "-o", "mixed.h5")
    assert result.returncode == 0, result.stderr
    run = sigmapca("train", "model=fastica", "data=array", "data.path=mixed.h5", "k=3", "--run-dir", "r")
    assert run.returncode == 0, run.stderr
    with h5py.File(tmp_path / "r" / "run.h5") as file:
        assert file["evaluation/mcc"][()] > 0.98


BAD = {
    "nan.npy": (lambda p: np.save(p, np.where(np.eye(5) > 0, np.nan, 1.0)), "NaN"),
    "words.csv": (lambda p: p.write_text("1,2\n3,four\n5,6\n"), "four"),
    "torn.h5": (lambda p: p.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 40), "torn.h5"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arrays_cost_one_line(sigmapca, tmp_path, name):
    make, word = BAD[name]
    make(tmp_path / name)
    result = sigmapca("train", "data=array", f"data.path={name}", "k=1", "steps=5")
    assert result.returncode == 2, result.stderr + result.stdout
    assert len(result.stderr.strip().splitlines()) == 1 and word in result.stderr
    assert not list(tmp_path.rglob("run.h5"))


def test_k_above_the_rank_names_both(sigmapca, tmp_path):
    generator = np.random.default_rng(0)
    np.save(tmp_path / "flat.npy", generator.normal(size=(300, 3)) @ generator.normal(size=(3, 10)))
    result = sigmapca("train", "data=array", "data.path=flat.npy", "k=5", "steps=5")
    assert (
        result.returncode == 2 and "5" in result.stderr and "3" in result.stderr and "rank" in result.stderr
    )

"""Exports read back by the programs they are for."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from sigmapca_cli.solution.export import export
from sigmapca_cli.solution.solution import Solution
from sigmapca_cli.system.errors import InputError


def make_run(whitening=False, mean=3.0):
    generator = np.random.default_rng(0)
    p, k = 12, 4
    W = np.linalg.qr(generator.standard_normal((p, k)))[0]
    sigma = np.array([4.0, 3.0, 2.0, 1.0])
    encoder = W / sigma
    return SimpleNamespace(
        filters=W,
        sigma=sigma,
        encoder=encoder,
        decoder=np.linalg.pinv(encoder),
        rotation=None,
        mean=generator.standard_normal(p) + mean,
        scale=generator.uniform(0.5, 2, p),
        whitening=np.linalg.qr(generator.standard_normal((p, p)))[0] * 3 if whitening else None,
        attrs={"model": "nlpca", "seed": 7, "config_hash": "ab"},
        patch_shape=(2, 2, 3),
        names=None,
        grid=None,
        clip=None,
        config={},
        folder="run",
        status="finished",
    )


@pytest.fixture(params=[False, True], ids=["plain", "whitened"])
def run(request):
    return make_run(request.param)


def components(run, raw):
    x = (raw - run.mean) / run.scale
    return (x if run.whitening is None else x @ run.whitening) @ run.encoder


def test_the_affine_map_is_standardisation_whitening_and_encoder(run):
    raw = np.random.default_rng(1).standard_normal((50, 12)) * 5
    solution = Solution.of(run)
    y = solution.apply(raw)
    np.testing.assert_allclose(y, components(run, raw), rtol=1e-10)
    np.testing.assert_allclose(solution.apply(solution.invert(y)), y, rtol=1e-9)


def test_npz_holds_every_array_and_the_metadata(run, tmp_path):
    with np.load(export(run, tmp_path / "a.npz"), allow_pickle=False) as found:
        np.testing.assert_array_equal(found["filters"], run.filters)
        assert ("whitening" in found) == (run.whitening is not None)
        assert json.loads(str(found["metadata"]))["patch_shape"] == "[2, 2, 3]"


def test_safetensors_reads_back_in_its_own_package(run, tmp_path):
    package = pytest.importorskip("safetensors")
    path = export(run, tmp_path / "a.safetensors")
    with package.safe_open(path, "numpy") as found:
        for name in found.keys():  # noqa: SIM118
            np.testing.assert_array_equal(found.get_tensor(name), getattr(run, name))
        assert found.metadata()["model"] == "nlpca"


def test_safetensors_layout_without_the_package(run, tmp_path):
    content = export(run, tmp_path / "a.bin", "safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    header = json.loads(content[8 : 8 + length])
    begin, end = header["sigma"]["data_offsets"]
    np.testing.assert_array_equal(np.frombuffer(content[8 + length :][begin:end], "<f8"), run.sigma)


def test_onnx_computes_the_components_and_the_reconstruction(run, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        str(export(run, tmp_path / "a.onnx")), providers=["CPUExecutionProvider"]
    )
    raw = np.random.default_rng(1).standard_normal((33, 12)).astype(np.float32)
    y, back = session.run(["components", "reconstruction"], {"raw": raw})
    np.testing.assert_allclose(y, components(run, raw), atol=2e-5)
    np.testing.assert_allclose(back, Solution.of(run).invert(components(run, raw)), atol=2e-4)


def test_onnx_fills_and_clips_as_the_run_does(run, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    run.config, run.clip = (
        {"data": {"name": "array", "missing": "mean"}},
        np.stack([run.mean - 1, run.mean + 1]),
    )
    session = runtime.InferenceSession(
        str(export(run, tmp_path / "a.onnx")), providers=["CPUExecutionProvider"]
    )
    raw = np.random.default_rng(1).standard_normal((33, 12)).astype(np.float32) * 3
    raw[3, 4] = np.nan
    y = session.run(["components"], {"raw": raw})[0]
    np.testing.assert_allclose(y, Solution.of(run).apply(raw), atol=2e-5)


def test_onnx_keeps_its_digits_far_from_zero(tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    run = make_run(mean=1e4)
    raw = (run.mean + np.random.default_rng(1).standard_normal((20, 12))).astype(np.float32)
    session = runtime.InferenceSession(
        str(export(run, tmp_path / "a.onnx")), providers=["CPUExecutionProvider"]
    )
    run.mean = run.mean.astype(np.float32).astype(np.float64)
    y = session.run(["components"], {"raw": raw})[0]
    np.testing.assert_allclose(y, components(run, raw.astype(np.float64)), atol=2e-5)


def test_without_onnx_one_line_names_the_extra(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match="pip install onnx"):
        export(run, tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


def test_other_kinds_and_unfinished_runs_are_refused(run, tmp_path):
    with pytest.raises(InputError, match="choose from npz, safetensors, onnx"):
        export(run, tmp_path / "a.mat")
    run.encoder = None
    with pytest.raises(InputError, match="no encoder"):
        export(run, tmp_path / "a.npz")

"""Prepared files: the same source comes back, once and whole, or a clear refusal."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from PIL import Image

from sigmapca_cli.data import build
from sigmapca_cli.data.cache.prepared import is_prepared
from sigmapca_cli.data.cache.preparing import prepare
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.system.errors import InputError


def reopened(path, **options):
    return build(DataConfig(name="prepared", path=str(path), **options))


def same(a, b):
    index = np.random.default_rng(0).integers(0, a.n, 200)
    assert (a.n, a.p, a.patch_shape, a.sample_rate) == (b.n, b.p, b.patch_shape, b.sample_rate)
    assert np.array_equal(a.take(index), b.take(index))
    assert a.hash == b.hash
    assert np.array_equal(a.mean, b.mean) and np.array_equal(a.scale, b.scale)


def test_patches_come_back(tmp_path):
    cfg = DataConfig(images=6, patch=7, stride=2, epsilon=1e-3)
    path = prepare(cfg, tmp_path / "p.h5", "pixels")
    source = build(cfg)
    same(reopened(path), source)
    same(build(DataConfig(name="array", path=str(path))), source)
    same(reopened(path, half="odd"), build(DataConfig(images=6, patch=7, stride=2, epsilon=1e-3, half="odd")))
    with h5py.File(path) as file:
        assert file.attrs["format"] == "sigmapca-data" and file.attrs["source"] == "data=natural"
        assert tuple(file.attrs["patch_shape"]) == (7, 7, 3)
        assert json.loads(file.attrs["options"])["epsilon"] == 1e-3
        np.testing.assert_allclose(file["mean"], source.mean)


def test_images_of_different_sizes_come_back(tmp_path):
    for i, size in enumerate([(20, 30), (40, 12), (17, 17)]):
        pixels = np.random.default_rng(i).integers(0, 256, (*size, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
    for half in ("all", "even"):
        cfg = DataConfig(name="images", path=str(tmp_path), patch=5, half=half)
        path = prepare(DataConfig(name="images", path=str(tmp_path), patch=5), tmp_path / "r.h5")
        same(reopened(path, half=half), build(cfg))


@pytest.mark.parametrize("variant", ["two_same_variance", "non_orthogonal"])
def test_signals_come_back_with_their_truth(tmp_path, variant):
    cfg = DataConfig(name="signals", variant=variant, standardise="none", noise=0.2)
    path = prepare(cfg, tmp_path / "s.h5")
    again, source = reopened(path), build(cfg)
    same(again, source)
    assert again.truth.kind == source.truth.kind
    for part in ("filters", "sources", "mixing"):
        np.testing.assert_array_equal(getattr(again.truth, part), getattr(source.truth, part))


def test_the_wrong_kind_of_data_is_refused(tmp_path):
    for name, holds in (("points", "pixels"), ("points", "signals"), ("natural", "made")):
        with pytest.raises(InputError, match=f"data={name} .*: choose one of"):
            prepare(DataConfig(name=name), tmp_path / "x.h5", holds)
    assert not list(tmp_path.iterdir())


def test_equal_options_share_one_file_and_others_do_not_overwrite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cfg = DataConfig(name="points")
    path = prepare(cfg)
    made = path.stat().st_mtime_ns
    assert prepare(cfg) == path and path.stat().st_mtime_ns == made
    assert prepare(DataConfig(name="points", seed=1)) != path
    with pytest.raises(InputError, match="exists with other options"):
        prepare(DataConfig(name="points", seed=1), path)


def test_damage_is_found(tmp_path):
    path = prepare(DataConfig(name="points"), tmp_path / "p.h5")
    with h5py.File(path, "r+") as file:
        file["raw"][3, 1] += 1
    with pytest.raises(InputError, match="do not match its checksum"):
        reopened(path)
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 99
    with pytest.raises(InputError, match="version 99"):
        reopened(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"p\.h5 is truncated"):
        reopened(path)
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros((3, 3))
    with pytest.raises(InputError, match="not a prepared data file"):
        reopened(path)


def _prepare_and_report(path, queue):
    cfg = DataConfig(name="planted", n=20_000, p=30)
    queue.put(prepare(cfg, path).stat().st_ino)


def test_many_processes_prepare_once(tmp_path):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    jobs = [context.Process(target=_prepare_and_report, args=(tmp_path / "p.h5", queue)) for _ in range(6)]
    for job in jobs:
        job.start()
    inodes = {queue.get(timeout=60) for _ in jobs}
    for job in jobs:
        job.join()
    assert len(inodes) == 1
    assert sorted(os.listdir(tmp_path)) == ["p.h5"], "locks and files written aside are left over"


HANG = """
import sys, time
from pathlib import Path
from sigmapca_cli.data.build_once import made_once
from sigmapca_cli.data.cache.preparing import _written_whole
target = Path(sys.argv[1])
with made_once(target) as ours, _written_whole(target) as file:
    file["x"] = 1
    print(ours, flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_leaves_nothing_that_can_be_read_and_is_succeeded(tmp_path):
    target = tmp_path / "p.h5"
    with subprocess.Popen([sys.executable, "-c", HANG, str(target)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"True\n"
        writer.send_signal(signal.SIGKILL)
    assert not target.exists() and os.listdir(tmp_path)
    start = time.monotonic()
    prepare(DataConfig(name="points"), target)
    assert reopened(target).n == 1000 and time.monotonic() - start < 30
    assert os.listdir(tmp_path) == ["p.h5"]


def test_attributes_of_fixed_length_are_read(tmp_path):
    """As other languages write them when they save the file again."""
    path = prepare(DataConfig(name="planted", n=200), tmp_path / "p.h5")
    before = build(DataConfig(name="prepared", path=str(path)))
    with h5py.File(path, "r+") as file:
        for group in (file, file["truth"]):
            for name, value in dict(group.attrs).items():
                if isinstance(value, str):
                    group.attrs[name] = np.bytes_(value) if name != "kind" else np.array([np.bytes_(value)])
    assert is_prepared(path)
    assert build(DataConfig(name="prepared", path=str(path))).hash == before.hash

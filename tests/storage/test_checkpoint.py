"""Checkpoints: equal bit for bit, or refused in words; never code that is run on loading."""

from pathlib import Path

import numpy as np
import pytest

from sigmapca_cli.storage import checkpoint
from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.files import file_image, replace_file
from sigmapca_cli.system.errors import InputError


def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "state/W": rng.normal(size=(3, 5, 2)).astype(np.float32),
        "state/sigma": np.array([np.nan, np.inf, -0.0]),
        "generator": rng.integers(0, 256, 5056, dtype=np.uint8),
        "step": np.array(7),
        "empty": np.empty((0, 4)),
        "mask": np.array([True, False]),
    }


def saved(folder: Path) -> Path:
    path = folder / fmt.CHECKPOINT_FILE
    checkpoint.save(
        path, tensors(), {"step": 7, "σ": [1, None, "x"]}, config_hash="c" * 64, data_hash="d" * 64
    )
    return path


def test_comes_back_bit_for_bit(tmp_path: Path) -> None:
    arrays, meta = checkpoint.load(saved(tmp_path), config_hash="c" * 64, data_hash="d" * 64)
    assert meta == {"step": 7, "σ": [1, None, "x"]}
    assert set(arrays) == set(tensors())
    for name, value in tensors().items():
        assert arrays[name].dtype == value.dtype and arrays[name].shape == value.shape
        assert arrays[name].tobytes() == value.tobytes()
    assert [p.name for p in tmp_path.iterdir()] == [fmt.CHECKPOINT_FILE]


def test_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in [*rng.integers(0, len(whole), 200), *range(64), *range(len(whole) - 80, len(whole))]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(InputError) as error:
            checkpoint.load(path)
        assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_truncated_and_other_files_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    for size in (0, 7, 500, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="not a"):
            checkpoint.load(path)
    with pytest.raises(InputError, match="no such file"):
        checkpoint.load(tmp_path / "none.h5")
    replace_file(path, *file_image(lambda file: file.attrs.update(format=fmt.FORMAT)))
    with pytest.raises(InputError, match="not a checkpoint"):
        checkpoint.load(path)


def test_another_version_configuration_or_data_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    with pytest.raises(InputError, match="another configuration"):
        checkpoint.load(path, config_hash="e" * 64)
    with pytest.raises(InputError, match="other data"):
        checkpoint.load(path, config_hash="c" * 64, data_hash="e" * 64)
    monkeypatch.setattr(fmt, "CHECKPOINT_VERSION", 2)
    with pytest.raises(InputError, match=r"version 1.*reads 2"):
        checkpoint.load(path)


def test_objects_are_refused_on_saving(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="only numbers"):
        checkpoint.save(tmp_path / "c.h5", {"x": np.array([object()])}, {})
    with pytest.raises(TypeError):
        checkpoint.save(tmp_path / "c.h5", {}, {"x": object()})
    assert not list(tmp_path.iterdir())

"""Prepared data: one HDF5 file with images or a matrix, their standardisation and their origin.

`data=cifar10` without a path uses such a file, of `extract-patches`, where its options are the same.

Layout (`format = "sigmapca-data"`, `format_version` 1):

    attrs      kind (patches | ragged | matrix), name, source, options (JSON), checksum, created, versions;
               patch, stride, pad, patch_shape for images; sample_rate for signals
    /images    (N, H, W, C)      kind patches: pixels as they were
    /pixels    (all,)            kind ragged: images of different sizes, zero-padded, one after the other
    /sides     (N, 2)            kind ragged: padded rows and columns of each
    /raw       (n, p)            kind matrix: rows before standardisation
    /mean      (p,)              x = (raw − mean)/scale
    /scale     (p,)
    /truth/…                     filters, sources, mixing, where they are known
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig, usual_standardise
from sigmapca_cli.data.images.folder import RaggedPatchSource, first_pixels
from sigmapca_cli.data.images.patches import PIXEL_EPSILON, PatchSource, one_in_parts, strip_of
from sigmapca_cli.data.in_memory import known_source
from sigmapca_cli.data.locate import data_roots, existing
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.standardisation import Standardisation, images_of
from sigmapca_cli.data.truth import Truth
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import damaged
from sigmapca_cli.system.untrusted_hdf5 import as_text, has_format, self_contained, stored

FORMAT, FORMAT_VERSION = "sigmapca-data", 1


def checksum(data: NDArray) -> str:
    """Return SHA-256 of shape, type and values."""
    digest = hashlib.sha256(repr((data.shape, data.dtype.str)).encode())
    digest.update(np.ascontiguousarray(data).data)
    return digest.hexdigest()


@contextmanager
def open_prepared(path: Path) -> Iterator[Any]:
    """Open the HDF5 file; raise InputError if it is damaged or of a format that this version cannot read."""
    import h5py

    with damaged(path, "prepare it again"), h5py.File(path, "r", locking=False) as file:
        self_contained(file)
        if as_text(file.attrs.get("format", "")) != FORMAT:
            raise InputError(f"{path} is not a prepared data file: use data=array for plain HDF5")
        version = int(file.attrs["format_version"])
        if version > FORMAT_VERSION:
            raise InputError(f"{path} has format version {version}, not {FORMAT_VERSION}: upgrade sigmapca")
        yield file


def is_prepared(path: Path) -> bool:
    """Return whether a file has the attribute of this format."""
    return has_format(path, FORMAT)


CONTENT = {"patches": "images", "ragged": "pixels", "matrix": "raw"}


def load(path: Path, cfg: DataConfig) -> Source:
    """Return the source in a prepared file, standardised as prepared unless `cfg` has another value than its default.

    half, whiten and scale_input are from `cfg`.
    """
    with open_prepared(path) as file:
        attrs, name = dict(file.attrs), as_text(file.attrs["name"])
        kind = as_text(attrs["kind"])
        data = stored(file[CONTENT[kind]])[...]
        sides = file["sides"][...].astype(np.int64) if kind == "ragged" else None
        truth = None
        if (group := file.get("truth")) is not None:
            truth = Truth(as_text(group.attrs["kind"]), **{key: group[key][...] for key in group})
        made = json.loads(as_text(attrs["options"]))
        if checksum(data) != as_text(attrs["checksum"]):
            raise InputError(f"{path} is damaged: its data do not match its checksum: prepare it again")
        geometry = _geometry(attrs, data, sides, kind)
    relative = 0.0 if kind == "matrix" else PIXEL_EPSILON
    scaling = str(cfg.standardise), cfg.epsilon
    if not cfg.recognise or cfg.standardise == usual_standardise(cfg.name):
        scaling = made["standardise"], made["epsilon"]  # older configurations have a value that had no effect
    options = Standardisation(*scaling, relative, cfg.whiten, cfg.scale_input, cfg.whiten_rank, cfg.centre)
    if kind == "matrix":
        source = known_source(name, data, truth, cfg, options)
        source.sample_rate = int(attrs["sample_rate"]) if "sample_rate" in attrs else None
        return source
    shape, stride, pad = geometry
    if sides is None:
        images = strip_of(data, cfg) if one_in_parts(len(data), cfg) else data[images_of(len(data), cfg)]
        return PatchSource(name, images, shape[0], stride, pad, options)
    if cfg.half != "all" or cfg.part is not None:
        first = first_pixels(sides, shape[2])
        chosen = range(len(sides))[images_of(len(sides), cfg)]
        data = np.concatenate([data[first[i] : first[i + 1]] for i in chosen])
        sides = sides[list(chosen)]
    return RaggedPatchSource(name, sides, data, shape, stride, pad, options)


def _geometry(attrs: dict[str, Any], data: NDArray, sides: NDArray | None, kind: str) -> Any:
    """Return (patch shape, stride, pad), or None for a matrix; raise ValueError if the data do not fit them.

    No checksum covers these numbers, and windows are views of memory: a wrong number must not reach outside it.
    """
    if data.dtype.kind not in "biuf":
        raise ValueError(f"values of type {data.dtype}")
    if kind == "matrix":
        if data.ndim != 2:
            raise ValueError(f"a matrix of {data.ndim} dimensions")
        return None
    rows, cols, channels = (int(side) for side in attrs["patch_shape"])
    stride, pad = int(attrs["stride"]), int(attrs["pad"])
    if (
        min(rows, cols, channels, stride) < 1
        or not 0 <= pad < rows
        or rows != cols
        or rows != int(attrs["patch"])
    ):
        raise ValueError("its patch, stride or padding")
    if sides is None:
        fits = data.ndim in (3, 4) and (data.shape[3] if data.ndim == 4 else 1) == channels
    else:
        fits = data.ndim == 1 and sides.ndim == 2 and sides.shape[1] == 2 and len(sides) > 0
        fits = fits and rows <= sides.min() and sides.max() < 1 << 20
        fits = fits and int(first_pixels(sides, channels)[-1]) == len(data)
    if not fits:
        raise ValueError("its images do not have the size that it states")
    return (rows, cols, channels), stride, pad


def build(cfg: DataConfig) -> Source:
    if cfg.path is None:
        raise InputError("data=prepared needs data.path=FILE, written by a prepare command")
    return load(existing(cfg.path, "a prepared file"), cfg)


# Settings that may differ: where the files were, and what is applied when a prepared file is opened.
LATER = ("path", "offline", "half", "part", "ordered", "whiten", "scale_input")


def differences(made: dict[str, Any], cfg: DataConfig) -> list[str]:
    """Return the options in which a prepared file differs from `cfg`, as `data.key=value` of the file."""
    return [
        f"data.{key}={'null' if value is None else value}"
        for key, value in made.items()
        if key not in LATER and getattr(cfg, key, value) != value
    ]


def prepared_files(name: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return the prepared files of a data set in the data folders, with their options."""
    found = []
    for root in data_roots():
        for path in sorted(root.glob(f"{name}-*.h5")):
            if is_prepared(path):
                with open_prepared(path) as file:
                    found.append((path, json.loads(as_text(file.attrs["options"]))))
    return found


def reusable(cfg: DataConfig) -> Path | None:
    """Return a prepared file of this data set with the same options, or None."""
    for path, made in prepared_files(cfg.name):
        if made.get("half", "all") == "all" and made.get("part") is None and not differences(made, cfg):
            return path
    return None


def with_near_misses(cfg: DataConfig, problem: InputError) -> InputError:
    """Return the error for a data set that was not found, naming the prepared file with the fewest other options."""
    near = [(len(d), path, d) for path, made in prepared_files(cfg.name) if (d := differences(made, cfg))]
    if not near:
        return problem
    _, path, options = min(near, key=lambda item: item[0])
    return InputError(
        f"{cfg.name}: {path} was prepared with other options; add {' '.join(options)} to use it"
    )

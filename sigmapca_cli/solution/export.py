"""A solution for other programs: npz, safetensors, an ICA of MNE, or an ONNX graph from raw rows and back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.linalg.low_rank import LowRank
from sigmapca_cli.solution.ica import ENDINGS, ica_file
from sigmapca_cli.solution.solution import Solution
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.packages import required

NAMES = ("filters", "sigma", "encoder", "decoder", "rotation", "mean", "scale", "whitening", "clip")
OPSET = 17


def export(run: Any, path: str | Path, kind: str | None = None) -> Path:
    """Write the solution of a run to one file, in one step.

    Parameters
    ----------
    run : runs.read.Run
        A finished run.
    path : str or Path
        Where to write; a file that is there is replaced.
    kind : {"npz", "safetensors", "onnx", "fif"}, optional
        Format; the suffix of `path` unless given.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        If the kind is another one, the run has no solution, a kind cannot hold it, or the package that it needs is
        missing.

    Notes
    -----
    npz and safetensors hold the arrays of `NAMES` that the run has, in float64, and their metadata; of more
    than 2,048 features whitening is two factors (p, r), `whitening_left` and `whitening_right`. onnx
    holds components = ((raw − mean)/scale [@ whitening]) @ encoder and its inverse, in float32. fif is an ICA of MNE
    (`solution.ica`), in a file whose name ends in -ica.fif.
    """
    path = Path(path)
    kind = (kind or path.suffix.lstrip(".")).lower()
    if kind not in WRITERS:
        raise InputError(f"cannot export to {kind or str(path)!r}: choose from {', '.join(WRITERS)}")
    if kind == "fif" and not path.name.endswith(ENDINGS):
        raise InputError(f"{path}: MNE reads an ICA from a name that ends in {ENDINGS[0]}")
    replace_file(path, WRITERS[kind](run))
    return path


def _solution_arrays(run: Any) -> dict[str, np.ndarray]:
    """Return the arrays of `NAMES` that a run has, in float64, contiguous; of a run on maps those of its grid too.

    Raise InputError if filters or sigma are missing.
    """
    found = {name: getattr(run, name, None) for name in NAMES}
    if isinstance(T := found["whitening"], LowRank):
        found |= {"whitening": None, "whitening_left": T.left, "whitening_right": T.right}
    arrays = {name: np.ascontiguousarray(a, dtype=np.float64) for name, a in found.items() if a is not None}
    if run.grid is not None:  # rows are features, which have their cells in this grid
        arrays |= {name: a for name, a in run.grid.arrays().items() if name != "grid_name"}
    if missing := [name for name in ("filters", "sigma") if name not in arrays]:
        raise InputError(f"the run has no {missing[0]} to export: is it finished?")
    return arrays


def _facts(run: Any) -> dict[str, str]:
    """Return what a reader needs to use the arrays, as text: format, formula, model, hashes, names, patch shape."""
    attrs = run.attrs
    known = {
        name: str(attrs[name]) for name in ("model", "seed", "config_hash", "data_hash") if name in attrs
    }
    if getattr(run, "names", None):
        known["feature_names"] = json.dumps(run.names, ensure_ascii=False)
    shape = run.patch_shape
    if shape is not None:
        known["patch_shape"] = json.dumps([int(n) for n in shape])
    if run.grid is not None:
        known["grid_dimensions"] = json.dumps(run.grid.names or [str(i) for i in range(len(run.grid.shape))])
    solution = Solution.of(run)
    raw = "raw" if solution.clip is None else "clip(raw, clip[0], clip[1])"
    if solution.pixels:
        known["raw"] = "pixels between 0 and 1: divide integers by the largest value of their type"
    if solution.fills:
        known["missing"] = "nan in raw is replaced by the mean of its feature"
    return {
        "format": "sigmapca-solution",
        "use": f"(({raw} - mean) / scale [@ whitening, or @ whitening_left @ whitening_right.T]) @ encoder",
        **known,
    }


def _npz(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """Return an archive of NumPy; the metadata is a JSON text in `metadata`."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, metadata=np.array(json.dumps(metadata)), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _safetensors(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """Return a file in the safetensors layout: length of the header (u64), header in JSON, padded to 8 bytes, data."""
    header: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F64", "shape": list(a.shape), "data_offsets": [start, start + a.nbytes]}
        start += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = [a.astype("<f8", copy=False).tobytes() for a in arrays.values()]
    return b"".join([len(text).to_bytes(8, "little"), text, *data])


def _onnx(solution: Solution, metadata: dict[str, str]) -> bytes:
    """Return an ONNX graph from raw (rows, p) to components (rows, k) and reconstruction (rows, p), float32.

    The mean is subtracted first instead of being folded into an offset, which would cancel in float32. Raise InputError
    if the package onnx is missing.
    """
    required("exporting to onnx", "onnx")
    from onnx import TensorProto, checker, helper, numpy_helper

    values = {name: getattr(solution, name).astype(np.float32) for name in ("mean", "forward", "back")}
    p, k = solution.forward.shape
    nodes, rows = [], "raw"
    if solution.fills:
        nodes += [
            helper.make_node("IsNaN", ["raw"], ["lacking"]),
            helper.make_node("Where", ["lacking", "mean", "raw"], ["whole"]),
        ]
        rows = "whole"
    if solution.clip is not None:
        values |= dict(zip(("low", "high"), solution.clip.astype(np.float32), strict=True))
        nodes += [
            helper.make_node("Max", [rows, "low"], ["raised"]),
            helper.make_node("Min", ["raised", "high"], ["clipped"]),
        ]
        rows = "clipped"
    nodes += [
        helper.make_node("Sub", [rows, "mean"], ["centred"]),
        helper.make_node("MatMul", ["centred", "forward"], ["components"]),
        helper.make_node("MatMul", ["components", "back"], ["projected"]),
        helper.make_node("Add", ["projected", "mean"], ["reconstruction"]),
    ]
    graph = helper.make_graph(
        nodes,
        "sigmapca",
        [helper.make_tensor_value_info("raw", TensorProto.FLOAT, ["rows", p])],
        [
            helper.make_tensor_value_info("components", TensorProto.FLOAT, ["rows", k]),
            helper.make_tensor_value_info("reconstruction", TensorProto.FLOAT, ["rows", p]),
        ],
        [numpy_helper.from_array(np.ascontiguousarray(a), name) for name, a in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    helper.set_model_props(model, metadata)
    checker.check_model(model)
    return model.SerializeToString()


WRITERS: dict[str, Callable[[Any], bytes]] = {
    "npz": lambda run: _npz(_solution_arrays(run), _facts(run)),
    "safetensors": lambda run: _safetensors(_solution_arrays(run), _facts(run)),
    "onnx": lambda run: _onnx(Solution.of(run), _facts(run)),
    "fif": ica_file,
}

"""Write a run: the metrics while it trains, and run.h5."""

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsFloat

import h5py
import numpy as np

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.files import edit, file_image, put
from sigmapca_cli.storage.lock import InUse
from sigmapca_cli.storage.metrics import MetricTable, json_line, read_metrics_jsonl
from sigmapca_cli.storage.provenance import environment, now, peak_memory
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.sidecars import append
from sigmapca_cli.storage.summary import summary_of, summary_text
from sigmapca_cli.system.atomic import remove_asides, replace_file, write_failed
from sigmapca_cli.system.errors import InputError, RunFailed, Signalled, Stopped

Listener = Callable[[Sequence[tuple[int, Mapping[str, float]]]], None]
FLUSH_SECONDS = 1.0
FLUSH_ROWS = 512


class RunWriter:
    """Writes one run into `folder`.

    `log` buffers and costs a few microseconds; metrics.jsonl is appended in blocks, at least every second
    while values arrive; `snapshot` and `finish` replace run.h5 whole. As a context manager it records how the
    run ended: status `finished` only through `finish`, `interrupted` or `failed` when the block is left by an
    exception.

    With `resume_step` the metrics already in metrics.jsonl up to and including that step are kept, later ones
    dropped: they belong to work that the checkpoint does not contain.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        model: str,
        config_yaml: str = "",
        overrides: Sequence[str] | str = (),
        seed: int = 0,
        device: str = "cpu",
        threads: int = 0,
        config_hash: str = "",
        data_hash: str = "",
        attrs: Mapping[str, Any] | None = None,
        resume_step: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.path = self.folder / fmt.RUN_FILE
        self.metrics_path = self.folder / fmt.METRICS_FILE
        self.config_yaml = config_yaml
        self.overrides = overrides if isinstance(overrides, str) else "\n".join(overrides)
        self.attrs: dict[str, Any] = {
            "format": fmt.FORMAT,
            "format_version": 1,
            "status": fmt.RUNNING,
            "model": model,
            "seed": seed,
            "device": device,
            "threads": threads,
            "created": now(),
            "finished": "",
            "config_hash": config_hash,
            "data_hash": data_hash,
            **environment(),
            **(attrs or {}),
        }
        self.table = MetricTable()
        self.arrays: dict[str, np.ndarray] = {}
        self.patch_shape: tuple[int, int, int] | None = None
        self.evaluation: dict[str, Any] = {}
        self._lines: list[tuple[int, dict[str, float]]] = []
        self.listener: Listener | None = None  # is handed the rows that have been stored
        self._flushed = self._started = time.monotonic()
        self._earlier_seconds = 0.0
        remove_asides(self.folder, (fmt.RUN_FILE, fmt.METRICS_FILE, fmt.CHECKPOINT_FILE))
        if resume_step is not None:
            self._resume(resume_step)
        else:
            self.metrics_path.unlink(missing_ok=True)
        self.snapshot()  # from its first moment a run is found, with its configuration

    def _resume(self, step: int) -> None:
        with contextlib.suppress(InputError):  # the checkpoint is what counts, run.h5 is written anew
            before = StoredRun.open(self.path)
            self.attrs["created"] = before.attrs.get("created", self.attrs["created"])
            self._earlier_seconds = float(before.attrs.get("wall_seconds", 0.0))
        lines = []
        for row in read_metrics_jsonl(self.metrics_path) if self.metrics_path.exists() else []:
            values = {k: math.nan if v is None else float(v) for k, v in row.items() if k != "step"}
            if row["step"] <= step:
                self.table.row(int(row["step"]), values)
                lines.append(json_line(int(row["step"]), values))
        replace_file(self.metrics_path, "".join(lines).encode())

    def log(self, step: int, values: Mapping[str, SupportsFloat]) -> None:
        """Record {name: number} at `step`."""
        floats = {name: float(value) for name, value in values.items()}
        self.table.row(step, floats)
        self._lines.append((step, floats))
        if len(self._lines) >= FLUSH_ROWS or time.monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self, durable: bool = False) -> None:
        """Append what was logged since to metrics.jsonl; `durable` also forces it to disk."""
        self._flushed = time.monotonic()
        if not self._lines and not durable:
            return
        text = "".join(json_line(step, values) for step, values in self._lines).encode()
        try:
            append(self.metrics_path, text, durable=durable)
        except OSError as error:
            raise write_failed(self.metrics_path, error) from error
        rows, self._lines = self._lines, []
        if self.listener is not None and rows:
            self.listener(rows)

    def snapshot(self, **arrays: Any) -> None:
        """Replace run.h5 by the present state: the metrics so far, and the arrays given now or before."""
        self._keep(arrays)
        self.flush()
        self.attrs["wall_seconds"] = self._earlier_seconds + time.monotonic() - self._started
        self.attrs["peak_memory_bytes"] = peak_memory()
        replace_file(self.path, *file_image(self._fill))

    def finish(
        self,
        arrays: Mapping[str, Any] | None = None,
        *,
        status: str = fmt.FINISHED,
        patch_shape: Sequence[int] | None = None,
        evaluation: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the run's last state. Names in `arrays` that the format knows get their dimension names."""
        if status not in fmt.STATUSES:
            raise ValueError(f"status {status!r} is not one of {', '.join(fmt.STATUSES)}")
        if patch_shape is not None:
            rows, columns, channels = (int(n) for n in patch_shape)
            self.patch_shape = (rows, columns, channels)
        self.attrs.update(attrs or {})
        self.evaluation.update(evaluation or {})
        self.attrs["status"] = status
        self.attrs["finished"] = "" if status == fmt.RUNNING else now()
        self.snapshot(**(arrays or {}))

    def _keep(self, arrays: Mapping[str, Any]) -> None:
        for name, value in arrays.items():
            if value is not None:
                found = np.asarray(value)
                self.arrays[name] = (
                    found.astype(h5py.string_dtype("utf-8")) if found.dtype.kind == "U" else found
                )

    def _fill(self, file: h5py.File) -> str:
        string = h5py.string_dtype("utf-8")
        for name, value in self.attrs.items():
            file.attrs[name] = value if value is not None else ""
        file.create_dataset("config", data=self.config_yaml, dtype=string)
        file.create_dataset("overrides", data=self.overrides, dtype=string)
        file.attrs["format_version"] = max([1, *(fmt.NEWER.get(name, 1) for name in self.arrays)])
        scales: dict[str, h5py.Dataset] = {}
        for name, value in self.arrays.items():
            data = file.create_dataset(name, data=value)
            if name in fmt.ARRAYS and value.ndim == len(fmt.ARRAYS[name]):
                _attach_scales(file, data, value.shape, fmt.ARRAYS[name], scales)
        if self.patch_shape is not None and "filters" in file:
            file["filters"].attrs["patch_shape"] = self.patch_shape
        columns = self.table.arrays()
        _fill_metrics(file.create_group("metrics"), columns)
        fill_evaluation(file.create_group("evaluation"), self.evaluation)
        # What was just written is not read again: that took as long as to write it.
        scalars = {
            name: np.asarray(value)[()]
            for name, value in self.evaluation.items()
            if value is not None and "/" not in name and np.ndim(value) == 0
        }
        filters = self.arrays.get("filters")
        return json.dumps(summary_of(file, columns, scalars, None if filters is None else filters.shape))

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is None or self.attrs["status"] != fmt.RUNNING:
            return
        stopped = issubclass(kind, KeyboardInterrupt | SystemExit | Stopped | Signalled)
        # The disk may be the reason we are here, or another owner: let the first error show.
        with contextlib.suppress(RunFailed, InUse):
            self.finish(
                status=fmt.INTERRUPTED if stopped else fmt.FAILED,
                attrs={"error": f"{kind.__name__}: {error}"[:2000]},
            )


def _attach_scales(
    file: h5py.File,
    data: h5py.Dataset,
    shape: tuple[int, ...],
    axes: Sequence[str],
    scales: dict[str, h5py.Dataset],
) -> None:
    """Name the axes, so that xarray and netCDF readers see dimensions: a scale is a plain index 0 … n−1.

    scales: those that the file has; new ones are added.
    """
    for axis, name in enumerate(axes):
        if name not in scales:
            scales[name] = file.create_dataset(name, data=np.arange(shape[axis]))
            scales[name].make_scale(name)
        elif scales[name].shape[0] != shape[axis]:
            return  # an array that does not fit the others stays readable, but unlabelled
        data.dims[axis].attach_scale(scales[name])


def _fill_metrics(group: h5py.Group, columns: Mapping[str, np.ndarray]) -> None:
    steps = group.create_dataset("step", data=columns["step"])
    steps.make_scale("step")
    for name, values in columns.items():
        if name != "step":
            group.create_dataset(name, data=values).dims[0].attach_scale(steps)


def fill_evaluation(group: h5py.Group, values: Mapping[str, Any]) -> None:
    """Numbers, arrays and strings by name; a name with a slash makes a sub-group, None is left out."""
    component = group.file.get("component")
    for name, value in values.items():
        if value is not None:
            data = put(group, name, value)
            if component is not None and data.shape == component.shape:
                data.dims[0].attach_scale(component)


def write_evaluation(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Add {name: scalar or array} to /evaluation of a run, through a copy that replaces its run.h5.

    Raises InputError while the run is still being written: its writer would replace the file again.
    """
    file_path = Path(path) / fmt.RUN_FILE if Path(path).is_dir() else Path(path)

    def change(file: h5py.File) -> str:
        fill_evaluation(file.require_group("evaluation"), values)
        return summary_text(file)

    if StoredRun.open(file_path).status == fmt.RUNNING:
        raise InUse(f"{file_path}: the run is still going on; evaluate it when it has ended")
    edit(file_path, change)

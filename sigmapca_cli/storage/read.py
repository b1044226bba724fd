"""Read a run: run.h5 lazily, and metrics.jsonl while the run is still going."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.linalg.low_rank import LowRank
from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.contents import Contents, check_format
from sigmapca_cli.storage.files import read_whole
from sigmapca_cli.storage.folders import short_name
from sigmapca_cli.storage.grid import Grid
from sigmapca_cli.storage.lock import is_owned
from sigmapca_cli.storage.metrics import MetricTable, latest, read_metrics_jsonl
from sigmapca_cli.storage.stored_yaml import stored_yaml
from sigmapca_cli.storage.summary import read_summary
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import printable
from sigmapca_cli.system.untrusted_files import damaged


def is_run_folder(folder: Path) -> bool:
    """Whether a run wrote here."""
    return (folder / fmt.RUN_FILE).exists() or (folder / fmt.METRICS_FILE).exists()


def true_status(recorded: str, folder: Path) -> str:
    """`running` is believed only while a process that may be alive owns the folder, else `interrupted`."""
    if recorded == fmt.RUNNING and not is_owned(folder):
        return fmt.INTERRUPTED
    return recorded


class StoredRun:
    """Read one run; each part is read when it is first asked for, then kept.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    path : Path
        Its run.h5, which may lie elsewhere.

    Notes
    -----
    Arrays come as stored: filters (p, k), sigma (k,), encoder (p, k), decoder (k, p), rotation (k, k), mean and scale
    (p,), whitening (p, p). One that the run does not have is None. `Run.open` finds both arguments from one path. The
    format is in docs/file-format.md.
    """

    def __init__(self, folder: Path, path: Path) -> None:
        self.folder = folder
        self.path = path

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "StoredRun":
        """Return the run at a path.

        Parameters
        ----------
        path : str or os.PathLike
            A run folder, its run.h5, or a copy of a run.h5 elsewhere.

        Returns
        -------
        StoredRun
            The run; a damaged file is refused now, not later.

        Raises
        ------
        InputError
            If it is no run, is damaged, or has a later format.
        """
        given = Path(path)
        folder, file = (given, given / fmt.RUN_FILE) if given.is_dir() else (given.parent, given)
        run = cls(folder, file)
        if given.is_dir() and not is_run_folder(given):
            raise InputError(f"{given}: not a run folder (no {fmt.RUN_FILE}, no {fmt.METRICS_FILE})")
        if file.exists() or not given.is_dir():
            read_whole(file)  # refuse what is damaged, or no run, now rather than later
            _ = run.attrs
        return run

    @cached_property
    def place(self) -> Path:
        """Return the folder without links and relative parts."""
        return self.folder.resolve()

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self.place.name

    @property
    def short_name(self) -> str:
        """Return its name, or PARENT/NAME where the folder's name has no date, such as SWEEP/NUMBER."""
        return short_name(self.place)

    @cached_property
    def attrs(self) -> dict[str, Any]:
        """Return the root attributes; empty while a young run has no run.h5 yet."""
        return {} if self._contents is None else self._contents.attrs

    @cached_property
    def _contents(self) -> Contents | None:
        """What run.h5 holds; None while a young run has none yet."""
        young = not self.path.exists() and is_run_folder(self.folder)
        return None if young else Contents(self.path)

    @cached_property
    def status(self) -> str:
        """Return running, finished, failed or interrupted."""
        return true_status(self.attrs.get("status", fmt.RUNNING), self.folder)

    @property
    def checkpoint(self) -> Path | None:
        """Return the checkpoint to resume from, or None."""
        path = self.folder / fmt.CHECKPOINT_FILE
        return path if path.exists() else None

    @property
    def resumable(self) -> bool:
        """Return whether the run stopped before its end and left a checkpoint."""
        return self.status in (fmt.INTERRUPTED, fmt.FAILED) and self.checkpoint is not None

    @cached_property
    def config_yaml(self) -> str:
        """Return the resolved configuration, as the text that was written."""
        return self._string("config")

    @cached_property
    def config(self) -> dict[str, Any]:
        """Return the resolved configuration."""
        return stored_yaml(self.config_yaml, self.path)

    @cached_property
    def overrides(self) -> list[str]:
        """Return what was given on the command line."""
        return self._string("overrides").splitlines()

    def array(self, name: str) -> np.ndarray | None:
        """Return one stored array.

        Parameters
        ----------
        name : str
            Its place in run.h5, such as "filters" or "evaluation/kurtosis".

        Returns
        -------
        ndarray or None
            None where the run has no such array.
        """
        return None if self._contents is None else self._contents.array(name)

    @cached_property
    def filters(self) -> np.ndarray | None:
        """Return the filters W (p, k), in standardised coordinates."""
        return self.array("filters")

    @cached_property
    def sigma(self) -> np.ndarray | None:
        """Return σ (k,), the standard deviations of xW."""
        return self.array("sigma")

    @cached_property
    def encoder(self) -> np.ndarray | None:
        """Return the encoder (p, k): components = x @ encoder."""
        return self.array("encoder")

    @cached_property
    def decoder(self) -> np.ndarray | None:
        """Return the decoder (k, p): x ≈ components @ decoder."""
        return self.array("decoder")

    @cached_property
    def rotation(self) -> np.ndarray | None:
        """Return the second rotation V (k, k) of linear ICA, else None."""
        return self.array("rotation")

    @property
    def directions(self) -> np.ndarray | None:
        """Return (p, k): the directions whose projections are the components.

        These are the filters, or with a second rotation (linear ICA) the columns of the encoder, normalised; W alone is
        then only the first layer.
        """
        if self.rotation is None or self.encoder is None:
            return self.filters
        return self.encoder * self.spreads

    @property
    def spreads(self) -> np.ndarray | None:
        """Return (k,): the std of the projections on `directions`: σ, or 1/‖b‖ for a unit-variance component xb."""
        if self.rotation is None or self.encoder is None:
            return self.sigma
        norm = np.linalg.norm(self.encoder, axis=0)
        return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)

    @cached_property
    def mean(self) -> np.ndarray | None:
        """Return the mean (p,) of the raw features."""
        return self.array("mean")

    @cached_property
    def scale(self) -> np.ndarray | None:
        """Return what the centred features (p,) were divided by."""
        return self.array("scale")

    @cached_property
    def names(self) -> list[str] | None:
        """Return the names of the features, or None where the data had no column names."""
        found = self.array("feature_name")
        return None if found is None else [_decode(name) for name in found.tolist()]

    @cached_property
    def grid(self) -> Grid | None:
        """Return where the features lie in an array of several dimensions, such as a map, else None."""
        found = {name: self.array(name) for name in ("grid_shape", "grid_place", "grid_coordinates")}
        if any(value is None for value in found.values()):
            return None
        names = self.array("grid_name")
        with damaged(self.path):
            return Grid.stored(
                {**found, **({} if names is None else {"grid_name": map(_decode, names.tolist())})}
            )

    @cached_property
    def clip(self) -> np.ndarray | None:
        """Return (2, p): least and greatest raw value of each feature, where the training data were clipped."""
        return self.array("clip")

    @cached_property
    def whitening(self) -> Any:
        """Return the whitening matrix (p, p) that followed standardisation, by its factors if these are stored."""
        left, right = self.array("whitening_left"), self.array("whitening_right")
        if left is None or right is None:
            return self.array("whitening")
        return LowRank(left, right)

    @cached_property
    def truth(self) -> dict[str, np.ndarray]:
        """Return the known answer, where the data had one: filters, sources, mixing."""
        found = {name: self.array(f"truth_{name}") for name in ("filters", "sources", "mixing")}
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def patch_shape(self) -> tuple[int, int, int] | None:
        """Return (rows, columns, channels) where a filter is an image patch, else None."""
        return None if self._contents is None else self._contents.patch_shape

    @cached_property
    def metrics(self) -> dict[str, np.ndarray]:
        """Return {"step": (n,), name: (n,)}, the values stored while training.

        They are read from metrics.jsonl while run.h5 does not hold the end of the run.
        """
        live = self.folder / fmt.METRICS_FILE
        ended = self.attrs.get("status", fmt.RUNNING) != fmt.RUNNING
        if not ended and live.exists():
            table = MetricTable()
            for row in read_metrics_jsonl(live):
                step = row.pop("step")
                table.row(step, {k: np.nan if v is None else v for k, v in row.items()})
            return table.arrays()
        return {} if self._contents is None else self._contents.group("metrics")

    @cached_property
    def evaluation(self) -> dict[str, Any]:
        """Return {name: float, str or array}, the metrics of the finished run."""
        found = {} if self._contents is None else self._contents.group("evaluation")
        return {name: _value(array) for name, array in found.items()}

    def _string(self, name: str) -> str:
        value = self.array(name)
        return _decode(value[()]) if value is not None else ""


def _value(array: np.ndarray) -> Any:
    """Return a stored array; of a scalar its value, and of a text its characters, with escapes for those of control."""
    if array.shape == () and array.dtype.kind in "SO":
        return printable(_decode(array[()]), keep="\n\t")
    return array.item() if array.shape == () else array


def _decode(text: Any) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


def summary(folder: Path) -> dict[str, Any]:
    """A run at a glance, for listings: see `summarise`."""
    path = folder / fmt.RUN_FILE
    if path.exists():
        found = read_summary(path)
        check_format(path, found["attrs"])
    else:
        found = {"attrs": {}, "last": {}, "step": None, "evaluation": {}, "shape": None}
    if found["attrs"].get("status", fmt.RUNNING) == fmt.RUNNING:
        step, values = latest(folder / fmt.METRICS_FILE)
        if step is not None:
            found = {**found, "step": step, "last": {**found["last"], **values}}
    return found

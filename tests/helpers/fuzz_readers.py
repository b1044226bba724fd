"""What the program does with a file of each kind, to the end: open, check, standardise, read rows and attributes."""

from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.storage import checkpoint, metrics
from sigmapca_cli.storage.find import UNREADABLE, summarise_folder
from sigmapca_cli.storage.read import StoredRun

KINDS = {
    "wav": "signals", "png": "images", "jpeg": "images", "tiff": "images", "pages": "images",
    "idx": "mnist", "cifar_python": "cifar10",
    "cifar_binary": "cifar10", "cifar_archive": "cifar10", "prepared": "prepared",
}  # fmt: skip


def read(kind: str, path: Path) -> Any:
    """Use the file as a command would."""
    if kind == "run":
        return read_run(path)
    if kind == "metrics":
        table = metrics.MetricTable()
        for row in metrics.read_metrics_jsonl(path):
            table.row(int(row.pop("step")), row)
        return table.arrays(), metrics.latest(path)
    if kind == "checkpoint":
        return checkpoint.load(path, config_hash="c", data_hash="d")
    options: dict[str, Any] = {"drop": "kind", "missing": "mean", "clip": 0.1} if kind == "table" else {}
    source = build(DataConfig(name=KINDS.get(kind, "array"), path=str(path), patch=5, mix=False, **options))
    rows = source.take(np.array([0, source.n - 1]))
    assert np.isfinite(rows).all()
    return source.covariance()


def read_run(path: Path) -> None:
    """Everything that `show`, `runs` and `evaluate` ask of a run."""
    summary = summarise_folder(path.parent)
    assert summary.status != UNREADABLE or summary.error
    run = StoredRun.open(path)
    for name in (
        "status", "config", "overrides", "filters", "sigma", "encoder", "decoder", "rotation", "directions", "spreads",
        "mean", "scale", "whitening", "truth", "patch_shape", "metrics", "evaluation", "resumable",
    ):  # fmt: skip
        getattr(run, name)

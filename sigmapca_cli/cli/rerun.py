"""`sigmapca rerun RUN`: do a run again from what it stored, and say whether the result is the same."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sigmapca_cli.system.errors import RunFailed

if TYPE_CHECKING:
    from sigmapca_cli.storage.read import StoredRun

ENVIRONMENT = (
    "sigmapca_version", "side_by_side", "git_commit", "git_changed", "torch_version", "numpy_version", "python_version",
    "platform", "hostname", "device", "threads", "data_hash",
)  # fmt: skip
"""What is said of both runs where their results differ."""


def rerun(
    run: str = typer.Argument(..., help="A folder, the beginning of a hash, or last."),
    changes: list[str] = typer.Argument(
        None, metavar="OVERRIDE", help="What may differ: device=cpu threads=2 outputs=… run_dir=…"
    ),
) -> None:
    """Train again in a new folder with the stored configuration, seed and number of threads; compare bit for bit."""
    from sigmapca_cli.composition.compose import stored_job
    from sigmapca_cli.composition.job import with_changes
    from sigmapca_cli.composition.overrides import values
    from sigmapca_cli.settings.gone_keys import replaced
    from sigmapca_cli.storage.find import resolve
    from sigmapca_cli.storage.read import StoredRun

    before = StoredRun.open(resolve(run))
    job = stored_job(before, changes or [])
    job = with_changes(job, as_before(before, given=values(changes or [])))
    from sigmapca_cli.runner.run import run as train
    from sigmapca_cli.runner.unread import said_of_stored

    for line in (*replaced(before.config, before.attrs), *said_of_stored(job)):
        print(line)
    after = StoredRun.open(train(job))
    # What `evaluate` added or computed again since is no part of what was trained.
    differing = [d for d in differences(before.path, after.path) if not d.startswith("evaluation/")]
    if not differing:
        print(f"identical, bit for bit, in every data set:\n  {before.name}\n  {after.name}")
        return
    for line in differing:
        print(f"  {line}")
    for name in ENVIRONMENT:
        if (old := before.attrs.get(name)) != (new := after.attrs.get(name)):
            print(f"  {name}: {old} then, {new} now")
    raise RunFailed(f"{after.folder}: not identical to {before.folder}: {len(differing)} data sets differ")


def as_before(before: "StoredRun", given: Collection[str]) -> dict[str, Any]:
    """Return the keys that a rerun sets unless they are given: a folder of its own, and computed as it was then."""
    attrs = before.attrs
    keys: dict[str, Any] = {
        # Where to write is for the one who reruns to say: the stored configuration may be a stranger's.
        "run_dir": None,
        "outputs": None,
        # Sums depend on the number of threads in their last bit, and `auto` may mean another device by now.
        "threads": int(attrs.get("threads") or 0) or None,
    }
    if attrs.get("device"):
        keys["device"] = str(attrs["device"])
    return {"if_exists": "new", **{key: value for key, value in keys.items() if key not in given}}


def differences(one: Path, other: Path) -> list[str]:
    """The data sets of two run files that are not the same bits, each with how far apart they are.

    The configurations are left out: they name folders.
    """
    first, second = datasets(one), datasets(other)
    if "feature_name" not in first:
        second.pop("feature_name", None)  # an older run does not say how its columns are called
    lines = [f"{name}: only in one of them" for name in sorted(first.keys() ^ second.keys())]
    for name in sorted(first.keys() & second.keys()):
        a, b = first[name], second[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            lines.append(f"{name}: {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}")
        elif a.tobytes() != b.tobytes():
            lines.append(f"{name}: {distance(a, b)}")
    return lines


def datasets(path: Path) -> dict[str, Any]:
    """Every data set of a run file by name, without configuration and command."""
    import h5py
    import numpy as np

    from sigmapca_cli.storage.files import reading
    from sigmapca_cli.system.untrusted_hdf5 import Budget, as_text, held_bytes

    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and name not in ("config", "overrides"):
            value = budget.read(item)
            found[name] = np.vectorize(as_text, otypes=[str])(value) if value.dtype.kind == "O" else value

    with reading(path) as file:
        budget = Budget(held_bytes(file))
        file.visititems(visit)
    return found


def distance(a: Any, b: Any) -> str:
    """How far two arrays of one shape are apart, in words."""
    import numpy as np

    if a.dtype.kind not in "biuf":
        return "different text"
    gap = np.abs(a.astype(float) - b.astype(float))
    scale = np.nanmax(np.abs(a.astype(float)), initial=0.0)
    return f"largest difference {np.nanmax(gap, initial=0.0):.3g} (largest value {scale:.3g})"

"""A multirun: its folder, what happens when one of its jobs fails, and the table at its end.

Every job notes a failure in its own folder, so that the table can be made for any launcher, by reading.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import RunFailed, SigmapcaError, Stopped

ERROR_FILE = "error.json"


def sweep_folder(overrides: list[str]) -> str:
    """The folder of a sweep: named by its command, so that the same command again finds and resumes it."""
    import hashlib

    from sigmapca_cli.runs.write import outputs_root

    root = next((o.split("=", 1)[1].strip("'\"") for o in overrides if o.startswith("outputs=")), None)
    digest = hashlib.sha256("\0".join(sorted(overrides)).encode()).hexdigest()[:8]
    return str(outputs_root(root) / "sweeps" / digest)


def run_sweep(task: Callable, overrides: list[str], flags: list[str], *, fail_fast: bool) -> None:
    """Run all jobs, then say what failed and why; RunFailed when anything did."""
    from sigmapca_cli.cli.job import quoted, run_job

    given = next(
        (o.split("=", 1)[1].strip("'\"") for o in overrides if o.startswith("hydra.sweep.dir=")), None
    )
    folder = given or sweep_folder(overrides)
    if not given:
        overrides = [*overrides, quoted("hydra.sweep.dir", folder)]
    if not any(o.startswith("if_exists=") for o in overrides):
        overrides = [*overrides, "if_exists=resume"]
    if fail_fast:
        os.environ["SIGMAPCA_FAIL_FAST"] = "1"
    run_job(task, overrides, flags)
    failed = failures(Path(folder))
    done = sum(1 for _ in Path(folder).glob("*/run.h5")) - sum((f / "run.h5").exists() for f, _ in failed)
    print(f"{folder}: {done} finished, {len(failed)} failed")
    for job, reason in failed:
        print(f"  job {job.name}: {' '.join(reason['overrides'])}: {reason['error']}")
    if failed:
        raise RunFailed(
            f"{len(failed)} of {done + len(failed)} jobs failed; the same command again retries them"
        )


def failures(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The jobs of a sweep that left an error, by number."""
    notes = sorted(folder.glob(f"*/{ERROR_FILE}"), key=lambda path: (len(path.parent.name), path.parent.name))
    return [(note.parent, json.loads(note.read_text())) for note in notes]


def in_sweep(task: Callable, cfg: Any) -> Any:
    """One job of a sweep: its error is announced at once and noted; the other jobs go on."""
    from hydra.core.hydra_config import HydraConfig

    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    note = folder / ERROR_FILE
    note.unlink(missing_ok=True)
    try:
        return task(cfg)
    except Stopped as problem:
        print(f"sigmapca: job {hydra.job.num}: {problem}", file=sys.stderr)
        # Not an Exception: Hydra would go on with the next job, which whoever sent the signal did not mean.
        raise SystemExit(problem.exit_status) from None
    except SigmapcaError as problem:
        print(f"sigmapca: job {hydra.job.num}: {problem}", file=sys.stderr, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        entry = {"error": str(problem), "overrides": list(hydra.overrides.task)}
        note.write_text(json.dumps(entry), encoding="utf-8")
        if os.environ.get("SIGMAPCA_FAIL_FAST"):
            raise SystemExit(problem.exit_status) from None
        return None

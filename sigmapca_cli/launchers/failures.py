"""What happens when a job of a sweep fails: it is said at once, and noted in a file, whatever launcher ran it.

A failure of the job itself is noted in its folder (`error.json`). A command that does not fit the run that is finished
there is refused: that is no failure of the run, so it is noted beside the folders, and the next command starts afresh.
"""

import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sigmapca_cli.storage.format import ERROR_FILE, FINISHED, RUN_FILE
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError, RunFailed
from sigmapca_cli.system.text import printable
from sigmapca_cli.system.untrusted_files import refuse_link

REFUSED = ".refused"  # in the sweep's folder: NUMBER.json for each job that was refused by a finished run


@dataclass
class SweepContext:
    """What the jobs and the launcher of one sweep share. It is pickled with the task; `told` is this process's own."""

    fail_fast: bool = False
    told: set[str] = field(default_factory=set)  # the jobs whose failure this process has said

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle, in a process of a launcher: there the folder of a job is named by the same resolver as here."""
        from sigmapca_cli.launchers import adaptive

        self.__dict__.update(state)
        adaptive.register()

    def announce(self, number: Any, message: str) -> None:
        """Say at once what happened to a job."""
        self.told.add(str(number))
        print(f"sigmapca: job {number}: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)

    def failed(
        self, number: Any, folder: Path, problem: Exception, overrides: list[str], trace: str = ""
    ) -> None:
        """Say and note why a job failed; a disk that takes no more must not hide the failure itself."""
        status = getattr(problem, "exit_status", 1)
        text = f"{type(problem).__name__}: {problem}" if trace else str(problem)
        try:
            note(folder, text, overrides, status, trace)
        except (OSError, InputError, RunFailed) as why:
            self.announce(number, f"its failure could not be noted ({why})")
        self.announce(number, f"{text} (traceback in {folder}/{ERROR_FILE})" if trace else text)


def context_of(task: Any) -> SweepContext:
    """Return the context that a sweep's task carries."""
    found = getattr(task, "keywords", {}).get("context")
    return found if isinstance(found, SweepContext) else SweepContext()


def note(folder: Path, error: str, overrides: list[str], status: int, trace: str = "") -> None:
    """Leave word of a failure with this exit status. Raises OSError, InputError or RunFailed as writing does."""
    entry = {
        "error": error,
        "overrides": overrides,
        "status": status,
        **({"traceback": trace} if trace else {}),
    }
    refuse_link(folder)
    target = folder / ERROR_FILE
    if status == InputError.exit_status and is_finished(folder):
        refuse_link(folder.parent / REFUSED)
        target = folder.parent / REFUSED / f"{folder.name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, json.dumps(entry).encode())


def is_finished(folder: Path, config_hash: str | None = None) -> bool:
    """Return whether the folder holds a finished run, of this configuration if one is named."""
    from sigmapca_cli.storage.read import summary

    try:
        attrs = summary(folder)["attrs"] if (folder / RUN_FILE).exists() else {}
    except InputError:
        return False
    return attrs.get("status") == FINISHED and config_hash in (None, attrs.get("config_hash"))


def forget_refusals(sweep: Path) -> None:
    """Remove what the last command left that was refused."""
    refuse_link(sweep / REFUSED)
    shutil.rmtree(sweep / REFUSED, ignore_errors=True)

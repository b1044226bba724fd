"""The jobs of a sweep as they come: each is composed when its turn is near, and left out if it has finished.

So the first begins at once, however many there are. Jobs that can be trained side by side come together.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigmapca_cli.composition.job import Job, job_of
from sigmapca_cli.composition.overrides import read
from sigmapca_cli.composition.sweep_loader import SweepLoader, folder_of
from sigmapca_cli.data.config import kinds_of
from sigmapca_cli.launchers.outcome import is_done
from sigmapca_cli.runner.grouped import MAY_DIFFER, group_key, most_of
from sigmapca_cli.runner.plan import method_of
from sigmapca_cli.settings.schema import words_of
from sigmapca_cli.system.errors import SigmapcaError

Numbered = tuple[int, list[str]]
"""The number of a job and its overrides."""
SILENT = 5.0
"""Seconds in which jobs are left out without a word."""


@dataclass(frozen=True)
class Coming:
    """A job whose turn it is. key: that of its group, None for one that runs alone."""

    number: int
    overrides: list[str]
    folder: Path
    job: Job | None
    key: str | None


class Queue:
    """The jobs of one sweep in the order in which they run; `config`: the sweep's own configuration.

    asked: {number: (the job's folder, its objectives)} of all jobs that have come.
    """

    def __init__(
        self, loader: SweepLoader, config: Any, numbered: Sequence[Numbered], *, alone: bool
    ) -> None:
        self.loader, self.config, self.numbered, self.alone = loader, config, numbered, alone
        self.asked: dict[int, tuple[Path, list[str]]] = {}
        self.hashes: dict[Path, str] = {}
        self.finished, self.told, self.last = 0, 0, time.monotonic()

    def groups(self) -> Iterator[list[Coming]]:
        """Yield the jobs that are to run next: those that are trained side by side, or a single one."""
        for part in self.parts():
            found: dict[str, list[Coming]] = {}
            for number, overrides in part:
                one = self.prepared(number, overrides)
                if one is None:
                    continue
                if one.job is None or one.key is None:
                    yield [one]
                    continue
                found.setdefault(one.key, []).append(one)
                if len(found[one.key]) == most_of(one.job.cfg.k):
                    yield found.pop(one.key)
            yield from found.values()

    def parts(self) -> Collection[list[Numbered]]:
        """Return the jobs by what they share: only jobs of one part can be of one group."""
        found: dict[tuple[str, ...], list[Numbered]] = {}
        for number, overrides in self.numbered:
            keys = {word: read(word).key_or_group for word in overrides}
            own = [word for word, key in keys.items() if {key, key.split(".")[0]}.isdisjoint(MAY_DIFFER)]
            found.setdefault((str(number),) if self.alone else tuple(own), []).append((number, overrides))
        return found.values()

    def prepared(self, number: int, overrides: list[str]) -> Coming | None:
        """Return a job that is to run; None for one that has finished, or that a search has asked for before."""
        config = self.loader.job(self.config, overrides, number)
        folder, job, key = folder_of(config), None, None
        self.asked[number] = folder, words_of(config.get("objective"))
        try:
            job = job_of(config)
            if folder in self.hashes:  # another job's folder refuses this one, in its turn
                same = self.hashes[folder] == job.hash
                return None if same else Coming(number, overrides, folder, job, None)
            self.hashes[folder] = job.hash
            # Rows of files may have changed: whether their runs have finished is asked when the rows are read.
            if job.cfg.data.name in kinds_of("made") and is_done(job, folder):
                self.finished += 1
                self.tell(SILENT)
                return None
            key = None if self.alone else group_key(job, method_of(job.cfg))
        except SigmapcaError:
            pass  # it fails in its own turn, where that is announced and noted
        return Coming(number, overrides, folder, job, key)

    def tell(self, silent: float = 0.0) -> None:
        """Say how many jobs have been left out, if these are more than were said, and so many seconds ago."""
        if self.finished > self.told and time.monotonic() - self.last >= silent:
            self.told, self.last = self.finished, time.monotonic()
            print(f"already finished: {self.finished} of {len(self.numbered)} jobs", flush=True)

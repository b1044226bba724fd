"""Progress of a run while it trains: a bar on a terminal, a plain line every few seconds elsewhere."""

import math
import os
import sys
import time
from contextvars import ContextVar

quiet: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether a run prints nothing: a program that trains reads its results elsewhere."""


def figures_text(values: dict[str, float]) -> str:
    """Return the figures of a progress line; those that are not defined are left out."""
    names = {"loss": "loss", "mcc": "MCC"}
    return "  ".join(
        f"{label} {values[name]:.5g}"
        for name, label in names.items()
        if math.isfinite(values.get(name, math.nan))
    )


def clock(seconds: float) -> str:
    """Return a duration as mm:ss or h:mm:ss."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def say(text: str) -> None:
    """Print a line. A closed pipe (`| head`) or a full disk behind a redirection does not end the run."""
    if quiet.get():
        return
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (open for the rest of the process)


class PlainProgress:
    """Progress as one line every few seconds, for logs and pipes."""

    def __init__(self, total: int, every: float = 5.0) -> None:
        self.total, self.every = total, every
        self.first: tuple[float, int] | None = None
        self.last = time.monotonic()

    def update(self, step: int, values: dict[str, float]) -> None:
        """Print a line about step `step`, at most one every few seconds."""
        now = time.monotonic()
        if self.first is None:
            self.first = (now, step)
        elif now - self.last >= self.every or step == self.total:
            self.last = now
            rate = (step - self.first[1]) / max(now - self.first[0], 1e-9)
            left = (self.total - step) / rate if rate else 0.0
            say(f"step {step}/{self.total}  {figures_text(values)}  {rate:,.0f} steps/s  {clock(left)} left")

    def extend(self, total: int) -> None:
        """Set the step at which the present stage ends."""
        self.total = total

    def close(self) -> None:
        """Do nothing: no resource is open."""


class BarProgress:
    """Progress as a bar with loss, MCC where the truth is known, steps per second and time left."""

    def __init__(self, total: int, every: float = 0.2) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.completed}/{task.total}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(compact=True),
            refresh_per_second=5,
            transient=True,
        )
        self.task = self.bar.add_task("train", total=total, figures="")
        self.every, self.last = every, 0.0
        self.first: tuple[float, int] | None = None
        self.bar.start()

    def update(self, step: int, values: dict[str, float]) -> None:
        """Update the bar, at most a few times a second."""
        now = time.monotonic()
        if self.first is None:
            self.first = (now, step)  # a resumed run has not made the steps before this one
        elif now - self.last >= self.every:
            self.last = now
            rate = (step - self.first[1]) / max(now - self.first[0], 1e-9)
            self.bar.update(self.task, completed=step, figures=f"{figures_text(values)}  {rate:,.0f}/s")

    def extend(self, total: int) -> None:
        """Set the step at which the present stage ends."""
        self.bar.update(self.task, total=total)

    def close(self) -> None:
        """Stop the bar and free the terminal."""
        self.bar.stop()


def progress(total: int, form: str = "auto") -> PlainProgress | BarProgress:
    """Return the form asked for, or what suits standard output: plain lines unless it is a terminal with a cursor."""
    if quiet.get():
        return PlainProgress(total)
    if form != "auto":
        return BarProgress(total) if form == "bar" else PlainProgress(total)
    able = sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
    return BarProgress(total) if able else PlainProgress(total)

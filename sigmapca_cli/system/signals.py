"""Signals: while a run trains they are deferred, and polled between two steps, never inside a step or a write.

A handler that raises can interrupt any instruction, an HDF5 write included. So while the loop runs the handler only
stores the signal. The loop polls after every step, saves, and ends with the exit status that schedulers and shell
scripts expect. Outside the loop (data are prepared, the solution is evaluated) the next step may be minutes away.
There the signal ends the run at once; nothing is lost, because files are only ever replaced whole.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from sigmapca_cli.system.errors import Signalled, Stopped

RESUMABLE = 75
EXIT_STATUS = {
    signal.SIGINT: 130,
    signal.SIGTERM: RESUMABLE,
    signal.SIGHUP: RESUMABLE,
    signal.SIGUSR1: RESUMABLE,
    signal.SIGUSR2: RESUMABLE,
    signal.SIGXCPU: RESUMABLE,  # Grid Engine and LSF: the CPU time is used up
}


# What a command's signals have raised: a library that is being imported may make another error of one, or none.
_raised: list[Signalled] = []
# Whether Ctrl-C has come outside the steps: a library that is being imported may make another error of it.
_interrupted: list[int] = []


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C where no run defers it: as Python does, and note it."""
    _interrupted.append(number)
    raise KeyboardInterrupt


def interrupted() -> bool:
    """Return whether Ctrl-C has come outside the steps, whatever became of the error that it raised."""
    return bool(_interrupted)


def stop_now(number: int, frame: FrameType | None) -> None:
    """Handle a scheduler's signal where no run is guarded: at the start, between two runs, in a command without."""
    when = (
        "between two runs: finished ones stay, and the same command again goes on"
        if Guard.ever_open
        else "before the end: no file is left half-written, and the same command again does it"
    )
    _raised.append(Signalled(f"{signal.Signals(number).name} {when}"))
    raise _raised[-1]


def stopped_before() -> Signalled | None:
    """Return what a command's first signal outside the steps has raised, None where none came: no run begins then."""
    return _raised[0] if _raised else None


def stoppable() -> None:
    """Let a scheduler's signals end the process with 75 from now on; those that are ignored stay ignored."""
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
            signal.signal(signal.SIGINT, interrupt)
        for number, status in EXIT_STATUS.items():
            if status == RESUMABLE and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, stop_now)


class Guard:
    """While this context is open, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end the run in an orderly way.

    Inside `deferring()` the first signal is only stored, in `received`, and a second SIGINT ends the process at once.
    Elsewhere the handler that was installed before is called, or `Signalled` is raised if there was none; it leaves the
    context as `Stopped`.
    """

    ever_open = False  # whether this process has begun a run

    def __init__(self) -> None:
        self.received: int | None = None
        self.defers = False
        self.since, self.again_after = 0.0, 0.0  # seconds in which a second SIGINT still counts as the first
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Guard":
        if (problem := stopped_before()) is not None:
            raise problem
        Guard.ever_open = True
        # Only the main thread may set handlers: in a launcher's worker thread there is nothing to guard.
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_STATUS:
                # Ignored on purpose (nohup, a shell's background job): it stays ignored.
                if signal.getsignal(number) != signal.SIG_IGN:
                    self.before[number] = signal.signal(number, self.handle)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self.before = {}
        if isinstance(error, Signalled):
            raise Stopped(str(error), error.exit_status) from None

    @contextlib.contextmanager
    def deferring(self) -> Iterator[None]:
        """Defer signals inside this block; the caller has to `poll`."""
        self.defers = True
        try:
            yield
        finally:
            self.defers = False

    def poll(self) -> int | None:
        """Return the signal that was received, or None. In a run over several processes this is a collective."""
        return self.received

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: store it, pass it to the handler before, or raise Signalled."""
        if self.defers:
            again = self.received == signal.SIGINT and number == signal.SIGINT
            if again and time.monotonic() - self.since >= self.again_after:
                os.write(2, b"sigmapca: stopped at once by a second Ctrl-C; the last checkpoint stays\n")
                os._exit(130)
            if self.received is None:
                self.received, self.since = number, time.monotonic()
            return
        self.received = number
        handler = self.before.get(number)
        if callable(handler) and handler is not stop_now:
            handler(number, frame)
        else:
            problem = Signalled(
                f"{self.name} outside the training steps; the same command with --if-exists resume goes on",
                exit_status=self.exit_status,
            )
            if handler is stop_now:
                _raised.append(problem)
            raise problem

    @property
    def exit_status(self) -> int:
        """Exit status: 130 after Ctrl-C, 75 (stopped, resumable) after a scheduler's signal."""
        return EXIT_STATUS.get(signal.Signals(self.received or signal.SIGTERM), RESUMABLE)

    @property
    def name(self) -> str:
        """Name of the signal received."""
        return signal.Signals(self.received or signal.SIGTERM).name

    def previous_handler(self) -> Callable[[], None] | None:
        """Return the launcher's own handler of the signal received (submitit requeues in it), to call after saving."""
        number = self.received
        handler = self.before.get(number) if number is not None else None
        if (
            number is None
            or not callable(handler)
            or handler in (signal.default_int_handler, interrupt, stop_now)
        ):
            return None
        return lambda: handler(number, None)

"""Signals: while training they are noted, and looked at between two steps, never inside a step or a write.

A handler that raises can hit any bytecode, an HDF5 write included. So while the loop runs ours only remembers the
signal; the loop asks after every step, saves, and ends with the status that schedulers and shell scripts expect.
Outside the loop (data are prepared, the solution is evaluated) there may be no next step for minutes: there the
signal ends the run at once, which loses nothing, since files are only ever replaced whole.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from sigmapca_cli.errors import Stopped

RESUMABLE = 75
EXIT_STATUS = {
    signal.SIGINT: 130,
    signal.SIGTERM: RESUMABLE,
    signal.SIGHUP: RESUMABLE,
    signal.SIGUSR1: RESUMABLE,
    signal.SIGUSR2: RESUMABLE,
}


class Guard:
    """While entered, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end the run in an orderly way.

    Inside `noting()` the first one is only remembered, in `received`, and a second SIGINT ends the process at once.
    Elsewhere a launcher's own handler gets the signal, or `Stopped` is raised.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.notes = False
        self.since, self.again_after = 0.0, 0.0  # seconds in which a second SIGINT still counts as the first
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Guard":
        # Only the main thread may set handlers: in a launcher's worker thread there is nothing to guard.
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_STATUS:
                # Ignored on purpose (nohup, a shell's background job): it stays ignored.
                if signal.getsignal(number) != signal.SIG_IGN:
                    self.before[number] = signal.signal(number, self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self.before = {}

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Signals are remembered inside this block; whoever opens it looks at `received`."""
        self.notes = True
        try:
            yield
        finally:
            self.notes = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """What the kernel's signal leads to."""
        if self.notes:
            again = self.received == signal.SIGINT and number == signal.SIGINT
            if again and time.monotonic() - self.since >= self.again_after:
                os.write(2, b"sigmapca: stopped at once by a second Ctrl-C; the last checkpoint stays\n")
                os._exit(130)
            if self.received is None:
                self.received, self.since = number, time.monotonic()
            return
        self.received = number
        handler = self.before.get(number)
        if callable(handler):
            handler(number, frame)
        else:
            raise Stopped(
                f"{self.name} outside the training steps; the same command with --if-exists resume goes on",
                exit_status=self.exit_status,
            )

    @property
    def exit_status(self) -> int:
        """130 for a person's Ctrl-C, 75 for a scheduler's signal: stopped, and resumable."""
        return EXIT_STATUS.get(signal.Signals(self.received or signal.SIGTERM), RESUMABLE)

    @property
    def name(self) -> str:
        """The signal's name."""
        return signal.Signals(self.received or signal.SIGTERM).name

    def pass_on(self) -> Callable[[], None] | None:
        """A launcher's own handler for what was received (submitit requeues in it), to call after saving."""
        number = self.received
        handler = self.before.get(number) if number is not None else None
        if number is None or not callable(handler) or handler is signal.default_int_handler:
            return None
        return lambda: handler(number, None)

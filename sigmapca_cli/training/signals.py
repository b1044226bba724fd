"""Signals are noted, and looked at between two steps: never inside one, and never inside a write.

A handler that raises can hit any bytecode, an HDF5 write included. So ours only remembers the signal; the loop
asks after every step, saves, and ends with the status that schedulers and shell scripts expect.
"""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

EXIT_STATUS = {signal.SIGINT: 130, signal.SIGTERM: 75, signal.SIGUSR1: 75, signal.SIGUSR2: 75}


class Guard:
    """While entered, the first SIGINT, SIGTERM, SIGUSR1 or SIGUSR2 is only noted; a second SIGINT ends at once."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Guard":
        # Only the main thread may set handlers: in a launcher's worker thread there is nothing to guard.
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_STATUS:
                self.before[number] = signal.signal(number, self.note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; the second Ctrl-C leaves without saving."""
        if self.received == signal.SIGINT and number == signal.SIGINT:
            os._exit(130)
        self.received = self.received or number

    @property
    def exit_status(self) -> int:
        """130 for a person's Ctrl-C, 75 for a scheduler's signal: stopped, and resumable."""
        return EXIT_STATUS.get(signal.Signals(self.received or signal.SIGTERM), 75)

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

"""Children forked from the test, so that hundreds of them can be started and killed in seconds."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

ROOM = os.path.join("sigmapca_cli", "storage")


def torture(default: int) -> int:
    """How many times: a few by default, SIGMAPCA_TORTURE times in `make torture`."""
    return int(os.environ.get("SIGMAPCA_TORTURE") or default)


def spawn(work: Callable[[], None]) -> int:
    """The pid of a child that does `work` and leaves with status 0, or 1 when it raised."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def end_of(pid: int) -> int:
    """Exit status of a child, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def die_at_line(number: int, rooms: Sequence[str] = (ROOM,)) -> None:
    """Kill this process, as kill -9 does, at the `number`-th line from now of files below one of `rooms`."""
    left = [number]

    def line() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    at_each_line(line, rooms)


def count_lines(note: Path, rooms: Sequence[str]) -> None:
    """Write to `note`, when this process ends, how many lines of these files it has executed."""
    count = [0]

    def line() -> None:
        count[0] += 1

    leave = os._exit  # a command ends by it: what was registered before it is not called

    def noted(status: int) -> None:
        note.write_text(str(count[0]))
        leave(status)

    os._exit = noted
    at_each_line(line, rooms)


def at_each_line(work: Callable[[], None], rooms: Sequence[str]) -> None:
    """Call `work` before each line, from now on, of files whose path contains one of `rooms`."""

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            work()
        return local

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return local if any(room in frame.f_code.co_filename for room in rooms) else None

    sys.settrace(trace)


def race(folder_work: Callable[[int], str], count: int) -> list[str]:
    """Start `count` processes that begin at the same moment and stay alive until the last has finished.

    `folder_work(i)` returns a word; the words of all, in no order.
    """
    start_read, start_write = os.pipe()
    result_read, result_write = os.pipe()
    stop_read, stop_write = os.pipe()

    def work(index: int) -> None:
        os.close(start_write)
        os.close(stop_write)
        os.read(start_read, 1)  # returns when the parent closes its end
        word = folder_work(index)
        os.write(result_write, (word + "\n").encode())
        os.read(stop_read, 1)

    children = [spawn(lambda index=index: work(index)) for index in range(count)]  # type: ignore[misc]
    os.close(result_write)
    os.close(start_write)
    words: list[str] = []
    with os.fdopen(result_read) as results:
        while len(words) < count:
            line = results.readline()
            if not line:
                break
            words.append(line.strip())
    os.close(stop_write)
    assert all(end_of(pid) == 0 for pid in children)
    os.close(start_read)
    os.close(stop_read)
    return words

"""The command line. Nothing heavy is imported before a command runs, and next to nothing before `program` is called."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # without an import of typing: Ctrl-C is answered only from `program` on
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Run the command line; every error a user can act on becomes one line and an exit status."""
    from sigmapca_cli.cli.streams import escaped
    from sigmapca_cli.system.errors import SigmapcaError, Signalled

    # Closed by the caller (`>&-`): Python then has no stream at all, and every print would fail.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if shell := os.environ.get("_SIGMAPCA_COMPLETE"):
        from sigmapca_cli.cli.completion import answer

        return answer(shell)
    # Torch's warnings from within C++ are stack traces. It reads this when it is loaded.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    plain_surroundings()
    sys.stdout, sys.stderr = escaped(sys.stdout), escaped(sys.stderr)
    out = sys.stdout
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
        os.environ["SIGMAPCA_DEBUG"] = "1"
    from sigmapca_cli.system.signals import stoppable

    try:
        stoppable()
        refuse_no_folder()
        refuse_empty_words(sys.argv)
        from sigmapca_cli.cli.app import app
        from sigmapca_cli.system.messages import show_warnings

        show_warnings()
        # Not standalone: Typer would print a wrong option or command as four lines.
        status = app(standalone_mode=False) or 0
        if status == 130:  # Typer's own answer to Ctrl-C, which says nothing
            raise KeyboardInterrupt
        sys.stdout.flush()  # here, where a closed pipe is no news
        sys.exit(status)
    except (SigmapcaError, Signalled) as problem:
        if debug:
            raise
        fail(str(problem), problem.exit_status)
    except KeyboardInterrupt:
        stopped_by_hand()
    except BrokenPipeError:
        closed_pipe(out)
    except SystemExit:
        if sys.stdout is not out:  # a deaf stream is Typer's answer to a closed pipe, before it leaves with 1
            closed_pipe(out)
        raise
    except OSError as problem:
        if debug:
            raise
        fail(f"{problem.strerror or problem}: {problem.filename or nameless(problem)}", 1)
    except MemoryError:
        if debug:
            raise
        fail(
            "out of memory: use fewer rows (such as data.part=1/4), a smaller batch_size or fewer components",
            1,
        )
    except Exception as problem:
        # A fault of ours. It is still one line, with the way to the traceback that a report needs.
        from sigmapca_cli.system.signals import stopped_before

        if (stopped := stopped_before()) is not None:
            fail(str(stopped), stopped.exit_status)
        if hasattr(problem, "format_message"):
            bad_usage(problem)
        if debug:
            raise
        fail(
            f"internal error, {type(problem).__name__}: {problem}; the same command with --debug says where",
            1,
        )


def nameless(problem: OSError) -> str:
    """Return what an error without a file's name is about, as far as that is known."""
    import errno

    if problem.errno == errno.EIO:  # a disk that cannot be read as much as a terminal that is gone
        return "a disk or a terminal answers no more; the same command with --debug says which"
    return f"standard output, or a temporary file (TMPDIR={os.environ.get('TMPDIR', '/tmp')})"


def stopped_by_hand() -> None:
    """Say that Ctrl-C has ended the command, and leave."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not take the line away
    fail("stopped by Ctrl-C", 130)


def refuse_no_folder() -> None:
    """Raise InputError where the working folder has been deleted: no relative path means anything there."""
    from sigmapca_cli.system.errors import InputError

    try:
        os.getcwd()
    except FileNotFoundError:
        raise InputError("the working folder has been deleted: change to another one") from None


def refuse_empty_words(words: list[str]) -> None:
    """Raise InputError for an option or argument without a word, as `-o "$NAME"` has where NAME is not set."""
    from itertools import pairwise

    from sigmapca_cli.system.errors import InputError

    for before, word in pairwise(words):
        if not word or (word.startswith("--") and word.endswith("=")):
            option = word.removesuffix("=") if word else before
            raise InputError(f"{option}: followed by an empty word; give a name, or leave it out")


def plain_surroundings() -> None:
    """Neither the encoding of a redirected output nor a notebook's settings of matplotlib may end a command.

    What cp1252, latin-1 or ascii cannot hold is replaced. `MPLBACKEND` of a notebook names a module that is missing
    here, and a user's matplotlibrc may ask for LaTeX: figures are drawn by matplotlib's own settings.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    os.environ["MPLBACKEND"] = "agg"
    os.environ["SIGMAPCA_OWN_STYLE"] = "1"


def program() -> None:
    """`main` as a process of its own, which ends without taking itself apart: with torch that takes half a second."""
    try:
        _program()
    except KeyboardInterrupt:  # before `main` could answer, or while it did
        os.write(2, b"sigmapca: stopped by Ctrl-C\n")
        os._exit(130)


def _program() -> None:
    import atexit
    import gc

    status: list[Any] = [1]
    # The first is called last: logs, temporary folders and pools are closed by then.
    atexit.register(leave, status)
    # Imports and configurations make many objects and next to no garbage: looking for it took a sixth of the start.
    gc.set_threshold(50_000, 20, 20)
    # Threads of one product wait for each other in a loop: a QR of 363 × 32 takes ten times as long on busy cores.
    # What is worth threads takes them (`processes.mapped`, `processes.blas`). NumPy reads this when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        main()
        status[0] = 0
    except SystemExit as end:
        status[0] = end.code or 0
        raise


def leave(status: list[Any]) -> None:
    """End the process at once with this status, unless threads, other processes of the run or a message are left."""
    import threading

    if threading.active_count() > 1 or "RANK" in os.environ or not isinstance(status[0], int):
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return
    os._exit(status[0])


def closed_pipe(out: Any) -> None:
    """The reader of a pipe went away (`| head`): no news, but Python would print some at exit."""
    sys.stdout = out
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    sys.exit(0)


def bad_usage(problem: Any) -> None:
    """One line for what Typer refuses; its exceptions have no public name, so they are known by their methods."""
    message, context = problem.format_message(), getattr(problem, "ctx", None)
    if context is not None and message == context.get_help():  # no command at all: the help itself
        problem.show()
        sys.exit(problem.exit_code)
    command = "sigmapca" if context is None else context.command_path
    fail(f"{message.rstrip('.')} (see `{command} -h`)", problem.exit_code)


def fail(message: str, status: int) -> None:
    """Print one line on standard error and leave with the status.

    What a library makes of Ctrl-C while it is imported is no error of the user's.
    """
    from sigmapca_cli.system.signals import interrupted

    if status != 130 and interrupted():
        message, status = "stopped by Ctrl-C", 130
    if not one_of_several():
        from sigmapca_cli.system.text import printable

        print(f"sigmapca: {printable(' '.join(message.split()))}", file=sys.stderr)
    sys.exit(status)


def one_of_several() -> bool:
    """Whether this is not the first of the processes that share a run: what ends it ends the first one too.

    It then waits a little, as torchrun ends all the others when one has ended: the first is to be heard before.
    """
    import time

    from sigmapca_cli.system.errors import InputError
    from sigmapca_cli.system.processes import distributed_env

    try:
        here = distributed_env()
    except InputError:
        return False
    if here is None or here.rank == 0:
        return False
    time.sleep(5)
    return True

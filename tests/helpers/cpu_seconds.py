"""What the tests cost: CPU seconds of each file, children and the server of commands included.

A plugin of pytest (`-p cpu_seconds`). The sum stands at the end of every run; `--cpu-seconds` lists the files.
"""

import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

NAME = "cpu_seconds"


def used() -> float:
    """Return the CPU seconds of this process, of its children that have ended, and of the server of commands."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in both)
    shell = sys.modules.get("shell")
    if shell is not None and shell.server.cache_info().currsize:
        try:
            with open(f"/proc/{shell.server().process.pid}/stat") as file:
                ticks = file.read().rpartition(")")[2].split()[11:15]
            seconds += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        except OSError:  # no /proc here
            pass
    return seconds


class Costs:
    """Counts in the process that runs a test, and adds up in the one that reports."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.others = self.started = 0.0  # imports and collection of the workers, or of this process
        self.counted = False  # whether this process has collected, and is no manager of workers

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what a test has used, fixtures that it was the first to need included."""
        self.started = used()
        return (yield)

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Leave the number where the report takes it from, and workers send it along."""
        item.user_properties.append((NAME, used() - self.started))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up."""
        if report.when == "teardown":
            self.files[report.nodeid.partition("::")[0]] += dict(report.user_properties).get(NAME, 0.0)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker has used for imports and collection."""
        self.others += getattr(node, "workeroutput", {}).get(NAME, 0.0)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what it took to get here."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[NAME] = used()
        else:
            self.others += used()
            self.counted = True

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Say the sum, and the files where that is asked for."""
        if config.getoption(NAME):
            for name, seconds in self.files.most_common():
                terminalreporter.write_line(f"{seconds:8.1f}  {name}")
        if not self.counted:
            self.others += time.process_time()
        total = sum(self.files.values()) + self.others
        terminalreporter.write_line(
            f"{total:.0f} CPU seconds, {self.others:.0f} of them for imports and collection"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cpu-seconds`: a line for each file."""
    parser.addoption(
        "--cpu-seconds", dest=NAME, action="store_true", help="list the CPU seconds of each file"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Count in every process of a run."""
    config.pluginmanager.register(Costs(), "cpu seconds")

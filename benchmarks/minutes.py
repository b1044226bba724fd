"""CPU minutes of each experiment of `sigmapca reproduce`, into sigmapca_cli/reproduce/minutes.json.

    python benchmarks/minutes.py                        # each with --quick
    python benchmarks/minutes.py --full points-uniform  # as the paper has it

Each runs alone, in one process, from an empty folder. What is not run again stays in the file.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

from sigmapca_cli.reproduce.command import MINUTES
from sigmapca_cli.reproduce.registry import EXPERIMENTS


def cpu_minutes(name: str, words: list[str]) -> float:
    """Return the CPU minutes of an experiment and of its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sigmapca_cli", "reproduce", name, *words, "--jobs", "1"]
        subprocess.run(command, check=True, cwd=folder, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    kind, words = ("full", []) if given.full else ("quick", ["--quick"])
    for name in given.names or EXPERIMENTS:
        minutes = cpu_minutes(name, words)
        found = json.loads(MINUTES.read_text("utf-8"))
        found.setdefault(name, {})[kind] = float(f"{minutes:.2g}")
        MINUTES.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{name} {kind}: {minutes:.2g} min", flush=True)


if __name__ == "__main__":
    main()

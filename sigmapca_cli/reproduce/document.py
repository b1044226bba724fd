"""docs/reproduction.md: the verdicts as tables."""

from __future__ import annotations

from pathlib import Path

from sigmapca_cli.reproduce.registry import ORDER
from sigmapca_cli.reproduce.summary import (
    MARKS,
    WAYS,
    Report,
    Reports,
    convergence,
    differences,
    mark,
    names,
    number,
    sentence,
    ways,
)
from sigmapca_cli.reproduce.verdicts import SOLVERS, read_reports, write


def write_docs(root: Path, path: Path) -> None:
    """Write the Markdown page from whatever has been run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, markdown(read_reports(root, list(ORDER))))


def markdown(reports: Reports) -> str:
    """The whole page."""
    parts = [
        "# The paper, reproduced",
        "Written by `sigmapca reproduce --all --write-docs`; not to be edited by hand. Each table's command makes "
        "the figure and the verdicts again; `outputs/reproduce/index.html` shows the figures beside them. "
        "Our recipe is `--recipe default`, the authors' own `--recipe paper`; `--solver newton` and `--solver moments` "
        "take our recipe and solve the models that these [solvers](solver.md) know instead of training them; "
        "experiments that have none of these are left out.",
        "\n".join(f"* {sentence(reports, way)}" for way in ways(reports)),
    ]
    if different := differences(reports):
        parts += ["## Where the way decides", decided(reports, different)]
    for name in names(reports):
        parts += [experiment(reports[name, way], way) for way in WAYS if (name, way) in reports]
    return "\n\n".join(parts) + "\n"


def decided(reports: Reports, different: list) -> str:
    """One row a claim, one column a way."""
    tried = ways(reports)
    return table(
        ["experiment", "claim", *(WAYS[way] for way in tried)],
        [[name, claim, *(mark(row.get(way)) for way in tried)] for name, claim, row in different],
    )


def experiment(report: Report, way: str) -> str:
    """One table of verdicts with its command."""
    rows = [
        [
            v["claim"],
            v["measure"],
            f"{v['relation']} {v['threshold']:g}",
            number(v["value"]),
            MARKS[v["held"]] + (f": {v['note']}" if v.get("note") else ""),
        ]
        for v in report["verdicts"]
    ]
    parts = [
        f"## {report['experiment']} ({WAYS[way]})",
        f"{report['title']}. {report['caption']}",
        f"    {report['command']}",
        *([convergence([report])] if way in SOLVERS else []),
        table(["claim", "measure", "threshold", "value", ""], rows),
    ]
    return "\n\n".join(parts)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the bars of |cos| are escaped, so that no text ends a cell."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(
        "|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|" for line in lines
    )

"""docs/reproduction.md: the verdicts as tables."""

from __future__ import annotations

from typing import Any

from sigmapca_cli.reproduce.judge import SOLVERS, Verdict, state
from sigmapca_cli.reproduce.summary import (
    WAYS,
    Report,
    Reports,
    asked,
    convergence,
    differences,
    mark,
    names,
    of_the_paper,
    our_own,
    sentence,
    spread,
    ways,
)


def markdown(reports: Reports) -> str:
    """The whole page."""
    parts = [
        "# The paper, reproduced",
        "Written by `sigmapca reproduce --all --write-docs`; not to be edited by hand. Each table's command makes "
        "the figure and the verdicts again; `outputs/reproduce/index.html` shows the figures beside them. "
        "Our recipe is `--recipe default`, the authors' own `--recipe paper`; `--solver newton` and `--solver moments` "
        "take our recipe and solve the models that these [solvers](solver.md) know; a claim counts as theirs only if "
        "they made the runs that it is about.",
        "A claim **held** where the spread over all seeds fulfils what was asked for, **not held** where none of it "
        "does, and is **undecided** where the threshold lies within it. The spread goes from the least to the greatest "
        "value, and at least one standard deviation on either side of the mean. Claims that the paper does not make "
        "are listed apart.",
        "\n".join(f"* {sentence(reports, way)}" for way in ways(reports)),
    ]
    if different := differences(reports):
        parts += ["## Where the way decides", decided(reports, different)]
    for name in names(reports):
        parts += [experiment(reports[name, way], way) for way in WAYS if (name, way) in reports]
    return "\n\n".join(parts) + "\n"


def decided(reports: Reports, different: list[Any]) -> str:
    """One row a claim, one column a way."""
    tried = ways(reports)
    return table(
        ["experiment", "claim", *(WAYS[way] for way in tried)],
        [[name, claim, *(mark(row.get(way)) for way in tried)] for name, claim, row in different],
    )


def experiment(report: Report, way: str) -> str:
    """One table of verdicts with its command."""
    parts = [
        f"## {report['experiment']} ({WAYS[way]})",
        f"{report['title']}. {report['caption']}",
        f"    {report['command']}",
        *([convergence([report])] if way in SOLVERS else []),
    ]
    if verdicts := of_the_paper(report):
        parts.append(judged(verdicts))
    if verdicts := our_own(report):
        parts += ["Not claimed by the paper:", judged(verdicts)]
    return "\n\n".join(parts)


def judged(verdicts: list[Verdict]) -> str:
    """One row a claim."""
    rows = [[v["claim"], v["measure"], asked(v), spread(v), state(v)] for v in verdicts]
    return table(["claim", "measure", "asked for", "value", ""], rows)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the bars of |cos| are escaped, so that no text ends a cell."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(
        "|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|" for line in lines
    )

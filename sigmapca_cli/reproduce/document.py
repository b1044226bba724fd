"""docs/reproduction.md: the verdicts as tables."""

from __future__ import annotations

from typing import Any

from sigmapca_cli.reproduce.judge import SOLVERS, Verdict, state
from sigmapca_cli.reproduce.registry import in_paper
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
        "`sigmapca reproduce --all --write-docs` writes this page; do not edit it by hand. The command of each table "
        "makes the figure and the verdicts again; `outputs/reproduce/index.html` shows the figures beside them. "
        "Our recipe is `--recipe default`, and the authors' recipe is `--recipe paper`. `--solver newton` and "
        "`--solver moments` use our recipe and solve the models that these [solvers](solver.md) support; a claim "
        "counts for them only if they made the runs that it is about.",
        "A claim has **held** if the whole spread over the seeds satisfies the relation, has **not held** if no part "
        "of it does, and is **undecided** if the threshold is within the spread. The spread goes from the least to the "
        "greatest value, and at least one standard deviation on each side of the mean. Claims that the paper does not "
        "make are listed separately.",
        "\n".join(f"* {sentence(reports, way)}" for way in ways(reports)),
    ]
    if different := differences(reports):
        parts += ["## Claims that depend on recipe or solver", decided(reports, different)]
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
        f"{numbered(report)}. {report['caption']}",
        f"    {report['command']}",
        *([convergence([report])] if way in SOLVERS else []),
    ]
    if verdicts := of_the_paper(report):
        parts.append(judged(verdicts))
    if verdicts := our_own(report):
        parts += ["Not claimed by the paper:", judged(verdicts)]
    return "\n\n".join(parts)


def numbered(report: Report) -> str:
    """The title of an experiment, behind the number of its figure where the paper has one."""
    found = in_paper(report["experiment"])
    return f"{found} of the paper. {report['title']}" if found else str(report["title"])


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

"""What all verdicts come to: how many claims held each way, which the way decides, and docs/reproduction.md of it."""

from __future__ import annotations

from typing import Any

from sigmapca_cli.reproduce.registry import EXPERIMENTS, in_paper
from sigmapca_cli.reproduce.verdicts import (
    HELD,
    NOT_HELD,
    NOT_MEASURED,
    SOLVERS_IN_WORDS,
    UNDECIDED,
    Verdict,
    count,
    state,
)

Report = dict[str, Any]
Reports = dict[tuple[str, str], Report]
WAYS = {"default": "our recipe", "paper": "the paper's recipe", **SOLVERS_IN_WORDS}
HOLDS = {HELD: True, NOT_HELD: False, UNDECIDED: None, NOT_MEASURED: None}


def number(value: float | None) -> str:
    """Three figures, or a dash."""
    return "–" if value is None else f"{value:.3g}"


def spread(verdict: Verdict) -> str:
    """0.91 (0.88 to 0.96, 3 seeds); the value alone where there is one."""
    text = number(verdict["value"])
    if len(verdict.get("values", ())) > 1:
        text += f" ({number(verdict['low'])} to {number(verdict['high'])}, {len(verdict['values'])} seeds)"
    return text


def limit(condition: Verdict) -> str:
    """≥ 0.95."""
    return f"{condition['relation']}\N{NO-BREAK SPACE}{condition['threshold']:g}"


def mark(verdict: Verdict | None) -> str:
    """held (0.97); nothing where this way was not tried."""
    return "" if verdict is None else f"{state(verdict)} ({number(verdict['value'])})"


def asked(verdict: Verdict) -> str:
    """≥ 0.95, and what else is to be said."""
    parts = [limit(verdict)]
    if also := verdict.get("also"):
        parts.append(f"and {also['measure']} {spread(also)}, asked for {limit(also)}")
    if note := verdict.get("note"):
        parts.append(note)
    return "; ".join(parts)


def of_the_paper(report: Report) -> list[Verdict]:
    """The verdicts on claims that the paper makes."""
    return [verdict for verdict in report["verdicts"] if not verdict.get("ours")]


def our_own(report: Report) -> list[Verdict]:
    """The verdicts on claims that the paper does not make."""
    return [verdict for verdict in report["verdicts"] if verdict.get("ours")]


def main_claims(report: Report) -> list[Verdict]:
    """Return the verdicts that an experiment is about: those of the paper's claims, else of our own."""
    return of_the_paper(report) or our_own(report)


def ways(reports: Reports) -> list[str]:
    """The ways that were tried."""
    return [way for way in WAYS if any(of == way for _, of in reports)]


def names(reports: Reports) -> list[str]:
    """The experiments that were run, in the order of the paper, then others."""
    return [name for name in EXPERIMENTS if any(name == one for one, _ in reports)]


def counts(reports: Reports, way: str, own: bool = False) -> dict[str, int]:
    """How many claims of the paper, or of our own, are in each state one way."""
    choose = our_own if own else of_the_paper
    return count([v for (_, of), report in reports.items() if of == way for v in choose(report)])


def share(found: dict[str, int]) -> str:
    """60 of 72 held, 5 undecided."""
    tried = found[HELD] + found[NOT_HELD] + found[UNDECIDED]
    rest = "".join(f", {found[name]} {name}" for name in (UNDECIDED, NOT_MEASURED) if found[name])
    return f"{found[HELD]} of {tried} held{rest}"


def sentence(reports: Reports, way: str) -> str:
    """How many claims held one way, and on what."""
    chosen = [report for (_, of), report in reports.items() if of == way]
    if not chosen:
        return f"With {WAYS[way]}: not run."
    mine = counts(reports, way, own=True)
    ours = f"; of our own {share(mine)}" if sum(mine.values()) else ""
    data = sorted({r["data"] for r in chosen if r["data"] != "synthetic"})
    sizes = {bool(r["quick"]) for r in chosen if r["data"] != "synthetic"} or {False}
    size = " and ".join({True: "quick runs on few images", False: "full runs"}[q] for q in sorted(sizes))
    where = f" on {', '.join(data)}" if data else ""
    return (
        f"With {WAYS[way]}: of the paper's claims {share(counts(reports, way))} in {len(chosen)} experiments{ours}"
        + f" ({size}{where})."
        + (f" {convergence(chosen)}" if way in SOLVERS_IN_WORDS else "")
    )


def convergence(reports: list[Report]) -> str:
    """How many runs the solver took, and on which it did not converge."""
    found = [report[report["solver"]] for report in reports]
    solved, runs = sum(len(f["solved"]) for f in found), sum(f["runs"] for f in found)
    bad = [
        f"{r['experiment']} {key}" if len(found) > 1 else key
        for r in reports
        for key in r[r["solver"]]["unsettled"]
    ]
    end = f"it did not converge on {len(bad)}: {', '.join(bad)}." if bad else "it converged on all of them."
    return f"It solved {solved} of {runs} runs, those of the models that it supports; {end}"


def differences(reports: Reports) -> list[tuple[str, str, dict[str, Verdict]]]:
    """(experiment, claim, {way: verdict}) of every claim that holds one way and not another.

    Compared are runs on the same images: a quick look beside a full run says nothing about the ways.
    """
    found = []
    for name in names(reports):
        of = {way: reports[name, way] for way in WAYS if (name, way) in reports}
        first = next(iter(of.values()))
        alike = {w: r for w, r in of.items() if all(r[key] == first[key] for key in ("data", "quick"))}
        verdicts = {w: {v["claim"]: v for v in r["verdicts"]} for w, r in alike.items()}
        for claim in dict.fromkeys(claim for by_claim in verdicts.values() for claim in by_claim):
            row = {way: by_claim[claim] for way, by_claim in verdicts.items() if claim in by_claim}
            if {HELD, NOT_HELD} <= {state(verdict) for verdict in row.values()}:
                found.append((name, claim, row))
    return found


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
        *([convergence([report])] if way in SOLVERS_IN_WORDS else []),
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

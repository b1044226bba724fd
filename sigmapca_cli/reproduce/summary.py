"""What all verdicts come to: how many claims held each way, and which of them the way decides."""

from __future__ import annotations

from typing import Any

from sigmapca_cli.reproduce.registry import ORDER
from sigmapca_cli.reproduce.verdicts import SOLVERS, Verdict, held

Report = dict[str, Any]
Reports = dict[tuple[str, str], Report]
WAYS = {"default": "our recipe", "paper": "the paper's recipe", **SOLVERS}
MARKS = {True: "held", False: "not held", None: "not measured"}


def number(value: float | None) -> str:
    """Three figures, or a dash."""
    return "–" if value is None else f"{value:.3g}"


def mark(verdict: Verdict | None) -> str:
    """held (0.97); nothing where this way was not tried."""
    return "" if verdict is None else f"{MARKS[verdict['held']]} ({number(verdict['value'])})"


def asked(verdict: Verdict) -> str:
    """≥ 0.95, and what else is to be said."""
    note = verdict.get("note")
    limit = f"{verdict['relation']}\N{NO-BREAK SPACE}{verdict['threshold']:g}"
    return limit + (f"; {note}" if note else "")


def ways(reports: Reports) -> list[str]:
    """The ways that were tried."""
    return [way for way in WAYS if any(of == way for _, of in reports)]


def names(reports: Reports) -> list[str]:
    """The experiments that were run, in the order of the paper."""
    return [name for name in ORDER if any(name == one for one, _ in reports)]


def counts(reports: Reports, way: str) -> tuple[int, int, int]:
    """(held, not held, not measured) over all experiments one way."""
    marks = [held(report["verdicts"]) for (_, of), report in reports.items() if of == way]
    return (sum(m[0] for m in marks), sum(m[1] for m in marks), sum(m[2] for m in marks))


def sentence(reports: Reports, way: str) -> str:
    """How many claims held one way, and on what."""
    chosen = [report for (_, of), report in reports.items() if of == way]
    if not chosen:
        return f"With {WAYS[way]}: not run."
    yes, no, unknown = counts(reports, way)
    data = sorted({r["data"] for r in chosen if r["data"] != "synthetic"})
    sizes = {bool(r["quick"]) for r in chosen if r["data"] != "synthetic"} or {False}
    size = " and ".join({True: "quick runs on few images", False: "full runs"}[q] for q in sorted(sizes))
    where = f" on {', '.join(data)}" if data else ""
    return (
        f"With {WAYS[way]}: {yes} of {yes + no} claims held in {len(chosen)} experiments"
        + (f", {unknown} not measured" if unknown else "")
        + f" ({size}{where})."
        + (f" {convergence(chosen)}" if way in SOLVERS else "")
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
    return f"It solved {solved} of {runs} runs, the models that it knows; {end}"


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
            if {True, False} <= {verdict["held"] for verdict in row.values()}:
                found.append((name, claim, row))
    return found

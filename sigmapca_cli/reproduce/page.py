"""index.html: every figure beside its verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sigmapca_cli.report import page
from sigmapca_cli.report.page import (
    Beside,
    Cell,
    Code,
    Details,
    Picture,
    Section,
    Table,
    Text,
    Verdict,
    Verdicts,
)
from sigmapca_cli.reproduce.registry import EXPERIMENTS
from sigmapca_cli.reproduce.summary import (
    HOLDS,
    WAYS,
    Report,
    Reports,
    asked,
    convergence,
    differences,
    main_claims,
    mark,
    names,
    of_the_paper,
    our_own,
    sentence,
    spread,
    ways,
)
from sigmapca_cli.reproduce.summary import share as in_words
from sigmapca_cli.reproduce.verdicts import (
    HELD,
    NOT_HELD,
    SOLVERS_IN_WORDS,
    UNDECIDED,
    count,
    folder_of,
    read_reports,
    state,
)


def write_page(root: Path) -> Path:
    """Write index.html from whatever has been run."""
    reports = read_reports(root, list(EXPERIMENTS))
    return page.write_page(root / "index.html", "σ-PCA, reproduced", sections(reports, root))


def sections(reports: Reports, root: Path) -> list[Section]:
    """How many claims held, which of them the way decides, then experiment after experiment."""
    tried = ways(reports)
    found = [
        Section("What held", [*(Text(sentence(reports, way)) for way in tried), overview(reports, tried)])
    ]
    if different := differences(reports):
        rows = [[name, claim, *(cell(row.get(way)) for way in tried)] for name, claim, row in different]
        head = ["experiment", "claim", *(WAYS[way] for way in tried)]
        caption = "Claims that hold one way and not another, on the same images"
        found.append(Section("Claims that depend on recipe or solver", [Table(caption, head, rows)]))
    return found + [Section(name, experiment(name, reports, root)) for name in names(reports)]


def overview(reports: Reports, tried: list[str]) -> Table:
    """How many claims held: one row an experiment, one column a way."""
    rows = [
        [Cell(name, href=f"#{Section(name).anchor}"), *(share(reports.get((name, way))) for way in tried)]
        for name in names(reports)
    ]
    return Table("Claims held", ["experiment", *(WAYS[way] for way in tried)], rows)


def share(report: Report | None) -> Cell:
    """3 of 4, the darker the more of them held."""
    if report is None:
        return Cell("–")
    found = count(main_claims(report))
    tried = found[HELD] + found[NOT_HELD] + found[UNDECIDED]
    part = found[HELD] / tried if tried else 0.0
    return Cell(in_words(found) + (" (quick)" if report["quick"] else ""), part, tint=part)


def cell(verdict: dict[str, Any] | None) -> Cell:
    """Held or not, sorted by that."""
    return Cell("–") if verdict is None else Cell(mark(verdict), float(state(verdict) == HELD))


def experiment(name: str, reports: Reports, root: Path) -> list[Any]:
    """The figure beside its verdicts, each way it was made."""
    found = {way: reports[name, way] for way in WAYS if (name, way) in reports}
    first = next(iter(found.values()))
    blocks: list[Any] = [Text(f"{first['title']}. {first['caption']}")]
    for way, report in found.items():
        quick = " in a quick look" if report["quick"] else ""
        words = f"With {WAYS[way]}: {in_words(count(main_claims(report)))}{quick}"
        blocks.append(
            Details(words, one_way(report, folder_of(root, name, way), way), f"{name}-{way}", opened=True)
        )
    return blocks


def one_way(report: Report, folder: Path, way: str) -> list[Any]:
    """Figure, verdicts, and the command that makes both."""
    picture = folder / "figure.png"
    said: list[Any] = [Verdicts([verdict(v) for v in of_the_paper(report)])]
    if own := our_own(report):
        said += [Text("Not claimed by the paper:"), Verdicts([verdict(v) for v in own])]
    if way in SOLVERS_IN_WORDS:
        said.append(Text(convergence([report])))
    shown = [Picture.from_file(picture, report["title"])] if picture.exists() else []
    return [Beside([shown, said]), Code(report["command"])]


def verdict(found: dict[str, Any]) -> Verdict:
    """The claim, what was measured, and what was asked for."""
    detail = f"{found['measure']}: {spread(found)}, asked for {asked(found)}"
    return Verdict(found["claim"], HOLDS[state(found)], state(found), detail)

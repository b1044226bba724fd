"""The report of one run or of a sweep, as sections of a page."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sigmapca_cli.figures.titles import knob, run_title
from sigmapca_cli.report import charts, paths, settings
from sigmapca_cli.report.gallery import METRICS, gallery
from sigmapca_cli.report.gather import Report, last_loss, open_all, ordered, plain, scalar
from sigmapca_cli.report.page import Cell, Code, Details, Section, Table, Text, Verdict, Verdicts, write_page
from sigmapca_cli.report.trust import certificate, verdicts

MOST_COMPARED = 20


def write_report(names: Sequence[str], path: str | os.PathLike[str]) -> Path:
    """Write an HTML report of the named runs; a folder of runs, such as a sweep, means all runs in it."""
    report = Report(*open_all(names))
    drawn = [report.runs[i] for i in report.drawn]
    if len(drawn) < len(report.runs):
        logging.getLogger("sigmapca").warning(
            "%s runs: %d of them are drawn, spaced evenly; the table has all",
            f"{len(report.runs):,}",
            len(drawn),
        )
    folders = [Path(name) for name in names if Path(name).is_dir()]
    folders += [place for run in drawn for place in (run.folder, run.folder.parent)]
    return write_page(path, title(report), sections(report, paths.found_in(folders)), subtitle(report))


def title(report: Report) -> str:
    """Return what the page is about: the run's method, data and a; of several runs their number, and what they share.

    A name that several values share, such as a, is listed with them.
    """
    if len(report.runs) == 1:
        return run_title(report.runs[0])
    begun = [run for run in report.runs if run.attrs.get("data")] or report.runs  # others failed before
    named = list(dict.fromkeys(run_title(run, seed=False).split(", ")[0] for run in begun))
    scales = list(dict.fromkeys(filter(None, map(knob, report.runs))))
    letter = {text.split(" = ")[0] for text in scales}
    values = ordered([text.split(" = ")[1] for text in scales])
    what = f" of {', '.join(named)}" if len(named) <= 3 else ""
    what += f", {letter.pop()} = {', '.join(values)}" if len(letter) == 1 and len(values) <= 8 else ""
    return f"{len(report.runs)} runs{what}"


def with_commas(value: Any) -> str:
    """Return a fact as text; a whole number with thousands separators: 100,000."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def subtitle(report: Report) -> str:
    """Return models, data, sizes, status and date of the runs in one line."""

    def all_of(name: str) -> str:
        return ", ".join(
            dict.fromkeys(with_commas(run.attrs[name]) for run in report.runs if name in run.attrs)
        )

    statuses = Counter(run.status for run in report.runs)
    status = ", ".join(
        f"{count} {name}" if len(report.runs) > 1 else name for name, count in statuses.items()
    )
    made = sorted(str(run.attrs.get("created", ""))[:16].replace("T", " ") for run in report.runs)
    sizes = [f"{name} {all_of(name)}" for name in ("n", "p", "k") if all_of(name)]
    return " · ".join(
        part for part in (all_of("model"), all_of("data"), ", ".join(sizes), status, made[0]) if part
    )


def sections(report: Report, stored: Sequence[paths.StoredPath] = ()) -> list[Section]:
    """Return all sections of the page that have something to show; `stored`: paths that lie beside the runs."""
    many = len(report.runs) > 1
    parts = [
        Section("What differs", _what_differs(report) if many else []),
        Section("Runs" if many else "Result", [_table(report), *_notes(report)]),
        Section("Runs by setting", settings.by_setting(report) if many else []),
        Section("Filters", [gallery(report)] if any(W is not None for W in report.filters) else []),
        Section("Curves", charts.curves(report)),
        Section("Standard deviations", charts.spectra(report)),
        Section("Verdicts", _trust(report)),
        Section("Agreement between runs", _agreement(report) if many else []),
        Section("Agreement of halves", [*(settings.halves(report) if many else []), *paths.blocks(stored)]),
        Section("Configuration", _configuration(report)),
    ]
    return [part for part in parts if part.blocks]


def _what_differs(report: Report) -> list[Any]:
    if not report.settings:
        return [Text("All runs have the same configuration.")]
    rows = []
    for name, row in report.settings.items():
        values = list(dict.fromkeys(row))
        few = ", ".join(values[:12]) + (f", … ({len(values)} values)" if len(values) > 12 else "")
        rows.append([Cell(name), Cell(few)])
    return [Table("Settings that are not the same in all runs", ["setting", "values"], rows, sortable=False)]


def _notes(report: Report) -> list[Any]:
    notes = [Text(f"Left out: {words}") for words in report.left_out]
    if len(report.drawn) < len(report.runs):
        notes.append(
            Text(
                f"Below, {len(report.drawn)} of the {len(report.runs)} runs are shown, spaced evenly over the table."
            )
        )
    return notes


def _table(report: Report) -> Table:
    columns: dict[str, list[Any]] = {
        "run": [
            Cell(str(i + 1), i + 1, f"#run-{i + 1}" if i in report.drawn else "")
            for i in range(len(report.runs))
        ],
        "name": [Cell(run.short_name) for run in report.runs],
        **{plain(name): list(row) for name, row in report.swept.items()},
        "status": [run.status for run in report.runs],
        "loss": [last_loss(run) for run in report.runs],
        **{words: [scalar(run, name) for run in report.runs] for words, name in METRICS.items()},
        "seconds": [round(float(run.attrs.get("wall_seconds", math.nan)), 1) for run in report.runs],
    }
    for name in ("loss", *METRICS, "seconds"):
        if all(math.isnan(value) for value in columns[name]):
            del columns[name]
    if len(report.runs) == 1:
        del columns["run"]
        cells = [[Cell(name), Cell.of(row[0])] for name, row in columns.items()]
        return Table("Status and metrics", ["", "value"], cells, sortable=False)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return Table(
        "Select a column name to sort by it; select a run number to see more of that run", list(columns), rows
    )


def _trust(report: Report) -> list[Any]:
    blocks: list[Any] = []
    for i in report.drawn:
        found = verdicts(report.runs[i])
        if not found:
            continue
        if len(report.runs) == 1:
            blocks.append(Verdicts(found))
        else:
            blocks.append(
                Details(f"{i + 1}: {report.named(i)}", [Verdicts(found)], opened=len(report.drawn) <= 8)
            )
    if not any(certificate(report.runs[i].evaluation) for i in report.drawn):
        blocks.append(
            Text("No certificate of identifiability is stored: sigmapca evaluate RUN --certificate adds one.")
        )
    return blocks


def _agreement(report: Report) -> list[Any]:
    from sigmapca_cli.evaluation.compare import compare

    having = [i for i in report.drawn if report.filters[i] is not None]
    sizes = {len(W) for W in report.filters if W is not None}
    if not 2 <= len(having) <= MOST_COMPARED or len(sizes) > 1:
        return []
    found = compare([_comparable(report, i) for i in having])
    assert found.agreement is not None and found.chance is not None  # all filters have the same features
    numbers = [str(i + 1) for i in having]
    rows = [
        [
            Cell(f"{i + 1}: {report.named(i)}"),
            *(Cell(f"{v:.3f}", float(v), tint=max(float(v), 0.0)) for v in row),
        ]
        for i, row in zip(having, found.agreement, strict=True)
    ]
    caption = f"Mean |cos| of matched filters; chance gives {found.chance:.2f}"
    blocks: list[Any] = [Table(caption, ["run", *numbers], rows, sortable=False)]
    if found.stability is not None:
        blocks.append(Verdicts([Verdict(found.verdict)]))
    return blocks


def _comparable(report: Report, i: int) -> SimpleNamespace:
    """Return what `compare` needs of a run, with the filters that the report shows."""
    run = report.runs[i]
    return SimpleNamespace(
        name=run.name, filters=report.filters[i], config=run.config, attrs=run.attrs, evaluation={}
    )


def _configuration(report: Report) -> list[Any]:
    blocks: list[Any] = []
    for i in report.drawn:
        run = report.runs[i]
        facts = [(name, run.attrs.get(name)) for name in FACTS]
        table = Table(
            "Where it came from",
            ["", "value"],
            [
                [Cell(name.replace("_", " ")), Cell(str(value))]
                for name, value in facts
                if value not in (None, "")
            ],
            sortable=False,
        )
        single = len(report.runs) == 1
        summary = run.short_name if single else f"{i + 1}: {report.named(i)}"
        blocks.append(Details(summary, [table, Code(run.config_yaml)], f"run-{i + 1}", opened=single))
    return blocks


FACTS = (
    "command", "created", "finished", "hostname", "device", "threads", "seed", "config_hash", "data_hash",
    "sigmapca_version", "git_commit", "torch_version", "numpy_version", "platform",
)  # fmt: skip

"""The summary: index.html with every figure beside its verdicts, and docs/reproduction.md."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import Any

from sigmapca_cli.reproduce.registry import ORDER
from sigmapca_cli.reproduce.verdicts import folder_of, held, read_reports, write

Reports = dict[tuple[str, str], dict[str, Any]]
RECIPES = {"default": "our recipe", "paper": "the paper's recipe"}
MARKS = {True: "held", False: "not held", None: "not measured"}

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 1560px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 2.6em 0 .2em; border-top: 1px solid #ddd; padding-top: .9em; }
h3 { font-size: 1em; margin: 1em 0 .3em; }
p.note, code { color: #555; font-size: .88em; } code { overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: .88em; } th { text-align: left; font-weight: 600; }
td, th { padding: .22em .9em .22em 0; vertical-align: top; border-bottom: 1px solid #eee; }
td.n { white-space: nowrap; font-variant-numeric: tabular-nums; }
.side { display: flex; flex-wrap: wrap; gap: 1.6em; align-items: flex-start; }
.side > div { flex: 2 1 620px; min-width: 0; }
.side > div + div { flex: 1 1 380px; } .side img { max-width: 100%; height: auto; }
.yes { color: #00704f; font-weight: 600; } .no { color: #b64400; font-weight: 600; } .none { color: #777; }
"""


def number(value: float | None) -> str:
    """Three figures, or a dash."""
    return "–" if value is None else f"{value:.3g}"


def counts(reports: Reports, recipe: str) -> tuple[int, int, int]:
    """(held, not held, not measured) over all experiments with one recipe."""
    marks = [held(report["verdicts"]) for (_, of), report in reports.items() if of == recipe]
    return (sum(m[0] for m in marks), sum(m[1] for m in marks), sum(m[2] for m in marks))


def sentence(reports: Reports, recipe: str) -> str:
    """How many claims held with a recipe, and on what."""
    chosen = [report for (_, of), report in reports.items() if of == recipe]
    if not chosen:
        return f"With {RECIPES[recipe]}: not run."
    yes, no, unknown = counts(reports, recipe)
    data = sorted({r["data"] for r in chosen if r["data"] != "synthetic"})
    sizes = {bool(r["quick"]) for r in chosen if r["data"] != "synthetic"} or {False}
    size = " and ".join({True: "quick runs on few images", False: "full runs"}[q] for q in sorted(sizes))
    where = f" on {', '.join(data)}" if data else ""
    return (
        f"With {RECIPES[recipe]}: {yes} of {yes + no} claims held in {len(chosen)} experiments"
        + (f", {unknown} not measured" if unknown else "")
        + f" ({size}{where})."
    )


def differences(reports: Reports) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(experiment, verdict with ours, verdict with the paper's) of every claim that the recipe decides."""
    found = []
    for (name, recipe), report in reports.items():
        other = reports.get((name, "paper"))
        if recipe != "default" or other is None:
            continue
        if any(report.get(key) != other.get(key) for key in ("data", "quick")):
            continue  # not the recipe alone
        theirs = {verdict["claim"]: verdict for verdict in other["verdicts"]}
        for verdict in report["verdicts"]:
            twin = theirs.get(verdict["claim"])
            if twin is not None and {verdict["held"], twin["held"]} == {True, False}:
                found.append((name, verdict, twin))
    return found


def html(reports: Reports, root: Path) -> str:
    """One self-contained page."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>σ-PCA, reproduced</title>',
        f"<style>{STYLE}</style></head><body><h1>σ-PCA, reproduced: every figure beside its verdicts</h1>",
        "".join(f"<p>{escape(sentence(reports, recipe))}</p>" for recipe in RECIPES),
        html_differences(reports),
    ]
    for name in ORDER:
        for recipe in RECIPES:
            if (name, recipe) in reports:
                parts.append(html_experiment(reports[name, recipe], folder_of(root, name, recipe)))
    return "\n".join(parts) + "</body></html>\n"


def html_differences(reports: Reports) -> str:
    """The table of claims that hold with one recipe only."""
    rows = [
        f"<tr><td>{escape(name)}</td><td>{escape(ours['claim'])}</td>"
        f"<td class=n>{html_mark(ours)}</td><td class=n>{html_mark(theirs)}</td></tr>"
        for name, ours, theirs in differences(reports)
    ]
    if not rows:
        return ""
    return (
        "<h3>Where the recipe decides</h3><table><tr><th>experiment<th>claim<th>ours<th>the paper's</tr>"
        + "".join(rows)
        + "</table>"
    )


def html_mark(verdict: dict[str, Any]) -> str:
    """held or not, in colour, with the value."""
    kind = {True: "yes", False: "no", None: "none"}[verdict["held"]]
    return f'<span class="{kind}">{MARKS[verdict["held"]]}</span> ({number(verdict["value"])})'


def html_experiment(report: dict[str, Any], folder: Path) -> str:
    """A figure beside its verdicts."""
    rows = "".join(
        f"<tr><td class=n>{html_mark(v)}</td><td>{escape(v['claim'])}<br><span class=none>"
        f"{escape(v['measure'])} {v['relation']} {v['threshold']:g}"
        f"{escape('; ' + v['note']) if v.get('note') else ''}</span></td></tr>"
        for v in report["verdicts"]
    )
    picture = folder / "figure.png"
    image = ""
    if picture.exists():
        data = base64.b64encode(picture.read_bytes()).decode()
        image = f'<img alt="{escape(report["title"])}" src="data:image/png;base64,{data}">'
    return (
        f'<h2 id="{report["experiment"]}-{report["recipe"]}">{escape(report["title"])} '
        f"({RECIPES[report['recipe']]})</h2><p>{escape(report['caption'])}</p>"
        f"<p class=note><code>{escape(report['command'])}</code></p>"
        f'<div class="side"><div>{image}</div><div><table>{rows}</table></div></div>'
    )


def markdown(reports: Reports) -> str:
    """docs/reproduction.md: the verdicts as tables."""
    parts = [
        "# The paper, reproduced",
        "Written by `sigmapca reproduce --all --write-docs`; not to be edited by hand. Each table's command makes "
        "the figure and the verdicts again; `outputs/reproduce/index.html` shows the figures beside them.",
        "\n".join(f"* {sentence(reports, recipe)}" for recipe in RECIPES),
    ]
    if different := differences(reports):
        rows = [f"| {n} | {cell(a['claim'])} | {mark(a)} | {mark(b)} |" for n, a, b in different]
        head = "| experiment | claim | our recipe | the paper's |\n|---|---|---|---|"
        parts += ["## Where the recipe decides", "\n".join([head, *rows])]
    for name in ORDER:
        for recipe in RECIPES:
            if (name, recipe) in reports:
                parts.append(markdown_experiment(reports[name, recipe]))
    return "\n\n".join(parts) + "\n"


def markdown_experiment(report: dict[str, Any]) -> str:
    """One table of verdicts with its command."""
    rows = [
        f"| {cell(v['claim'])} | {cell(v['measure'])} | {v['relation']} {v['threshold']:g} | "
        f"{number(v['value'])} | {MARKS[v['held']]}{cell(': ' + v['note']) if v.get('note') else ''} |"
        for v in report["verdicts"]
    ]
    return "\n".join(
        [
            f"## {report['experiment']} ({RECIPES[report['recipe']]})",
            "",
            f"{report['title']}. {report['caption']}",
            "",
            f"    {report['command']}",
            "",
            "| claim | measure | threshold | value | |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )


def mark(verdict: dict[str, Any]) -> str:
    """held (0.97)."""
    return f"{MARKS[verdict['held']]} ({number(verdict['value'])})"


def cell(text: str) -> str:
    """Text that cannot end a cell of a Markdown table: the bars of |cos| are escaped."""
    return text.replace("|", "\\|")


def write_page(root: Path) -> Path:
    """Write index.html from whatever has been run."""
    path = root / "index.html"
    write(path, html(read_reports(root, list(ORDER)), root))
    return path


def write_docs(root: Path, path: Path) -> None:
    """Write the Markdown page from whatever has been run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, markdown(read_reports(root, list(ORDER))))

"""The results that the pages of docs/ quote, as files of the repository; and the pages made from them.

`reproduce --write-docs` writes docs/results/reproduction.json from outputs/reproduce, and from all files of
docs/results the pages: docs/reproduction.md, and docs/NAME.md of every docs/templates/NAME.md, whose {{…}} are numbers
of these files.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sigmapca_cli.reproduce.registry import ORDER
from sigmapca_cli.reproduce.summary import Reports, counts, markdown, number, share, spread, table
from sigmapca_cli.reproduce.verdicts import WAYS, read_reports, state
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError

Stored = dict[str, Any]
STORED_KINDS = (
    "claim", "held", "ours", "ordering", "mcc", "explained", "command", "agreement", "halves", "results",
    "table",
)  # fmt: skip
OF_A_RUN = {"mcc": "mcc", "explained": "explained_variance", "command": "command"}
PLACE = re.compile(r"\{\{(.+?)\}\}")


def with_new(stored: Stored, root: Path) -> Stored:
    """Return the stored results with those below `root` in place of older ones; what was not made again stays.

    A report is the verdicts of one experiment and way.
    """
    made = {f"{name}/{way}": report for (name, way), report in read_reports(root, list(ORDER)).items()}
    return {
        "command": "sigmapca reproduce --all --recipe both --write-docs",
        "reports": {**stored.get("reports", {}), **made},
    }


def reports_of(stored: Stored) -> Reports:
    """Return the reports of a stored file, by (experiment, way)."""
    found = {tuple(key.rsplit("/", 1)): report for key, report in stored["reports"].items()}
    return {(name, way): found[name, way] for name in ORDER for way in WAYS if (name, way) in found}


def results_of(docs: Path) -> dict[str, Stored]:
    """Return the stored results of docs/results by name."""
    return {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted((docs / "results").glob("*.json"))
    }


def pages(docs: Path, results: dict[str, Stored] | None = None) -> dict[Path, str]:
    """Return every page that is made from the results, those of docs/results by default, with its text."""
    results = results_of(docs) if results is None else results
    made = {docs / "reproduction.md": markdown(reports_of(results["reproduction"]))}
    for template in sorted((docs / "templates").glob("*.md")):
        made[docs / template.name] = render(template.read_text("utf-8"), results)
    return made


def write_docs(root: Path, docs: Path) -> list[Path]:
    """Store the results below `root` and write all pages. Nothing is written if a page quotes what no result holds."""
    results = results_of(docs)
    results["reproduction"] = with_new(results.get("reproduction", {}), root)
    made = pages(docs, results)
    text = json.dumps(results["reproduction"], indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    (docs / "results").mkdir(parents=True, exist_ok=True)
    for path, content in {docs / "results" / "reproduction.json": text, **made}.items():
        replace_file(path, content.encode())
    return list(made)


def render(template: str, results: dict[str, Any]) -> str:
    """Return a template with its places filled.

    {{claim WAY EXPERIMENT | words of the claim | FIELD}}: FIELD is value, low, high, least, greatest, state, spread or
    also. {{held WAY}}, {{ours WAY}}: how many claims
    held. {{ordering}}: the table of docs/results/ordering.json. {{mcc RUN}}, {{explained RUN}}, {{command RUN}}: of a
    run of docs/results/findings.json. {{halves DATA K | START}}: a row of docs/results/halves.json, the agreement from
    this start at each a; {{agreement}}: the table of the other methods. {{table FILE | KEY …}}: a stored table with a
    head and rows. {{results FILE | KEY | KEY …}}:
    anything else. Raises InputError for a place that no result fills.
    """
    return PLACE.sub(lambda match: fill(match.group(1).strip(), results), template)


def fill(words: str, results: dict[str, Any]) -> str:
    """Return the text of one place."""
    kind, _, rest = words.partition(" ")
    stored = results["reproduction"]
    try:
        if kind == "claim":
            return claim(stored, *(part.strip() for part in rest.split(" | ")))
        if kind in ("held", "ours"):
            if rest not in WAYS:
                raise KeyError(rest)
            return share(counts(reports_of(stored), rest, own=kind == "ours"))
        if kind == "ordering":
            return ordering(results["ordering"])
        if kind in OF_A_RUN:
            return str(results["findings"]["runs"][rest][OF_A_RUN[kind]])
        if kind == "agreement":
            return agreement(results["halves"])
        if kind == "halves":
            return halves(results["halves"], *(part.strip() for part in rest.split(" | ")))
        if kind in ("results", "table"):
            found: Any = results
            for key in rest.split(" | "):
                found = found[int(key)] if isinstance(found, list) else found[key]
            return table(found["head"], found["rows"]) if kind == "table" else str(found)
    except (KeyError, ValueError, TypeError, IndexError) as problem:
        raise InputError(f"{{{{{words}}}}}: no such result ({problem})") from None
    raise InputError(f"{{{{{words}}}}}: begin with one of {', '.join(STORED_KINDS)}")


def claim(stored: Stored, where: str, words: str, field: str) -> str:
    """Return a field of the one verdict whose claim has these words in it."""
    way, experiment = where.split(" ")
    found = [v for v in stored["reports"][f"{experiment}/{way}"]["verdicts"] if words in v["claim"]]
    if len(found) != 1:
        raise ValueError(f"{len(found)} claims with these words")
    verdict = found[0]
    if field in ("least", "greatest"):
        return number((min if field == "least" else max)(verdict["values"]))
    if field == "also":
        return number(verdict["also"]["value"])
    if field in ("state", "spread"):
        return state(verdict) if field == "state" else spread(verdict)
    return number(verdict[field])


def ordering(stored: Stored) -> str:
    """Return the table of the methods that are meant to order by index: from how many random starts they did."""
    seeds = stored["seeds"]
    rows = [
        [f"`{name}`", *(f"{row[optimizer]['ordered']} of {seeds}" for optimizer in ("adam", "sgd"))]
        for name, row in stored["methods"].items()
    ]
    return table(["method", "Adam", "SGD"], rows)


METHODS = ("linear PCA", "linear ICA", "FastICA", "picard", "stochastic")
LAMS = ("0.03", "0.1", "0.333", "1")


def agreement(stored: Stored) -> str:
    """Return the table of docs/results/halves.json: the agreement of the halves by every method, and the span."""
    rows = []
    for name, found in sorted(stored.items(), key=lambda item: (item[0].split()[0], int(item[0].split()[1]))):
        steps = [found["moments"][lam] for lam in LAMS]
        cells = [f"{row['agreement']:.4f} ({row['iterations'][0]}, {row['iterations'][1]})" for row in steps]
        data, k = name.split()
        rows.append(
            [f"{data}, k = {k}", *(f"{found[m]:.4f}" for m in METHODS), *cells, f"{found['span']:.4f}"]
        )
    head = ["", "linear PCA", "ICA, log cosh", "FastICA", "picard", "training, a = 4"]
    return table([*head, "moments, λ = 0.03", "0.1", "1/3", "1", "span"], rows)


def halves(stored: Stored, data: str, start: str) -> str:
    """Return the cells of one row: the agreement of the halves at each a, in brackets if one did not converge."""
    cells = []
    for row in stored[data]["newton"].values():
        if start in ("solutions", "apart"):
            cells.append(", ".join(str(value) for value in row["starts"][start]))
        else:
            value = f"{row[start]['agreement']:.4f}"
            cells.append(value if row[start]["converged"] else f"({value})")
    return " | ".join(cells)

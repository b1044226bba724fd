"""What `sigmapca data FILE` prints: the page that is read before the first run."""

from collections.abc import Iterator, Sequence
from typing import Any

from sigmapca_cli.cli.tables import table
from sigmapca_cli.system.errors import InputError

MOST_COLUMNS, SOME_COLUMNS = 40, 12
LISTED_UNNAMED = 12  # columns without names that are listed all the same
MOST_EIGENVALUES = 32
WHY_DIFFERENT = (
    "MDL and Minka's rule count what exceeds an equal, independent noise: unequal or dependent noise adds to them; "
    "the broken stick counts few"
)
# Said elsewhere on the page, or for programs only.
UNLISTED = (
    "columns", "components", "outliers", "scales", "command", "left_out", "missing", "missing_values", "missing_rows",
    "size_float32_bytes", "advice", "halves", "labels", "rising", "components_then", "codes", "task", "k", "why_k",
    "other", "other_when", "then", "beside_items", "copies", "subject",
)  # fmt: skip


def page(facts: dict[str, Any]) -> list[str]:
    """The lines of the page."""
    columns = facts.get("columns") or []
    named = any(not column["name"].startswith("feature ") for column in columns)
    listed = bool(columns) and (named or len(columns) <= LISTED_UNNAMED)
    in_columns = ("mean", "scale", "kurtosis_features") if listed else ()
    lines = [line("task", facts["advice"])]
    lines += [
        line(name, value_text(value)[:16] if name == "hash" else value_text(value))
        for name, value in facts.items()
        if name not in (*UNLISTED, *in_columns) and value is not None
    ]
    if facts["size_float32_bytes"] > 1e6:
        lines.append(line("memory", f"{facts['size_float32_bytes'] / 1e6:.3g} MB as float32"))
    lines += [line(name, text) for name, text in findings(facts)]
    if listed:
        lines += ["", *column_lines(columns)]
    if facts.get("command"):
        lines += ["", "next:", f"  {facts['command']}"]
    if facts.get("then"):
        lines += [f"  {facts['then']}"]
    if facts.get("other"):
        lines += [f"or, {facts['other_when']}:", f"  {facts['other']}"]
    return lines


def findings(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a person has to decide, with a name each."""
    from sigmapca_cli.data.readers.table import override

    if facts.get("left_out"):
        yield "left out", ", ".join(f"{name} ({kind})" for name, kind in facts["left_out"].items())
    if "columns" in facts:
        yield "missing values", missing_text(facts)
    if "components" in facts:
        yield "components", rules(facts["components"])
        if facts.get("components_then"):
            yield "components then", f"{rules(facts['components_then'])}, by the command below"
        for text in facts["outliers"][:3] or ["none: no few rows own a component"]:
            yield "outliers", text
    if facts.get("copies"):
        yield "copies", facts["copies"]
    if facts.get("scales") and facts.get("task") not in ("spectra", "separation"):
        yield "scales", facts["scales"]
    if few := facts.get("labels", [])[:4]:
        text = "only a few whole numbers, as of a class or label: left out below by"
        yield "labels?", f"{', '.join(few)}: {text} {override('drop', few)}"
    if rising := facts.get("rising", [])[:4]:
        text = "rises from row to row, or in turns, as what counts or dates the rows: left out below by"
        yield "index?", f"{', '.join(map(str, rising))}: {text} {override('drop', rising)}"
    if (subject := facts.get("subject")) is not None:
        text = "numbers groups of rows, as of subjects or trials: kept together below by"
        yield "subjects?", f"{subject}: {text} {override('subject', [subject])}"
    if beside := facts.get("beside_items"):
        yield "no items?", f"{', '.join(beside[:4])}: other numbers than answers: left out below"
    if codes := facts.get("codes"):
        words = ", ".join(f"{code:g}" for code in codes)
        yield "codes?", f"{words}: far from all other values of several columns: read below as missing"
    if facts.get("why_k"):
        yield "k", facts["why_k"] if facts["k"] is None else f"{facts['k']}: {facts['why_k']}"
    if facts.get("halves"):
        yield "halves", facts["halves"]


def line(name: str, text: str) -> str:
    """A fact with its name."""
    return f"{name.replace('_', ' '):<20} {text}"


def missing_text(facts: dict[str, Any]) -> str:
    """How many values are missing, and in how many rows."""
    if not facts.get("missing_values"):
        return "none"
    return f"{facts['missing_values']} in {facts['missing_rows']} of {facts['samples']} rows (here filled by the mean)"


def rules(found: dict[str, Any]) -> str:
    """How many components by each rule."""
    shares = [f"{found[share]} for {share}" for share in ("90 %", "95 %", "99 %") if share in found]
    named = {"mdl": "MDL", "parallel": "parallel analysis", "mle": "MLE", "broken_stick": "broken stick"}
    parts = [f"{', '.join(shares)} of the variance"] if shares else []
    parts += [f"{', '.join(f'{name} {found[rule]}' for rule, name in named.items() if rule in found)}"]
    return "; ".join(part for part in parts if part) or "more than are computed"


def column_lines(columns: Sequence[dict[str, Any]]) -> list[str]:
    """A table, one row a column."""
    shown = len(columns) if len(columns) <= MOST_COLUMNS else SOME_COLUMNS
    units = any(column["unit"] for column in columns)
    missing = any(column["missing"] for column in columns)
    numbers = ("mean", "std", "min", "max", "kurtosis")
    header = ["column", *(["unit"] if units else []), "kind", *numbers, *(["missing"] if missing else [])]
    rows = [
        [
            column["name"][:32],
            *([column["unit"]] if units else []),
            column["kind"],
            *(f"{column[name]:.4g}" for name in numbers),
            *([str(column["missing"])] if missing else []),
        ]
        for column in columns[:shown]
    ]
    more = len(columns) - shown
    return [
        *table(header, rows).splitlines(),
        *([f"… and {more} more columns: --json has all"] if more > 0 else []),
    ]


def component_lines(facts: dict[str, Any]) -> list[str]:
    """Eigenvalues with their shares, and what each rule says of k."""
    if "components" not in facts:
        raise InputError("these data have no eigenvalues to show: all features are constant")
    found = facts.get("components_then", facts["components"])
    values = found["eigenvalues"]
    total = found.get("total") or sum(values)
    rows, so_far = [], 0.0
    for i, value in enumerate(values[:MOST_EIGENVALUES], start=1):
        so_far += value
        rows.append([str(i), f"{value:.5g}", f"{100 * value / total:.2f} %", f"{100 * so_far / total:.2f} %"])
    lines = table(["component", "eigenvalue", "share", "so far"], rows).splitlines()
    if len(values) > MOST_EIGENVALUES:
        lines.append(f"… and {len(values) - MOST_EIGENVALUES} more")
    words = {
        "mdl": "least description length",
        "parallel": "parallel analysis: above the eigenvalues of columns permuted by themselves",
        "mle": "Minka's evidence",
        "broken_stick": "broken stick",
    }
    if "total" in found:
        lines.append("the further ones of these data are not computed")
    lines += ["", *(f"k={found[s]:<6} {s} of the variance" for s in ("90 %", "95 %", "99 %") if s in found)]
    lines += [f"k={found[rule]:<6} {text}" for rule, text in words.items() if rule in found]
    if "components_then" in facts:
        lines += ["", "of the data as this command reads them:", f"  {facts['command']}"]
    different = len({found[rule] for rule in words if rule in found}) > 1
    return [*lines, WHY_DIFFERENT] if different else lines


def value_text(value: Any) -> str:
    """A fact as one short text."""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, dict):  # five quantiles have to fit a line
        return "  ".join(f"{name} {inner:.3g}" for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return " × ".join(map(str, value))
    return str(value)

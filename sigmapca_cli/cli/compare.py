"""`sigmapca compare RUN RUN…` and `sigmapca stability RUN…`."""

from pathlib import Path
from typing import Any

import typer

from sigmapca_cli.cli.opening import open_runs
from sigmapca_cli.cli.outputs import claim, drawings
from sigmapca_cli.cli.tables import print_json, table
from sigmapca_cli.system.errors import InputError

RUNS = typer.Argument(..., metavar="RUN...", help="Runs, or folders that hold runs (a sweep).")
JSON = typer.Option(False, "--json", help="One JSON object.")
OUTPUT = typer.Option(None, "--output", "-o", metavar="FOLDER", help="Draw into this folder (PNG and PDF).")
FORCE = typer.Option(False, "--force", help="Replace figures that exist.")


def compare(runs: list[str] = RUNS, as_json: bool = JSON, output: str = OUTPUT, force: bool = FORCE) -> None:
    """Tables; with two runs also component by component and the rotation between them."""
    import dataclasses

    from sigmapca_cli.evaluation.agreement import agreement, rotation_between
    from sigmapca_cli.evaluation.compare import compare as compared

    opened = open_runs(runs)
    if output:
        claim(drawings(Path(output), ("agreement", "matched", "rotation")), force=force)
    found = dataclasses.replace(compared(opened), names=[run.short_name for run in opened])
    pair, match, R = None, None, None
    if len(opened) == 2 and found.agreement is not None:
        A, B = (run.directions for run in opened)
        match, (R, residual) = agreement(A, B), rotation_between(A, B)
        pair = pairwise(opened, match, R, residual)
    if as_json:
        print_json({**found.plain(), **({"pair": pair} if pair else {})})
    else:
        print_comparison(found)
        if pair:
            print_pair(pair)
    if output:
        for path in draw(opened, found, match, R, Path(output)):
            print(path)


def print_comparison(found: Any) -> None:
    """The runs numbered; what was set differently and the metrics, a row each; agreement between the runs."""
    import math

    numbers = [str(i + 1) for i in range(len(found.names))]
    print("\n".join(f"{i}  {name}" for i, name in zip(numbers, found.names, strict=True)))
    rows = [[name, *values] for name, values in found.settings.items()]
    for name, values in found.metrics.items():
        rows.append([name, *("–" if math.isnan(v) else f"{v:.4g}" for v in values)])
    print("\n" + table(["", *numbers], rows))
    if found.agreement is None:
        print("\nthe runs have different numbers of features: no agreement between them")
        return
    matrix = [[i, *(f"{v:.3f}" for v in row)] for i, row in zip(numbers, found.agreement, strict=True)]
    print(f"\nmatched |cos| (chance {found.chance:.2f})\n" + table(["", *numbers], matrix))
    if found.stability is not None:
        print("\n" + found.verdict)


def pairwise(runs: list[Any], match: Any, R: Any, residual: Any) -> dict[str, Any]:
    """Component by component: partner, |cos|, σ side by side, and the entries of R above 0.2."""
    import numpy as np

    from sigmapca_cli.evaluation.agreement import rotation_matches

    a, b = runs
    rows = []
    for i, matches in enumerate(rotation_matches(R)):
        j = int(match.partner[i])
        rows.append(
            {
                "component": i + 1,
                "partner": j + 1 if j >= 0 else None,
                "cosine": None if j < 0 else float(match.per_component[i]),
                "sigma": [float(a.spreads[i]), float(b.spreads[j]) if j >= 0 else None],
                "rotation": [[int(column) + 1, float(value)] for column, value in matches],
            }
        )
    return {
        "mean": match.mean,
        "chance": match.chance,
        "residual": float(np.asarray(residual)),
        "components": rows,
    }


def print_pair(pair: dict[str, Any]) -> None:
    """One line a component."""
    rows = [
        [
            str(row["component"]),
            "–" if row["partner"] is None else str(row["partner"]),
            "–" if row["cosine"] is None else f"{row['cosine']:.4f}",
            f"{row['sigma'][0]:.4g}",
            "–" if row["sigma"][1] is None else f"{row['sigma'][1]:.4g}",
            " ".join(f"{j}:{value:+.2f}" for j, value in row["rotation"]),
        ]
        for row in pair["components"]
    ]
    print(f"\nB = A·R up to a residual of {pair['residual']:.2g}; R where |R| > 0.2\n")
    print(table(["A", "B", "|cos|", "σ A", "σ B", "R (column of B: entry)"], rows))


def draw(runs: list[Any], found: Any, match: Any, R: Any, folder: Path) -> list[Path]:
    """The agreement matrix; with two runs the matched filters in rows and R."""
    import numpy as np

    from sigmapca_cli.figures.agreement import plot_agreement, plot_rotation
    from sigmapca_cli.figures.filters import pixels_of, plot_filters
    from sigmapca_cli.figures.save import save
    from sigmapca_cli.figures.titles import format_sigma

    if found.agreement is None:
        return []
    written = save(plot_agreement(found.agreement, found.names, found.chance), folder / "agreement")
    if len(runs) != 2:
        return written
    a, b = runs
    rows = np.flatnonzero(match.partner >= 0)
    columns = match.partner[rows]
    signs = np.sign(np.sum(a.directions[:, rows] * b.directions[:, columns], axis=0))
    # A row of the one run stands above a row of the other, so both are as long as the grid is wide.
    shape = pixels_of(a)
    per_row = min(len(rows), 8 if shape else 4)
    blocks, labels = [], []
    for start in range(0, len(rows), per_row):
        part = slice(start, start + per_row)
        empty = per_row - len(rows[part])  # places that stay empty in the last two rows: nan
        sides = ((a.directions, a.spreads, rows[part]), (b.directions, b.spreads, columns[part]))
        for side, (directions, spreads, chosen) in enumerate(sides):
            shown = directions[:, chosen] * (signs[part] if side else 1.0)
            blocks.append(np.pad(shown, ((0, 0), (0, empty)), constant_values=np.nan))
            labels += [f"{i + 1}: σ {format_sigma(spreads[i])}" for i in chosen] + [""] * empty
    title = f"rows in turn: {found.names[0]}, and its matches in {found.names[1]}"
    grid = plot_filters(np.hstack(blocks), None, shape, title, columns=per_row, labels=labels, names=a.names)
    written += save(grid, folder / "matched")
    return written + save(plot_rotation(R), folder / "rotation")


def stability(
    runs: list[str] = RUNS, as_json: bool = JSON, output: str = OUTPUT, force: bool = FORCE
) -> None:
    """For each setting, a stability index of each cluster of components over its runs, and which are reproducible."""
    from sigmapca_cli.evaluation.compare import by_setting
    from sigmapca_cli.evaluation.stability import stability as clustered

    groups = by_setting(open_runs(runs))
    repeated = {words: members for words, members in groups.items() if len(members) > 1}
    if not repeated:
        raise InputError(
            "stability needs two or more runs of one setting, which differ in their seed; these differ in "
            f"{'; '.join(list(groups)[:3]) or 'nothing: there is one run'}. For different settings: sigmapca compare"
        )
    folders = [folder_of(words, output, len(repeated) > 1) for words in repeated] if output else []
    if output:
        drawings(Path(output), ())
    for folder in folders:
        claim(drawings(folder, ("stability", "centres", "similarity")), force=force)
    clusters = [clustered([run.directions for run in members]) for members in repeated.values()]
    found = [one_setting(*each) for each in zip(repeated, repeated.values(), clusters, strict=True)]
    alone = sorted(set(groups) - set(repeated))
    if as_json:
        print_json(found[0] if len(found) == 1 else {"settings": found, "alone": alone})
        return
    for i, setting in enumerate(found):
        if i:
            print()
        print_setting(setting)
    if alone:
        print(f"\none run each, nothing to compare: {'; '.join(alone)}")
    for each in zip(folders, repeated, repeated.values(), clusters, strict=False):
        for path in draw_stability(*each):
            print(path)


def folder_of(words: str, output: str, several: bool) -> Path:
    """Return the folder for the figures of a setting: one of its own where there are several."""
    import re

    return Path(output) / re.sub(r"[^\w.=-]+", "_", words) if several else Path(output)


def one_setting(words: str, runs: list[Any], found: Any) -> dict[str, Any]:
    """What the runs of one setting have in common, as plain data."""
    from sigmapca_cli.evaluation.compare import tested_by, weaknesses

    tests = tested_by(runs)
    no_evidence = tests == "nothing"
    rows = [
        {
            "cluster": c + 1,
            "index": float(found.index[c]),
            "runs": float(found.runs[c]),
            "size": int(found.size[c]),
            "reproducible": bool(found.reproducible[c]) and not no_evidence,
            "undecided": bool(found.undecided[c]) and not no_evidence,
            "run": runs[int(found.source[c][0])].short_name,
            "component": int(found.source[c][1]) + 1,
            "sigma": float(runs[int(found.source[c][0])].spreads[int(found.source[c][1])]),
        }
        for c in range(len(found.index))
    ]
    return {
        "setting": words,
        "runs": [run.name for run in runs],
        "mean": found.mean,
        "chance": found.chance,
        "tests": tests,
        "notes": weaknesses(runs),
        "clusters": rows,
    }


NO = {"the data": "no", "the optimiser": "no", "nothing": "–"}
"""What stands for a component that is not reproducible, by what the runs test."""


def print_setting(setting: dict[str, Any]) -> None:
    """A row a cluster, and in sentences how many are reproducible and what weakens that."""
    import textwrap

    from sigmapca_cli.evaluation.compare import in_words

    rows, count = setting["clusters"], len(setting["runs"])
    if setting["setting"]:
        print(setting["setting"])
    cells = [
        [str(row["cluster"]), f"{row['index']:.3f}", f"{row['runs']:.0%}", f"{row['sigma']:.4g}",
         "yes" if row["reproducible"] else "too few runs" if row["undecided"] else NO[setting["tests"]],
         f"{row['run']}:{row['component']}"]
        for row in rows
    ]  # fmt: skip
    print(table(["cluster", "index", "in runs", "σ", "reproducible", "centre (run:component)"], cells))
    good, unsure = (sum(row[name] for row in rows) for name in ("reproducible", "undecided"))
    print("\n" + in_words(good, len(rows), count, setting["mean"], setting["tests"]))
    notes = list(setting["notes"])
    if unsure:
        notes.insert(
            0,
            f"{unsure} more look alike, but in 5 % of cases free axes do so, too (|cos| {setting['chance']:.4f})",
        )
    for note in notes:
        print(textwrap.fill(f"note: {note}", 100, subsequent_indent="  "))


def draw_stability(folder: Path, words: str, runs: list[Any], found: Any) -> list[Path]:
    """The index of each cluster and the similarity of all components of one setting."""
    from sigmapca_cli.figures.agreement import plot_similarity, plot_stability
    from sigmapca_cli.figures.filters import pixels_of, plot_filters
    from sigmapca_cli.figures.save import save

    paths = save(plot_stability(found, words), folder / "stability")
    shape = pixels_of(runs[0])
    title = "centres of the clusters, most stable first"
    centres = plot_filters(found.centrotype, None, shape, title, names=runs[0].names)
    paths += save(centres, folder / "centres")
    return paths + save(
        plot_similarity([run.directions for run in runs], found, words), folder / "similarity"
    )

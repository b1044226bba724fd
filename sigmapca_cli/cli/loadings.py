"""`sigmapca loadings RUN`: features × components, printed or as a table for other programs."""

from pathlib import Path
from typing import Any

import typer

from sigmapca_cli.cli.opening import open_run
from sigmapca_cli.cli.outputs import claim, files_of_run
from sigmapca_cli.cli.tables import table
from sigmapca_cli.settings.checks import choice
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import printable


def loadings(
    run: str = typer.Argument(..., help="A run: folder, name, beginning of its hash, or last."),
    output: str = typer.Argument(
        None, metavar="[FILE]", help="NAME.csv or NAME.parquet; printed without it."
    ),
    rotate: str = typer.Option(
        None,
        "--rotate",
        metavar="METHOD",
        help="varimax, quartimax, equamax, oblimax, oblimin, promax, quartimin.",
    ),
    shares: bool = typer.Option(
        False, "--contributions", help="Also each feature's share in a component, and cos²."
    ),
    halves: bool = typer.Option(
        False, "--halves", help="Also Tucker's congruence of the components that two halves of the rows have."
    ),
    force: bool = typer.Option(False, "--force", help="Replace the file when it exists."),
) -> None:
    """One line a feature: its loadings, and the communality Σ l²; printed with the shares of the variance."""
    from sigmapca_cli.solution.loadings import ROTATIONS, loadings_of, rotated

    opened = open_run(run)
    if output is not None:
        claim(output, keeps=files_of_run(opened), force=force)
    found = loadings_of(opened)
    if rotate is not None:
        choice("--rotate", rotate, ROTATIONS)
        found = rotated(found, rotate)
    blocks = {"component": found.values}
    if shares:
        blocks |= squares(opened, found)
    if output is not None:
        write_table(Path(output), found, blocks)
    else:
        print_tables(found, blocks)
    if halves:
        print_congruence(*of_halves(opened, found, rotate))


def of_halves(run: Any, found: Any, rotate: str | None) -> tuple[str, Any]:
    """What the halves are, and Tucker's congruence (k,) of each component in both, each trained as the run was.

    φ = Σ_j l_j m_j / √(Σ l_j² Σ m_j²) of loadings l, m of one component. The components of each half are matched to
    those of the run. Source: Lorenzo-Seva and ten Berge (2006), Tucker's congruence coefficient.
    """
    import tempfile

    from sigmapca_cli.cli.rerun import as_before
    from sigmapca_cli.composition.compose import stored_job
    from sigmapca_cli.composition.job import with_changes
    from sigmapca_cli.data.describe.describe import silence_warnings
    from sigmapca_cli.data.halves import halves_of
    from sigmapca_cli.data.stored import data_of
    from sigmapca_cli.evaluation.matching import cosines, match
    from sigmapca_cli.runner.objective import runs_of_halves
    from sigmapca_cli.runner.progress import quiet
    from sigmapca_cli.solution.loadings import loadings_of, rotated

    data = data_of(run)
    if data.half != "all":
        raise InputError(f"--halves: the run has data.half={data.half} already; give a run of all rows")
    job = with_changes(stored_job(run), {**as_before(run, given=()), "k": found.values.shape[1]})
    token = quiet.set(True)
    try:
        with silence_warnings(), tempfile.TemporaryDirectory(prefix="sigmapca-") as folder:
            made = halves_of(data)
            halves = [loadings_of(half) for half in runs_of_halves(job, Path(folder), made.names)]
            both = [(half if rotate is None else rotated(half, rotate)).values for half in halves]
    finally:
        quiet.reset(token)
    first, second = (values[:, match(cosines(found.values, values))[1]] for values in both)
    return made.words, cosines(first, second).diagonal()


def print_congruence(words: str, congruence: Any) -> None:
    """One number a component; by common usage it is the same one from 0.95 on, and a similar one from 0.85 on."""
    print(f"\nTucker's congruence of {words} (0.95: the same component, 0.85: a similar one)")
    names = [f"component_{i + 1}" for i in range(len(congruence))]
    print(table(names, [[f"{value:.3f}" for value in congruence]], left=()))


def squares(run: Any, found: Any) -> dict[str, Any]:
    """The contributions of features to components, and cos²."""
    from sigmapca_cli.solution.loadings import contributions, cos_squares, variances

    return {"contribution": contributions(found), "cos2": cos_squares(found, variances(run))}


def headers(name: str, values: Any) -> list[str]:
    """Names of the columns of a block."""
    return [f"{name}_{i + 1}" for i in range(values.shape[1])]


def print_tables(found: Any, blocks: dict[str, Any]) -> None:
    """Print loadings with communalities and shares of the variance, then the other blocks."""
    names = [printable(name) for name in found.names]
    for name, values in blocks.items():
        header, rows = ["feature", *headers(name, values)], numbers(names, values)
        if name == "component":
            header.append("communality")
            rows = [[*row, f"{h:.3f}"] for row, h in zip(rows, found.communality, strict=True)]
            if found.share is not None:
                rows.append(["share of variance", *(f"{v:.3f}" for v in found.share), ""])
        else:
            print()
        print(table(header, rows))
    if found.correlation is not None:
        print("\ncorrelations of the factors")
        print(table(headers("component", found.values), numbers([], found.correlation), left=()))


def numbers(names: list[str], values: Any) -> list[list[str]]:
    """Lines of numbers, after a name each where there are some."""
    lines = [[f"{v:.3f}" for v in line] for line in values]
    return [[name, *line] for name, line in zip(names, lines, strict=True)] if names else lines


def write_table(path: Path, found: Any, blocks: dict[str, Any]) -> None:
    """Write loadings as CSV, or as Parquet, whole or not at all."""
    import pandas

    from sigmapca_cli.system.frames import write_frame

    values = blocks.pop("component")
    frame = pandas.DataFrame(values, columns=headers("component", values))
    frame["communality"] = found.communality
    for name, block in blocks.items():
        frame[headers(name, block)] = block
    frame.index = pandas.Index(found.names, name="feature")
    write_frame(frame, path, index=True)
    print(f"{path}: {len(found.names)} features × {values.shape[1]} components")

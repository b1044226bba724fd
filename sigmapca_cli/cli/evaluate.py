"""`sigmapca evaluate RUN…`: metrics of finished runs, on the training data or on other data."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from sigmapca_cli.cli.opening import open_run
from sigmapca_cli.cli.tables import print_csv, print_json, refuse_two_forms, table
from sigmapca_cli.system.errors import InputError


def evaluate(
    runs: list[str] = typer.Argument(
        ["last"], metavar="[RUN...] data.KEY=VALUE...", help="Runs: folders, names, or last; keys for --data."
    ),
    data: str = typer.Option(None, "--data", metavar="FILE", help="Other rows of the same features."),
    components: bool = typer.Option(False, "--components", help="One line a component, too."),
    certificate: bool = typer.Option(False, "--certificate", help="Which axes are identified, in words."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object a run."),
    as_csv: bool = typer.Option(False, "--csv", help="run,metric,component,value."),
) -> None:
    """Evaluate each run and print a table, JSON or CSV."""
    from sigmapca_cli.system.processes import distributed_env

    refuse_two_forms(as_json, as_csv)
    keys = [text for text in runs if text.startswith("data.")]
    if keys and data is None:
        raise InputError(f"{keys[0]}: says how --data FILE is read; a run's own data are read as they were")
    runs = [text for text in runs if text not in keys] or ["last"]
    here = distributed_env()
    sharing: Any = contextlib.nullcontext()
    if here is not None:
        from sigmapca_cli.runner.shared import sharing_rows

        sharing = sharing_rows(here)
    with sharing:
        rows = {label(name): evaluated(name, data, certificate, keys) for name in runs}
        if here is not None and here.rank:
            raise SystemExit(0)
    print_all(rows, components, as_json, as_csv)


def print_all(rows: dict[str, dict[str, Any]], components: bool, as_json: bool, as_csv: bool) -> None:
    """Print the metrics of all runs as a table, JSON or CSV."""
    import textwrap

    import numpy as np

    if as_json:
        print_json(
            {
                run: {
                    k: v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v for k, v in values.items()
                }
                for run, values in rows.items()
            }
        )
        return
    if as_csv:
        print_csv(("run", "metric", "component", "value"), numbers(rows))
        return
    names = [n for n in dict.fromkeys(k for v in rows.values() for k in v) if is_number(rows, n)]
    lines = [[n, *(f"{float(v[n]):.6g}" if n in v else "–" for v in rows.values())] for n in names]
    print(table(["metric", *rows], lines))
    for run, values in rows.items():
        if components:
            print_components(run, values)
        if "identifiability" in values:
            print(f"\n{run}")
        for line in values.get("identifiability", []):
            print(textwrap.fill(line, 78, initial_indent="  ", subsequent_indent="    "))


def numbers(rows: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, Any, str]]:
    """Yield run, metric, component ("" for a whole run) and value of every number."""
    import numpy as np

    for run, values in rows.items():
        for name, value in values.items():
            if not isinstance(value, list | str):
                each = enumerate(np.ravel(value), start=1) if np.ndim(value) else [("", value)]
                yield from ((run, name, i, f"{float(v):.17g}") for i, v in each)


def label(name: str) -> str:
    """What a run is called in tables: the name as typed where it is short, else the run's own."""
    return name if len(name) <= 20 else open_run(name).short_name


def is_number(rows: dict[str, dict[str, Any]], name: str) -> bool:
    """Is this metric one number a run?"""
    import numpy as np

    values = [v[name] for v in rows.values() if name in v]
    return all(not isinstance(v, str | list) and np.ndim(v) == 0 for v in values)


def print_components(run: str, values: dict[str, Any]) -> None:
    """The metrics that have one value a component."""
    import numpy as np

    k = len(values["pca_sigma"])
    names = [n for n, v in values.items() if isinstance(v, np.ndarray) and v.shape == (k,)]
    print(f"\n{run}")
    print(
        table(
            ["component", *names], [[str(i + 1), *(f"{values[n][i]:.5g}" for n in names)] for i in range(k)]
        )
    )


def evaluated(name: str, data: str | None, certificate: bool, keys: Sequence[str] = ()) -> dict[str, Any]:
    """The metrics of one run on its own training data, stored in the run; on other data stored under its name."""
    from sigmapca_cli.cli.apply import as_options
    from sigmapca_cli.cli.keys import data_keys
    from sigmapca_cli.data import build
    from sigmapca_cli.data.stored import data_of
    from sigmapca_cli.evaluation.evaluate import evaluate_solution
    from sigmapca_cli.solution.new_rows import new_source, placed
    from sigmapca_cli.storage.write import write_evaluation
    from sigmapca_cli.system.row_shards import gathered, sharing

    run = open_run(name)
    try:
        source: Any = build(data_of(run)) if data is None else new_source(run, data, data_keys(keys))
    except InputError as problem:
        raise InputError(str(problem) if data is None else as_options(str(problem))) from None
    if source.p != run.filters.shape[0]:
        raise InputError(f"{run.folder}: filters of {run.filters.shape[0]} features, data of {source.p}")
    if len(set(gathered(source.hash))) > 1:
        raise InputError(f"{run.folder}: the processes read different data; give all of them the same files")
    other = source if data is None else placed(run, source)
    values = evaluate_solution(run.filters, run.sigma, run.encoder, other)
    found: dict[str, Any] = dict(values)
    if certificate:  # a question about the shape of a distribution, wherever it lies
        rows = source if data is None else placed(run, source, centred=True)
        found["identifiability"] = certified(run, rows, values)
    here = sharing()
    if here is not None and here.rank:
        return found  # rank 0 writes
    if data is None:
        write_evaluation(run.path, values)
    else:
        rows_of = f"{Path(data).stem}-{source.hash[:8]}"  # their name, and the beginning of their hash
        write_evaluation(run.path, {f"on/{rows_of}/{k}": v for k, v in values.items()})
    return found


def certified(run: Any, source: Any, values: dict[str, Any]) -> list[str]:
    """Sentences about which axes are identified; the numbers are stored with the evaluation."""
    from sigmapca_cli.evaluation.certificate import to_stored
    from sigmapca_cli.evaluation.certify import certify_run
    from sigmapca_cli.evaluation.words import explain

    found = certify_run(run, source)
    for name in ("curvature", "error", "score", "weakest", "angle", "expected_cosine", "identified"):
        values[f"identifiability/{name}"] = getattr(found, name)
    values["identifiability/verdict"] = to_stored(found.verdict)
    sentences = explain(found)
    values["identifiability/words"] = "\n".join(sentences)
    return sentences

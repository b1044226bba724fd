"""`sigmapca path`: the agreement of halves as τ, λ or a is followed."""

from typing import Any

import typer

from sigmapca_cli.cli.outputs import claim
from sigmapca_cli.cli.tables import print_json
from sigmapca_cli.settings.checks import choice
from sigmapca_cli.system.errors import InputError


def path(
    overrides: list[str] = typer.Argument(
        None, metavar="OVERRIDE", help="data= and k=, as for train; the halves are made here."
    ),
    along: str = typer.Option(
        "tau", "--along", metavar="WHAT", help="tau, lam (solver=moments) or a (solver=newton)."
    ),
    output: str = typer.Option(
        None, "-o", "--output", metavar="STEM", help="Keep it: STEM.png, .pdf, .json."
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON object."),
    force: bool = typer.Option(False, "--force", help="Replace files that exist."),
) -> None:
    """Solve both halves along the path, print one line a knot, and say which knots are good."""
    import dataclasses

    from sigmapca_cli.composition.compose import compose_job
    from sigmapca_cli.data.halves import halves_of
    from sigmapca_cli.figures.save import targets

    choice("--along", along, ("tau", "lam", "a"))
    job = compose_job(overrides or [])
    refuse_fixed(job)
    cfg = job.cfg
    if output:
        claim(targets(output, ("png", "pdf", "json")), reads=[cfg.data.path], force=force)
    made = halves_of(cfg.data)
    halves, name, k = prepared(cfg, made)
    from sigmapca_cli.evaluation import paths
    from sigmapca_cli.solvers import knots as measured

    limit, pca = measured.span(halves), measured.agreement(halves, None)
    if not as_json:
        print(f"{name}, k={k}; halves: {made.words}")
        print(f"halves agree in linear PCA {pca:.4f}, at most (span) {limit:.4f}")
        print(f"{along:>6}  agreement  filters that jumped (in each half)")
    knots = []
    for knot in walked(along, halves, in_time=made.by_time):
        knots.append(knot)
        if not as_json:
            mark = "" if knot.converged else "  not converged"
            print(
                f"{knot.at:>6g}  {knot.agreement:.4f}     {knot.jumps[0]}, {knot.jumps[1]}{mark}", flush=True
            )
    top = measured.best(knots)
    facts: dict[str, Any] = {
        "data": name,
        "along": along,
        "k": k,
        "linear_pca": pca,
        "span": limit,
        "best": in_json(top.at),
    }
    facts["good"] = [in_json(at) for at in paths.supported(knots, limit, k)]
    facts["sentence"] = paths.sentence(along, knots, pca, limit, k)
    facts["halves"] = made.words
    if made.by_time:
        facts["every_second"] = every_second = followed(cfg, along)[0]
        facts["sentence"] += paths.beside(every_second)
    facts["knots"] = [{**dataclasses.asdict(knot), "at": in_json(knot.at)} for knot in knots]
    if as_json:
        print_json(facts)
    else:
        print(facts["sentence"])
    if output:
        from sigmapca_cli.figures.curves import plot_path

        files = kept(facts, plot_path(along, knots, pca, limit, f"{name}, k = {k}"), output)
        if not as_json:
            print("\n".join(map(str, files)))


def refuse_fixed(job: Any) -> None:
    """Raise InputError for keys that a path sets itself, or has no use for."""
    from sigmapca_cli.runner.unread import refuse_all_but

    if job.cfg.data.half != "all":
        raise InputError(f"data.half={job.cfg.data.half}: the halves are made here; leave data.half out")
    refuse_all_but(("k", "recipe", "experiment", "solver.clip"), job, "a path")


WEIGHTS = (0.01, 0.03, 0.1, 0.33, 1.0)
SHORT = {"tau": WEIGHTS, "lam": WEIGHTS, "a": (float("inf"), 10.0, 6.0, 4.0, 3.0, 2.0)}
"""Values of a short path."""


def walked(along: str, halves: Any, values: Any = None, *, in_time: bool = False) -> Any:
    """Return the knots of a path, one by one as they are solved; values: its own unless given."""
    from sigmapca_cli.solvers import path as follow
    from sigmapca_cli.solvers.fourth_moments.choose import LAMS, over_lam

    if along == "tau":
        return follow.over_tau(halves, values or follow.TAUS, in_time=in_time)
    return (
        over_lam(halves, values or LAMS) if along == "lam" else follow.over_a(halves, values or follow.SCALES)
    )


def followed(cfg: Any, along: str, halves: Any = None) -> tuple[float, list[Any], list[Any], int]:
    """Follow a short path on two halves, every second row unless given: best agreement, knots, (P, Y) of both, k."""
    from sigmapca_cli.data.describe.describe import silence_warnings
    from sigmapca_cli.data.halves import EVERY_SECOND
    from sigmapca_cli.solvers.knots import best

    with silence_warnings():
        both, _, k = prepared(cfg, EVERY_SECOND if halves is None else halves)
        knots = list(walked(along, both, SHORT[along]))
    return best(knots).agreement, knots, both, k


def in_json(value: float) -> float | str:
    """Return a number as JSON can hold it: infinity as a word."""
    return value if value < float("inf") else "inf"


def kept(facts: dict[str, Any], figure: Any, stem: str) -> list[Any]:
    """Write the figure and, beside it, the numbers as STEM.json; return the files."""
    import json

    from sigmapca_cli.figures.save import save
    from sigmapca_cli.system.atomic import replace_file

    files = save(figure, stem)
    numbers = files[0].with_suffix(".json")
    replace_file(numbers, (json.dumps(facts, indent=1) + "\n").encode())
    return [*files, numbers]


def prepared(cfg: Any, halves: Any) -> tuple[list[Any], str, int]:
    """(P, Y) of the two halves of the data, the name of the data, k."""
    from sigmapca_cli.data import build
    from sigmapca_cli.data.n_components import count_for
    from sigmapca_cli.solvers.rows.projection import project

    sources = [build(half) for half in halves.configs(cfg.data)]
    # k must be the same number in both halves
    k = min(count_for(source, cfg.k) for source in sources)
    if k == 1:
        raise InputError("k=1: neither τ, λ nor a changes a single filter; a path needs k of 2 or more")
    return [project(source, k, cfg.solver.clip)[:2] for source in sources], cfg.data.name, k

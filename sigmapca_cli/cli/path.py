"""`sigmapca path`: the agreement of halves as λ or a is followed."""

from typing import Any

import typer


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("path", help="Follow λ or a on two halves of the data.")(path)


def path(
    overrides: list[str] = typer.Argument(
        None, metavar="OVERRIDE", help="data= and k=, as for train; the halves are made here."
    ),
    along: str = typer.Option("lam", "--along", metavar="WHAT", help="lam, or a (slower)."),
    output: str = typer.Option(None, "-o", "--output", metavar="STEM", help="Draw it: STEM.png, STEM.pdf."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object."),
) -> None:
    """Solve both halves along the path, print one line a knot, and say which knots are good."""
    import dataclasses
    import json

    from sigmapca_cli.checks import choice

    choice("--along", along, ("lam", "a"))
    halves, name, k = prepared(tuple(overrides or ()))
    from sigmapca_cli.solvers import path as follow

    limit, pca = follow.span(halves), follow.agreement(halves, None)
    if not as_json:
        print(f"{name}, k={k}: halves agree in linear PCA {pca:.4f}, at most (span) {limit:.4f}")
        print(f"{along:>6}  agreement  filters that jumped (even, odd)")
    knots = []
    for knot in follow.over_lam(halves) if along == "lam" else follow.over_a(halves):
        knots.append(knot)
        if not as_json:
            mark = "" if knot.converged else "  not converged"
            print(
                f"{knot.at:>6g}  {knot.agreement:.4f}     {knot.jumps[0]}, {knot.jumps[1]}{mark}", flush=True
            )
    top, near = follow.best(knots), [knot.at for knot in follow.good(knots)]
    if as_json:
        found = {"along": along, "linear_pca": pca, "span": limit, "best": top.at, "good": near}
        print(json.dumps({**found, "knots": [dataclasses.asdict(knot) for knot in knots]}, indent=1))
    else:
        reach = f"within {follow.NEAR} of it from {min(near):g} to {max(near):g}"
        print(f"best: {along}={top.at:g} ({top.agreement:.4f}); {reach}")
    if output:
        from sigmapca_cli.figures.path import plot_path
        from sigmapca_cli.figures.save import save

        for file in save(plot_path(along, knots, pca, limit, f"{name}, k = {k}"), output):
            print(file)


def prepared(overrides: tuple[str, ...]) -> tuple[list[Any], str, int]:
    """(P, Y) of the even and of the odd rows or images, the name of the data, k."""
    import dataclasses

    from sigmapca_cli.reproduce.work import composed

    cfg = composed(overrides).cfg
    from sigmapca_cli.solvers.projected import project
    from sigmapca_cli.sources import build

    found = []
    for half in ("even", "odd"):
        source = build(dataclasses.replace(cfg.data, half=half))
        found.append(project(source, cfg.k, cfg.solver.clip)[:2])
    return found, cfg.data.name, cfg.k

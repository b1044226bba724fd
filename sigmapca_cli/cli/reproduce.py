"""`sigmapca reproduce NAME…`: the paper's figures and tables, each with verdicts on its claims."""

import typer


def reproduce(
    names: list[str] = typer.Argument(None, metavar="NAME", help='Experiments, or "Figure 4" of the paper.'),
    everything: bool = typer.Option(False, "--all", help="All of them."),
    listing: bool = typer.Option(False, "--list", help="List the experiments."),
    data: str = typer.Option(
        None, "--data", metavar="WHICH", help="Images: cifar10, natural (no download; with --quick), mnist."
    ),
    quick: bool = typer.Option(False, "--quick", help="A small version: few images, few steps."),
    jobs: int = typer.Option(0, "--jobs", "-j", min=0, help="Runs side by side; 0: one a core."),
    recipe: str = typer.Option("default", "--recipe", metavar="WHOSE", help="default (ours), paper, both."),
    solver: str = typer.Option(
        "stochastic",
        "--solver",
        metavar="HOW",
        help="stochastic; newton or moments for the models that they know.",
    ),
    seeds: int = typer.Option(
        0,
        "--seeds",
        min=0,
        help="Runs of each panel from different seeds; 0: as many as the experiment says.",
    ),
    write_docs: bool = typer.Option(False, "--write-docs", help="Write docs/reproduction.md as well."),
) -> None:
    """Run what is missing, draw, judge, and write outputs/reproduce/."""
    from sigmapca_cli.reproduce import command

    if listing:
        command.list_experiments()
        return
    command.main(list(names or []), everything, data, quick, jobs, recipe, write_docs, solver, seeds)

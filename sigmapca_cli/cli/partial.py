"""`sigmapca partial`: sums of a part of the rows, to be merged by data=moments."""

from typing import Any

import typer


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("partial", help="Write the sums of a part of the rows, for data=moments.")(partial)


def partial(
    path: str = typer.Argument(..., metavar="FILE", help="A part: any file that data=array reads."),
    keys: list[str] = typer.Argument(None, metavar="data.KEY=VALUE...", help="How the file is read."),
    output: str = typer.Option(..., "--output", "-o", metavar="FILE", help="The file of the sums."),
    axes: str = typer.Option(
        None, "--axes", metavar="FILES", help="Sums of all parts: write fourth moments in their leading axes."
    ),
    k: int = typer.Option(None, "-k", help="With --axes: number of axes; 16 unless given."),
    force: bool = typer.Option(False, "--force", help="Replace the file when it exists."),
) -> None:
    """Read the rows once, and write their count, mean and covariance; parts are merged by data=moments.

    With --axes, write their fourth moments too, in axes that all parts share: solver=moments needs them.
    """
    from pathlib import Path

    from sigmapca_cli.cli.keys import data_keys
    from sigmapca_cli.cli.outputs import claim
    from sigmapca_cli.errors import InputError
    from sigmapca_cli.processes import refuse_several
    from sigmapca_cli.sources import build
    from sigmapca_cli.sources.config import DataConfig
    from sigmapca_cli.sources.moments import write

    refuse_several("partial", "start one for each part")
    claim(output, reads=[path, axes], force=force)
    options = data_keys(keys or [])
    names = ("standardise", "whiten", "whiten_rank", "scale_input", "centre", "epsilon")
    standardising = {name: options.pop(name) for name in names if name in options}
    if "name" in options:
        raise InputError("data.name: partial reads what data=array reads; drop it")
    if standardising and axes is None:
        raise InputError(
            f"data.{next(iter(standardising))}: partial writes the sums of a file's rows as they are; give it to train "
            "data=moments"
        )
    if k is not None and axes is None:
        raise InputError(f"-k {k}: is the number of axes of fourth moments; give --axes FILES too")
    k = 16 if k is None else k
    basis = None if axes is None else leading(axes, k, standardising)  # before the rows are read
    source = build(DataConfig(name="array", path=path, **options))
    if basis is None:
        write(source, Path(output))
        print(f"{output}: {source.n} rows of {source.p} features")
        return
    write(basis, Path(output), fourth_sums(source, basis, k, path))
    print(f"{output}: fourth moments of {source.n} rows in {k} axes of {basis.n} rows")


def leading(axes: str, k: int, standardising: dict[str, Any]) -> Any:
    """Return the merged moments of all parts. Raise InputError if they have fewer than k axes, or k is too large."""
    from sigmapca_cli.errors import InputError
    from sigmapca_cli.sources import build
    from sigmapca_cli.sources.config import DataConfig
    from sigmapca_cli.sources.fourth_sums import MOST_AXES, number_of_products
    from sigmapca_cli.sources.statistics import check_k

    if k > MOST_AXES:
        raise InputError(
            f"-k {k}: {number_of_products(k)} fourth moments, which the solver holds as a matrix of "
            f"{8e-9 * (k * (k + 1) // 2) ** 2:.1f} GB; at most {MOST_AXES} axes are written"
        )
    basis: Any = build(DataConfig(name="moments", path=axes, **standardising))
    if basis.fourth is not None:
        raise InputError(f"--axes {axes}: these files hold fourth moments; give the files of the first pass")
    check_k(k, basis.n, basis.p, basis.leading_axes(k).rank)
    return basis


def fourth_sums(source: Any, basis: Any, k: int, path: str) -> Any:
    """Return the fourth moments of the rows of a source in the k leading axes of the merged moments."""
    import numpy as np

    from sigmapca_cli.errors import InputError
    from sigmapca_cli.solvers.from_sums import projected_blocks, summed
    from sigmapca_cli.sources.fourth_sums import FourthSums, as_json

    if source.p != basis.p:
        raise InputError(
            f"{path} has {source.p} features, and --axes has {basis.p}: give a part of the same rows"
        )
    if None not in (source.names, basis.names) and source.names != basis.names:
        raise InputError(f"{path} has other names of features than --axes: give a part of the same rows")
    if source.n > basis.n:
        raise InputError(
            f"{path} has {source.n} rows, and --axes is of {basis.n}: give the sums of all parts"
        )
    found = basis.leading_axes(k)
    P, sigma = np.ascontiguousarray(found.up_to(k)), np.sqrt(found.values[:k])
    n, second, products = summed(projected_blocks(source, basis, P, sigma), k)
    return FourthSums(n, P, sigma, second, products, as_json(basis.options))

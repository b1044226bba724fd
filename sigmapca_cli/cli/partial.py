"""`sigmapca partial`: count, mean and covariance of a part of the rows, to be merged by data=moments."""

import typer


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("partial", help="Write the sums of a part of the rows, for data=moments.")(partial)


def partial(
    path: str = typer.Argument(..., metavar="FILE", help="A part: any file that data=array reads."),
    keys: list[str] = typer.Argument(None, metavar="data.KEY=VALUE...", help="How the file is read."),
    output: str = typer.Option(..., "--output", "-o", metavar="FILE", help="The file of the sums."),
) -> None:
    """Read the rows once, and write their count, mean and covariance; parts are merged by data=moments."""
    from pathlib import Path

    from sigmapca_cli.cli.keys import data_keys
    from sigmapca_cli.errors import InputError
    from sigmapca_cli.processes import refuse_several
    from sigmapca_cli.sources import build
    from sigmapca_cli.sources.config import DataConfig
    from sigmapca_cli.sources.moments import write

    refuse_several("partial", "start one for each part")
    options = data_keys(keys or [])
    for key in ("name", "standardise", "whiten", "whiten_rank", "scale_input", "centre", "epsilon"):
        if key in options:
            raise InputError(
                f"data.{key}: partial writes the sums of a file's rows as they are; give it to train data=moments"
            )
    source = build(DataConfig(name="array", path=path, **options))
    write(source, Path(output))
    print(f"{output}: {source.n} rows of {source.p} features")

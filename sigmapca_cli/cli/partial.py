"""`sigmapca partial`: sums of a part of the rows, to be merged by data=moments."""

import typer

from sigmapca_cli.cli.outputs import claim
from sigmapca_cli.system.errors import InputError


def partial(
    path: str = typer.Argument(..., metavar="FILE", help="A part: any file that data=array reads."),
    keys: list[str] = typer.Argument(None, metavar="data.KEY=VALUE...", help="How the file is read."),
    output: str = typer.Option(..., "--output", "-o", metavar="FILE", help="The file of the sums."),
    force: bool = typer.Option(False, "--force", help="Replace the file when it exists."),
) -> None:
    """Read the rows once, and write their count, mean and covariance; parts are merged by data=moments."""
    from pathlib import Path

    from sigmapca_cli.cli.keys import data_keys
    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig
    from sigmapca_cli.data.matrix.sums import write
    from sigmapca_cli.system.processes import refuse_several

    refuse_several("partial", "start one for each part")
    claim(output, reads=[path], force=force)
    options = data_keys(keys or [])
    if "name" in options:
        raise InputError("data.name: partial reads what data=array reads; drop it")
    names = ("standardise", "whiten", "whiten_rank", "scale_input", "centre", "epsilon")
    if later := [name for name in names if name in options]:
        raise InputError(
            f"data.{later[0]}: partial writes the sums of a file's rows as they are; give it to train "
            "data=moments"
        )
    source = build(DataConfig(name="array", path=path, **options))
    write(source, Path(output))
    print(f"{output}: {source.n} rows of {source.p} features")

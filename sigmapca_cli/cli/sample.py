"""`sigmapca sample FIELD OUT`: data whose truth is known, to try the program on."""

import typer

from sigmapca_cli.cli.outputs import claim
from sigmapca_cli.settings.checks import choice

# Those of data.samples.fields, which is not imported for a help text.
FIELDS = (
    "questionnaire", "spectra", "eeg", "sound", "returns", "embeddings", "counts", "patches", "table"
)  # fmt: skip


def sample(
    field: str = typer.Argument(..., metavar="FIELD", help=", ".join(FIELDS)),
    output: str = typer.Argument(
        ..., metavar="OUT", help="A name in .csv or .parquet; patches: .npy; sound: a folder."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Another one gives other numbers."),
    force: bool = typer.Option(False, "--force", help="Replace files that exist."),
) -> None:
    """Write OUT, and OUT_truth.csv: features × components in the units of the data."""
    import shlex
    from pathlib import Path

    from sigmapca_cli.data.samples.fields import make, write
    from sigmapca_cli.data.samples.tables import Sound
    from sigmapca_cli.system.frames import write_frame

    choice("FIELD", field, FIELDS)
    made, place = make(field, seed), Path(output)
    truth = place.with_name(f"{place.stem}_truth.csv")
    claim([*([] if isinstance(made.content, Sound) and place.is_dir() else [place]), truth], force=force)
    write(made, place)
    write_frame(made.truth, truth, index=True)
    print(f"{output}: {made.words}")
    print(f"{truth}: the truth, {made.truth.shape[0]} features × {made.truth.shape[1]} components")
    print(f"next:\n  sigmapca data {shlex.quote(output)}")

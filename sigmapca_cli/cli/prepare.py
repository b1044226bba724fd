"""`extract-patches`, `mix-signals`, `sample-points`: data prepared as one file, through Hydra's `data` group."""

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import typer


def add(app: typer.Typer) -> None:
    """Register the three commands."""
    app.command("extract-patches", help="Prepare patches of images as one file.")(extract_patches)
    app.command("mix-signals", help="Prepare mixed signals with their truth.")(mix_signals)
    app.command("sample-points", help="Prepare rotated 2-D points.")(sample_points)


OVERRIDES = typer.Argument(None, metavar="OVERRIDE", help="data=NAME and data.key=value.")
OUTPUT = typer.Option(None, "--output", "-o", metavar="FILE", help="Default: data/NAME-HASH.h5.")
CFG = typer.Option(None, "--cfg", "-c", metavar="WHAT", help="Print the config (job, hydra, all).")


def extract_patches(
    overrides: list[str] = OVERRIDES,
    output: str = OUTPUT,
    offline: bool = typer.Option(False, "--offline", help="Never download."),
    cfg: str = CFG,
) -> None:
    """Bare, it means CIFAR-10: in data/, in $SIGMAPCA_DATA, else downloaded."""
    extra = ["data.offline=true"] if offline else []
    prepare(extract_job, "cifar10", [*(overrides or []), *extra], output, cfg)


def mix_signals(overrides: list[str] = OVERRIDES, output: str = OUTPUT, cfg: str = CFG) -> None:
    """The paper's three signals, or WAV files."""
    prepare(mix_job, "signals", overrides or [], output, cfg)


def sample_points(overrides: list[str] = OVERRIDES, output: str = OUTPUT, cfg: str = CFG) -> None:
    """Uniform or Laplace points."""
    prepare(sample_job, "points", overrides or [], output, cfg)


def prepare(
    job: Callable[..., Any],
    default: str,
    overrides: list[str],
    output: str | None,
    cfg: str | None,
) -> None:
    """Run one of the jobs below with its default data set."""
    from sigmapca_cli.cli.job import hydra_flags, run_job

    if not any(o.startswith("data=") for o in overrides):
        overrides = [f"data={default}", *overrides]
    run_job(update_wrapper(partial(job, output=output), job), overrides, hydra_flags(cfg=cfg))


def data_of(composed: Any) -> Any:
    """The typed data group, checked."""
    from omegaconf import OmegaConf

    from sigmapca_cli.config import refuse_unknown

    plain: Any = OmegaConf.to_container(composed, resolve=True)
    refuse_unknown(plain)
    typed: Any = OmegaConf.to_object(composed)
    return typed.data


def write(composed: Any, output: str | None, holds: str) -> None:
    """Prepare the file, and say how to use it."""
    from pathlib import Path

    from sigmapca_cli.cli.outputs import claim
    from sigmapca_cli.sources.preparing import prepare

    data = data_of(composed)
    if output:  # a file of the same options is used as it is, and no other is replaced
        claim(output, reads=[data.path], force=True)
    path = prepare(data, Path(output) if output else None, holds)
    print(path)
    print(f"  sigmapca data {path}\n  sigmapca train data=prepared data.path={path}")


def extract_job(cfg: Any, output: str | None = None) -> None:
    """What Hydra runs for `extract-patches`."""
    from sigmapca_cli.cli.guard import guarded

    guarded(lambda c: write(c, output, "pixels"), cfg)


def mix_job(cfg: Any, output: str | None = None) -> None:
    """What Hydra runs for `mix-signals`."""
    from sigmapca_cli.cli.guard import guarded

    guarded(lambda c: write(c, output, "signals"), cfg)


def sample_job(cfg: Any, output: str | None = None) -> None:
    """What Hydra runs for `sample-points`."""
    from sigmapca_cli.cli.guard import guarded

    guarded(lambda c: write(c, output, "made"), cfg)

"""`sigmapca train`: one run, or with -m a sweep."""

from typing import Any

import typer

from sigmapca_cli.cli.static_help import TrainCommand
from sigmapca_cli.errors import InputError


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("train", cls=TrainCommand, help="Train a model and write its run directory.")(train)


def train(
    overrides: list[str] = typer.Argument(
        None, metavar="OVERRIDE", help="group=choice and key=value, as in model=nlpca a=4"
    ),
    multirun: bool = typer.Option(False, "-m", "--multirun", help="Sweep: a=1,2,4 seed=range(5)."),
    run_dir: str = typer.Option(None, "--run-dir", help="The folder of this run."),
    resume: str = typer.Option(None, "--resume", metavar="RUN", help="Continue an interrupted run."),
    if_exists: str = typer.Option(
        None, "--if-exists", metavar="HOW", help="When the same run exists: new, skip, resume or fail."
    ),
    strict: bool = typer.Option(False, "--strict", help="An unconverged run ends with status 1."),
    log_format: str = typer.Option(
        None, "--log-format", metavar="FORM", help="bar or plain; default: a bar on a terminal."
    ),
    fail_fast: bool = typer.Option(False, "--fail-fast", help="With -m: stop at the first failed job."),
    cfg: str = typer.Option(None, "--cfg", "-c", metavar="WHAT", help="Print the config (job, hydra, all)."),
    resolve: bool = typer.Option(False, "--resolve", help="With --cfg: resolve interpolations."),
    package: str = typer.Option(None, "--package", "-p", help="With --cfg: only this part."),
    info: str = typer.Option(None, "--info", "-i", metavar="WHAT", help="Hydra's information (all, …)."),
    config_name: str = typer.Option(None, "--config-name", "-cn", help="Another primary config."),
    config_dir: str = typer.Option(None, "--config-dir", "-cd", help="A further folder of configs."),
    config_path: str = typer.Option(None, "--config-path", "-cp", help="Another config folder."),
) -> None:
    """Hand everything to a real Hydra job."""
    from sigmapca_cli.cli.job import hydra_flags, run_job
    from sigmapca_cli.quoting import override

    arguments = [given for given in overrides or [] if given != "hydra.mode=MULTIRUN"]
    multirun = multirun or len(arguments) < len(overrides or [])  # Hydra's other way to say -m
    if resume:
        if multirun or cfg or info:
            raise InputError("--resume continues one run; the same sweep command again resumes the sweep")
        from sigmapca_cli.cli.stored import resume as resume_run

        resume_run(resume, arguments)
        return
    if run_dir:
        arguments.append(override("run_dir", run_dir))
    if if_exists:
        arguments.append(override("if_exists", if_exists))
    if strict:
        arguments.append("strict=true")
    if log_format:
        arguments.append(override("log_format", log_format))
    flags = hydra_flags(
        multirun=multirun,
        cfg=cfg,
        resolve=resolve,
        package=package,
        info=info,
        config_name=config_name,
        config_dir=config_dir,
        config_path=config_path,
    )
    if not multirun or cfg or info:
        run_job(train_job, arguments, flags)
        return
    from sigmapca_cli.cli.sweeps import run_sweep

    run_sweep(train_job, arguments, flags, fail_fast=fail_fast)


def train_job(cfg: Any, context: Any = None) -> Any:
    """Run one composed configuration: what Hydra calls, here or on a cluster's node. Return its objective, if any."""
    from sigmapca_cli.cli.guard import guarded

    return guarded(run_composed, cfg, context)


def run_composed(cfg: Any) -> float | list[float] | None:
    """Check the configuration, then load what training needs. Return what a search is led by."""
    from sigmapca_cli.job import job_of

    job = job_of(cfg)
    from sigmapca_cli.runner.run import run

    folder = run(job)
    if not job.cfg.objective:
        return None
    from sigmapca_cli.launchers.adaptive import as_result
    from sigmapca_cli.runner.objective import measure

    values = measure(job, folder)
    print(
        "  " + "  ".join(f"{n} {v:.6g}" for n, v in zip(job.cfg.objective, values, strict=True)), flush=True
    )
    return as_result(values)

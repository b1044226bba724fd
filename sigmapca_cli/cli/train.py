"""`sigmapca train`: one run, or with -m a sweep."""

from typing import TYPE_CHECKING, Any

import typer

from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.composition.job import Job


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
    """Compose the configuration, then run it; or hand a sweep to Hydra and its launcher."""
    from sigmapca_cli.cli.job import folders_of, show_configuration, show_information
    from sigmapca_cli.settings.quoting import override

    words = [given for given in overrides or [] if given != "hydra.mode=MULTIRUN"]
    multirun = multirun or len(words) < len(overrides or [])  # Hydra's other way to say -m
    options = {"run_dir": run_dir, "if_exists": if_exists, "strict": strict or None, "log_format": log_format}
    words += [override(key, value) for key, value in options.items() if value is not None]
    if resume is not None:
        if multirun or cfg or info:
            raise InputError("--resume continues one run; the same sweep command again resumes the sweep")
        if config_name or config_dir or config_path:
            raise InputError("--resume goes on with the configuration of its run; leave the others out")
        resume_run(resume, words)
        return
    if multirun + (cfg is not None) + (info is not None) > 1:
        raise InputError("-m, --cfg and --info exclude each other: give one of them")
    if fail_fast and not multirun:
        raise InputError("--fail-fast is for the jobs of a sweep (-m); leave it out")
    if (resolve or package is not None) and cfg is None:
        raise InputError(f"{'--resolve' if resolve else '--package'} is for --cfg; give --cfg job with it")
    folders = folders_of(config_name, config_dir, config_path)
    if cfg is not None:
        show_configuration(words, folders, cfg, resolve=resolve, package=package)
    elif info is not None:
        show_information(words, folders, info)
    elif multirun:
        from sigmapca_cli.cli.sweeps import run_sweep

        run_sweep(train_job, words, folders, fail_fast=fail_fast)
    else:
        from sigmapca_cli.composition.compose import compose_job

        job = compose_job(words, folders)
        from sigmapca_cli.runner.unread import refuse_unread

        for line in refuse_unread(job):
            print(line, flush=True)
        run_one(job)


OF_THE_FOLDER = ("run_dir", "outputs", "if_exists")
"""Keys that say where a new run goes, and whether there is one."""


def resume_run(name: str, changes: list[str]) -> None:
    """Go on with a stored run, by the configuration that it stored."""
    from sigmapca_cli.composition.compose import stored_job
    from sigmapca_cli.composition.job import with_changes
    from sigmapca_cli.composition.overrides import typed
    from sigmapca_cli.storage.find import resolve
    from sigmapca_cli.storage.read import StoredRun

    folder = resolve(name)
    job = stored_job(StoredRun.open(folder), changes)
    for key, word in typed(changes).items():
        if key in OF_THE_FOLDER:
            raise InputError(f"{word}: --resume goes on in the folder of the run; leave it out")
    job = with_changes(job, {"run_dir": str(folder), "if_exists": "resume"})
    from sigmapca_cli.runner.run import run
    from sigmapca_cli.runner.unread import said_of_stored

    for line in said_of_stored(job):
        print(line, flush=True)
    run(job)


def train_job(cfg: Any, context: Any = None) -> Any:
    """Run one job of a sweep: what Hydra calls, here or on a cluster's node. Return its objective, if any."""
    from sigmapca_cli.cli.guard import in_sweep

    return in_sweep(run_composed, cfg, context)


def run_composed(cfg: Any) -> float | list[float] | None:
    """Check the configuration that Hydra composed for a job of a sweep, and run it."""
    from hydra.core.hydra_config import HydraConfig

    from sigmapca_cli.composition.job import job_of

    return run_one(job_of(cfg, HydraConfig.get()))


def run_one(job: "Job") -> float | list[float] | None:
    """Load what training needs, and train. Return what a search is led by."""
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

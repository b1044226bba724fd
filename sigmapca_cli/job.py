"""What Hydra composed, typed and checked: before anything heavy is imported, so that mistakes are told at once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigmapca_cli.config import Config, refuse_unknown
from sigmapca_cli.errors import InputError
from sigmapca_cli.untrusted_files import refuse_link


@dataclass
class Job:
    """What Hydra composed: the typed configuration, its text, and the overrides that led to it."""

    cfg: Config
    yaml: str
    plain: dict[str, Any]
    overrides: list[str]
    hydra_folder: Path | None  # the folder a sweep gives this job

    @property
    def hash(self) -> str:
        """Hash of everything that changes what the run computes."""
        from sigmapca_cli.runs.identity import config_hash

        return config_hash(self.plain)


def job_of(composed: Any) -> Job:
    """Turn Hydra's composition into a job; ranges are checked here, by the dataclasses."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode
    from omegaconf import OmegaConf
    from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

    if HydraConfig.initialized():
        # Unresolved: `a=${nowhere}` is itself read as an interpolation.
        refuse_removal(OmegaConf.to_container(HydraConfig.get().overrides.task))
    try:
        plain: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as problem:  # `steps=???`
        raise InputError(f"{problem.full_key}=???: give a value") from None
    except OmegaConfBaseException as problem:
        key = f"{problem.full_key}: " if problem.full_key else ""
        raise InputError(f"{key}{str(problem).splitlines()[0]}; name an existing key in ${{…}}") from None
    refuse_unknown(plain)
    cfg: Any = OmegaConf.to_object(composed)
    if not isinstance(cfg, Config):
        raise InputError("the primary config does not build on schema/config: add it to its defaults")
    overrides, folder = [], None
    if HydraConfig.initialized():
        hydra = HydraConfig.get()
        overrides = list(hydra.overrides.task)
        if hydra.mode == RunMode.MULTIRUN:
            folder = Path(hydra.runtime.output_dir)
            refuse_link(folder)
    return Job(cfg, OmegaConf.to_yaml(composed, resolve=True), plain, overrides, folder)


def refuse_removal(overrides: Any) -> None:
    """Refuse `~data`: the schema's default would take its place, and other data than the user thinks be trained on."""
    for override in overrides:
        if override.startswith("~"):
            raise InputError(f"{override}: nothing can be removed; give {override[1:].split('=')[0]}=VALUE")

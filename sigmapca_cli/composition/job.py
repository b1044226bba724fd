"""What Hydra composed, typed and checked: before anything heavy is imported, so that mistakes are told at once."""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sigmapca_cli.composition.hydra_errors import in_one_line
from sigmapca_cli.composition.overrides import of_experiment
from sigmapca_cli.settings.keys import refuse_unknown
from sigmapca_cli.settings.quoting import without_interpolation
from sigmapca_cli.settings.schema import Config, scale
from sigmapca_cli.settings.sealed import seal


@dataclass(frozen=True)
class Job:
    """A configuration to run, which nothing changes afterwards: `with_changes` makes another job.

    cfg: what is done. plain: the same as plain data, which is stored and hashed. overrides: what led to it.
    hydra_folder: the folder that a sweep gives this job. experiment: the dotted keys that its experiment's file sets.
    """

    cfg: Config
    plain: dict[str, Any]
    overrides: list[str] = field(default_factory=list)
    hydra_folder: Path | None = None
    experiment: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seal(self.cfg)

    @functools.cached_property
    def yaml(self) -> str:
        """The configuration as it is stored: what `OmegaConf.to_yaml` writes, in a thirtieth of its time."""
        import yaml

        dumper = _dumper(in_c=repr(self.plain).isascii())
        return str(yaml.dump(self.plain, Dumper=dumper, allow_unicode=True, sort_keys=False))

    @functools.cached_property
    def hash(self) -> str:
        """Hash of everything that changes what the run computes."""
        from sigmapca_cli.storage.identity import config_hash

        return config_hash(self.plain)


def job_of(composed: Any, hydra: Any = None) -> Job:
    """Return the job of a composed configuration; ranges are checked here, by the dataclasses.

    hydra: Hydra's own part of it, where that is not the key `hydra` of `composed`: in a job of a sweep.
    """
    from hydra.types import RunMode
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    raw: Any = {
        key: OmegaConf.to_container(item, resolve=False) if OmegaConf.is_config(item) else item
        for key, item in composed.items_ex(resolve=False)
        if key != "hydra"
    }
    whole = composed
    if "hydra" in composed and (own := _own_hydra(raw)) != raw:
        whole = OmegaConf.create({**own, "hydra": OmegaConf.to_container(composed.hydra, resolve=False)})
    hydra = hydra if hydra is not None else whole.get("hydra")
    try:
        plain = {str(key): _resolved(whole, key) if _is_open(item) else item for key, item in raw.items()}
    except OmegaConfBaseException as problem:
        raise in_one_line(problem) or problem from None
    overrides: Any = []
    folder: Path | None = None
    experiment: tuple[str, ...] = ()
    if hydra is not None:
        folders = [Path(source.path) for source in hydra.runtime.config_sources if source.schema == "file"]
        experiment = of_experiment(hydra.runtime.choices.get("experiment"), folders)
        overrides = OmegaConf.to_container(hydra.overrides.task)  # as they were given: `a=${b}` stays
        if hydra.mode == RunMode.MULTIRUN:
            from sigmapca_cli.system.untrusted_files import refuse_link

            folder = Path(hydra.runtime.output_dir)
            refuse_link(folder)
    if plain.get("if_exists") == "auto":
        plain["if_exists"] = "resume" if folder else "new"
    return replace(job_from(plain, overrides, folder), experiment=experiment)


def job_from(
    plain: Mapping[str, Any],
    overrides: Sequence[str] = (),
    folder: Path | None = None,
) -> Job:
    """Return the job of a configuration as plain data. Raise InputError for what the schema refuses."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    refuse_unknown(plain)
    scale(plain.get("a", 1.0))  # before the nonlinearity, which has its value and would be named instead
    try:
        typed = _TYPING.of(without_interpolation(dict(plain)))
        cfg: Any = OmegaConf.to_object(typed)
        checked: Any = OmegaConf.to_container(typed, resolve=True)
    except OmegaConfBaseException as problem:
        raise in_one_line(problem) or problem from None
    if "ending" in checked:
        checked["ending"] = cfg.ending  # which does not count where a run has none
    if "a_from" in checked.get("solver", {}):
        checked["solver"]["a_from"] = cfg.solver.a_from  # nor this
    return Job(cfg, checked, list(overrides), folder)


class Typing(threading.local):
    """Configurations with the types of the schema. One that differs from the last in a few values is made from that.

    Each thread has a last one of its own.
    """

    def __init__(self) -> None:
        self.last: tuple[dict[str, Any], Any] | None = None

    def of(self, plain: dict[str, Any]) -> Any:
        """Return a configuration as OmegaConf's, until the next call. Raise OmegaConf's errors for wrong types."""
        from omegaconf import OmegaConf

        last, self.last = self.last, None  # forgotten if a value is refused
        changed = differences(last[0], plain) if last else None
        if last is None or changed is None:
            typed: Any = OmegaConf.merge(_schema(), OmegaConf.create(plain))
        else:
            typed = last[1]
            for groups, name, value in changed:
                functools.reduce(lambda node, group: node[group], groups, typed)[name] = value
        self.last = copy.deepcopy(plain), typed
        return typed


_TYPING = Typing()


def differences(one: Any, other: Any) -> list[tuple[tuple[Any, ...], Any, Any]] | None:
    """Return (groups, key, value) of what `other` has at other values; None unless they have one list of keys.

    The order of the keys of regularisers is that in which their terms are added up.
    """
    if not isinstance(one, dict) or not isinstance(other, dict) or list(one) != list(other):
        return None
    found: list[tuple[tuple[Any, ...], Any, Any]] = []
    for key, value in other.items():
        if isinstance(one[key], dict) or isinstance(value, dict):
            within = differences(one[key], value)
            if within is None:
                return None
            found += [((key, *groups), name, changed) for groups, name, changed in within]
        elif repr(one[key]) != repr(value):  # 1 and 1.0 differ
            found.append(((), key, value))
    return found


@functools.cache
def _schema() -> Any:
    """Return the schema as OmegaConf's, which takes it longer to make than to merge with; merging copies it."""
    from omegaconf import OmegaConf

    return OmegaConf.structured(Config)


def with_changes(job: Job, changes: Mapping[str, Any]) -> Job:
    """Return the job with other values of some dotted keys."""
    plain = copy.deepcopy(job.plain)
    for key, value in changes.items():
        *groups, name = key.split(".")
        node = plain
        for group in groups:
            node = node[group]
        node[name] = value
    made = replace(job_from(plain, job.overrides, job.hydra_folder), experiment=job.experiment)
    if job.cfg.data.path == job.plain["data"]["path"]:
        return made
    return moved(made, job.cfg.data.path)


def moved(job: Job, path: Any) -> Job:
    """Return the job with its data read from another place: the stored path stays a part of what the run is."""
    return replace(job, cfg=replace(job.cfg, data=replace(job.cfg.data, path=path)))


@functools.cache
def _dumper(in_c: bool) -> Any:
    """Return PyYAML's class that writes YAML; it quotes the words that OmegaConf quotes.

    in_c: the one in C, where there is one. It escapes letters beyond the first 65,536, which OmegaConf writes.
    """
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper" if in_c else "SafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def represent(dumper: Any, text: str) -> Any:
        quoted = text in ("y", "Y", "n", "N")  # a truth in YAML 1.1, and for some readers
        with contextlib.suppress(ValueError):
            float(text)  # 1e3 is a word in YAML 1.1, and a number for others
            quoted = True
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if quoted else None)

    Dumper.add_representer(str, represent)
    return Dumper


def _own_hydra(value: Any) -> Any:
    """Return plain data in which `${hydra:KEY}` reads Hydra's part of themselves, not that of the whole process."""
    if isinstance(value, dict):
        return {key: _own_hydra(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_own_hydra(item) for item in value]
    return value.replace("${hydra:", "${hydra.") if isinstance(value, str) else value


def _is_open(value: Any) -> bool:
    """Return whether plain data hold something to be resolved, or a value that is missing."""
    text = repr(value)
    return "${" in text or "???" in text


def _resolved(whole: Any, key: str) -> Any:
    """Return the value of one key as plain data."""
    from omegaconf import OmegaConf

    value = whole[key]
    if OmegaConf.is_config(value):
        return OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
    return value

"""Configurations composed by Hydra: for one run, for a sweep, or from what a run stored.

Hydra's public functions keep what they compose with in one place for the whole process, where a program that is an
application of Hydra's itself, or another thread, has its own. So its loader is built here for each configuration and
nothing of the process is touched. The loader is not public: this module and `kept.py` are those that import from
`hydra._internal`.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.composition import kept
from sigmapca_cli.composition.hydra_errors import in_one_line
from sigmapca_cli.composition.job import Job, job_from, job_of, moved, with_changes
from sigmapca_cli.composition.overrides import parsed, values
from sigmapca_cli.settings import conf_files
from sigmapca_cli.system.errors import InputError, SigmapcaError

if TYPE_CHECKING:
    from sigmapca_cli.storage.read import StoredRun

DATA_PATH = "data.path"
HYDRAS_OWN = ("hydra", "_dummy_empty_config_.yaml")
"""What Hydra and its plugins keep in its store of schemas."""
_LOCK = threading.RLock()  # Hydra looks for its plugins once in a process, and its parser has caches


@dataclass(frozen=True)
class Folders:
    """Where configurations come from: the folder, its primary file, and a further folder."""

    # It is looked up when folders are made.
    main: Path = field(default_factory=lambda: conf_files.conf_folder())
    name: str = "config"
    further: Path | None = None

    def groups(self) -> list[str]:
        """Return the groups that these folders add to those of this program."""
        folders = [self.main, *([self.further] if self.further else [])]
        return [path.name for folder in folders for path in folder.iterdir() if path.is_dir()]

    def flags(self) -> list[str]:
        """Return what a command line says to choose these folders, in one order: a sweep is named by it."""
        own = Folders()
        flags = ["--config-name", self.name] if self.name != own.name else []
        flags += ["--config-dir", str(self.further)] if self.further else []
        return flags + (["--config-path", str(self.main)] if self.main != own.main else [])


def compose_job(overrides: Sequence[str], folders: Folders | None = None) -> Job:
    """Return the job of these overrides. Raise InputError, in one line, for those that Hydra or the schema refuses."""
    folders = folders or Folders()
    with _LOCK, registered():
        parsed(overrides, folders.groups())
        return job_of(load(overrides, folders))


def load(overrides: Sequence[str], folders: Folders | None = None, *, sweep: bool = False) -> Any:
    """Return the whole configuration, Hydra's own part under the key `hydra`; in a sweep without what it sweeps over.

    Raise InputError, in one line, for what Hydra refuses.
    """
    from hydra.core.utils import JobRuntime
    from hydra.version import VersionBase

    folders = folders or Folders()
    with _LOCK, registered():
        whole = functools.partial(_loaded, folders=folders, sweep=sweep)
        try:
            if folders.further:
                return whole(overrides)[0]
            surroundings = (
                folders.name,
                sweep,
                JobRuntime.instance().get("name"),
                str(VersionBase.instance().getbase()),
            )
            return kept.composed(folders.main.absolute(), overrides, surroundings, whole)
        except SigmapcaError:
            raise
        except Exception as problem:
            raise in_one_line(problem) or problem from None


def _loaded(overrides: Sequence[str], folders: Folders, sweep: bool) -> tuple[Any, bool]:
    """Return the whole configuration as Hydra composes it from all files, and whether the same files would do again.

    They would not where a list of defaults asks the environment which files to read. Raise what Hydra raises.
    """
    from hydra.types import RunMode

    mode, loader = RunMode.MULTIRUN if sweep else RunMode.RUN, loader_of(folders)
    config = loader.load_configuration(folders.name, list(overrides), mode)
    return config, not getattr(loader.repository, "asking", ())


def loader_of(folders: Folders) -> Any:
    """Return Hydra's loader of the files of these folders."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_search_path import SearchPathQuery

    path = create_config_search_path(str(folders.main.absolute()))
    if folders.further:
        schema = SearchPathQuery(provider="schema")
        path.prepend("command-line", f"file://{folders.further.absolute()}", schema)
    loader = ConfigLoaderImpl(path)
    if not folders.further:
        loader.repository = kept.Repository(path, folders.main.absolute())
    return loader


def multirun(task: Callable[..., Any], overrides: Sequence[str], folders: Folders) -> None:
    """Let Hydra's sweeper and launcher run the jobs of a sweep, `task` of each composed configuration.

    As `hydra.main` does for --multirun; that composes the sweep twice, to see that --multirun was meant.
    """
    from hydra import version
    from hydra._internal.hydra import Hydra
    from hydra.core.global_hydra import GlobalHydra

    for own in conf_files.hydra_base().values():
        version.setbase(own)
    loader = loader_of(folders)
    hydra = Hydra.create_main_hydra2(task.__module__.rpartition(".")[2], loader.get_search_path())
    hydra.config_loader = loader
    try:
        hydra.multirun(folders.name, task, [*overrides, "hydra.mode=MULTIRUN"])
    finally:
        GlobalHydra.instance().clear()


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """Let Hydra know the schema inside the block, and no schema of a program; then leave all as it was found.

    A program that is an application of Hydra's has schemas of its own, and Hydra takes one for a file of the same name.
    """
    from hydra import version
    from hydra.core.config_store import ConfigStore

    store, base = ConfigStore.instance(), version.VersionBase.instance()
    schemas, chosen = store.repo, base.getbase()
    store.repo = {name: node for name, node in schemas.items() if name in HYDRAS_OWN} | _schema()
    try:
        for own in conf_files.hydra_base().values():
            if not hasattr(chosen, "major"):  # else a surrounding application has chosen one
                version.setbase(own)
        yield
    finally:
        base.version_base, store.repo = chosen, schemas


@functools.cache
def _schema() -> dict[str, Any]:
    """Return what Hydra's store holds of the schema, made once: that takes as long as reading all of `conf/`."""
    from hydra.core.config_store import ConfigStore

    from sigmapca_cli.settings.schema import register

    store = ConfigStore.instance()
    before, store.repo = store.repo, {}
    try:
        register()
        return store.repo
    finally:
        store.repo = before


def stored_job(run: StoredRun, changes: Sequence[str] = ()) -> Job:
    """Return the job of a run, with some keys changed that do not change what it computes.

    `data.path` may differ too, for data that have moved: the hash of the data says whether they are the same.
    Raise InputError for any other key, and for a run whose file holds no configuration.
    """
    from sigmapca_cli.data.config import as_stored
    from sigmapca_cli.settings.gone_keys import without_gone
    from sigmapca_cli.settings.identity import VOLATILE

    if not run.config:
        raise InputError(f"{run.path}: holds no configuration to go by")
    with _LOCK, registered():
        parsed(changes)
        given = values(changes)
    for key in given:
        if key != DATA_PATH and key.split(".")[0] not in VOLATILE:
            raise InputError(
                f"{key}: the run keeps its configuration; only {', '.join(VOLATILE)} and {DATA_PATH} may differ"
            )
    place = given.pop(DATA_PATH, None)
    try:
        kept = without_gone(run.config)
        kept["data"] = as_stored(kept.get("data", {}))
        job = job_from(kept, run.overrides)
    except InputError as problem:
        raise InputError(f"{run.path}: its configuration does not fit this version ({problem})") from None
    job = with_changes(job, given)
    if place is not None:
        job = moved(job, place)
    path = job.cfg.data.path
    if isinstance(path, str) and not glob.has_magic(path) and not Path(path).expanduser().exists():
        raise InputError(
            f"{path}: no such file or folder; if the run's data have moved, add {DATA_PATH}=PLACE"
        )
    return job

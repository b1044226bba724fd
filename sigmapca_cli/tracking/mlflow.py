"""MLflow: an entry in the store that $MLFLOW_TRACKING_URI names, else in the database `outputs/mlflow.db`."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from sigmapca_cli.system.packages import required
from sigmapca_cli.tracking.protocols import Rows, Tracked

EXPERIMENT = "sigmapca"  # else $MLFLOW_EXPERIMENT_NAME
KEY = "sigmapca.run"
STATUS = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}
LARGEST = 500  # metrics, or signs of a parameter, in one request
DATABASE, FILES = "mlflow.db", "mlruns"
SQLITE = "sqlite:///"
LENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # a server that is away must not hold the training up
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ALLOW_FILE_STORE": "true",  # of older versions
}
"""Variables that MLflow reads, where the user's environment has none of them."""
log = logging.getLogger("sigmapca")


class Guest(contextlib.ContextDecorator):
    """Calls of MLflow, with `LENT` and without its log. Behind the last of them the process is as it was before."""

    lock = threading.Lock()
    inside = 0
    lent: tuple[str, ...] = ()
    level = logging.NOTSET

    def __enter__(self) -> None:
        with Guest.lock:
            if Guest.inside == 0:
                Guest.lent = tuple(name for name in LENT if name not in os.environ)
                os.environ.update({name: LENT[name] for name in Guest.lent})
                Guest.level = logging.getLogger("mlflow").level
                logging.getLogger("mlflow").setLevel(logging.CRITICAL)
            Guest.inside += 1

    def __exit__(self, *problem: object) -> None:
        with Guest.lock:
            Guest.inside -= 1
            if Guest.inside == 0:
                for name in Guest.lent:
                    os.environ.pop(name, None)
                logging.getLogger("mlflow").setLevel(Guest.level)


class MLflow:
    """Logs metrics, parameters, tags and the status of a run."""

    @Guest()
    def __init__(self, run: Tracked) -> None:
        place = store(run)
        with alone(place):
            self.client = MlflowClient(tracking_uri=place)
            experiment = self.experiment()
        self.id = self.earlier(run, experiment) or self.begin(run, experiment)
        self.logged = self.last_step()

    def experiment(self) -> str:
        """Return the id of the experiment: $MLFLOW_EXPERIMENT_ID, else that of a name, which is made if need be."""
        if given := os.environ.get("MLFLOW_EXPERIMENT_ID"):
            return given
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        if found := self.client.get_experiment_by_name(name):
            return str(found.experiment_id)
        try:
            return str(self.client.create_experiment(name))
        except MlflowException:
            if found := self.client.get_experiment_by_name(name):  # another process has made it since
                return str(found.experiment_id)
            raise

    def earlier(self, run: Tracked, experiment: str) -> str:
        """Return the id under which the store knows this run, or ""; the entry is then marked as running again."""
        found = self.client.search_runs([experiment], f"tags.`{KEY}` = '{run.key}'", max_results=1)
        ids = [str(entry.info.run_id) for entry in found]
        if run.known:
            with contextlib.suppress(MlflowException):  # another store than the one it was logged to
                noted = self.client.get_run(run.known)
                ids = [run.known] if noted.data.tags.get(KEY) == run.key else ids
        for known in ids:
            self.client.update_run(known, status="RUNNING")
            return known
        return ""

    def begin(self, run: Tracked, experiment: str) -> str:
        """Make a new entry with the configuration, and return its id.

        A store may refuse a tag or a parameter. The entry then keeps the other tags, and ends as failed.
        """
        tags = {KEY: run.key, "mlflow.runName": run.name, "sigmapca.folder": str(run.folder)}
        tags |= {"mlflow.note.content": run.note} if run.note else {}
        tags |= {"sigmapca.sweep": run.group} if run.group else {}
        tags |= dict.fromkeys(run.tags, "true")
        made = str(self.client.create_run(experiment, tags={}, run_name=run.name).info.run_id)
        try:
            self.tag(made, tags)
            for part in parts(run.config.items(), 100):
                self.client.log_batch(made, params=[Param(k, str(v)[:LARGEST]) for k, v in part])
        except Exception:
            self.client.set_terminated(made, STATUS["failed"])
            raise
        return made

    def tag(self, made: str, tags: Mapping[str, str]) -> None:
        """Give an entry its tags; where the store refuses them together, each alone, and raise what it says of one."""
        try:
            self.client.log_batch(made, tags=[RunTag(key, value) for key, value in tags.items()])
        except MlflowException:
            refused: Exception | None = None
            for key, value in tags.items():
                try:
                    self.client.set_tag(made, key, value)
                except Exception as problem:  # each store has its own
                    refused = problem
            if refused is not None:
                raise refused from None

    def last_step(self) -> dict[str, int]:
        """Return the last step that the store has of each metric: a store does not forget a value."""
        metrics = self.client.get_run(self.id).data.metrics
        return {n: max(m.step for m in self.client.get_metric_history(self.id, n)) for n in metrics}

    @Guest()
    def log(self, rows: Rows) -> None:
        """Append the values that the store does not have yet."""
        now = int(time.time() * 1000)
        new = [
            Metric(name, value, now, step)
            for step, values in rows
            for name, value in values.items()
            if step > self.logged.get(name, -1)
        ]
        for part in parts(new, LARGEST):
            self.client.log_batch(self.id, metrics=part)

    @Guest()
    def finish(self, status: str, results: Mapping[str, float]) -> None:
        """Log the results as metrics without steps, and say how the run ended."""
        self.log([(0, {f"evaluation/{name}": value for name, value in results.items()})])
        self.client.set_terminated(self.id, STATUS.get(status, "FAILED"))


def store(run: Tracked) -> str:
    """Return where entries go: what the environment names, as MLflow reads it, or the place given, else the outputs.

    In a folder it is the database `mlflow.db`; a folder in which an older version has kept files goes on with them.
    """
    if not run.place:
        if given := os.environ.get("MLFLOW_TRACKING_URI"):
            return given
        return in_folder(run.outputs / FILES, run.outputs / DATABASE)
    if "://" in run.place or run.place.startswith(("databricks", "file:")):
        return run.place
    place = Path(run.place).expanduser()
    return SQLITE + str(place.absolute()) if place.suffix == ".db" else in_folder(place, place / DATABASE)


def in_folder(files: Path, database: Path) -> str:
    """Return the store of a folder: its database, unless only files of an older version are there."""
    if database.exists() or not any(files.glob("[0-9]*/meta.yaml")):
        return SQLITE + str(database.absolute())
    log.warning(
        "%s: a store of files, as older versions made it, goes on; `mlflow migrate-filestore` makes a database of it",
        files,
    )
    return files.absolute().as_uri()


@contextlib.contextmanager
def alone(place: str) -> Iterator[None]:
    """Keep other processes from making the tables of a database in a file at the same moment.

    Raise InputError where packages for databases are not installed.
    """
    if not place.startswith(SQLITE):
        yield
        return
    required("its store is a database, which", "sqlalchemy", "alembic")
    path = Path(place.removeprefix(SQLITE).partition("?")[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock"), timeout=60):
        yield


def parts(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield the items in lists of at most `size`."""
    whole = list(items)
    for start in range(0, len(whole), size):
        yield whole[start : start + size]

"""MLflow: an entry in the store that $MLFLOW_TRACKING_URI names, else in `mlruns` of the outputs folder."""

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

os.environ.setdefault(
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1"
)  # a server that is away must not hold the training up
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # a folder of files needs no database

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from sigmapca_cli.tracking.protocols import Rows, Tracked

EXPERIMENT = "sigmapca"  # else $MLFLOW_EXPERIMENT_NAME
KEY = "sigmapca.run"
STATUS = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}
LARGEST = 500  # metrics, or signs of a parameter, in one request


class MLflow:
    """Logs metrics, parameters, tags and the status of a run."""

    def __init__(self, run: Tracked) -> None:
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        self.client = MlflowClient(tracking_uri=store(run))
        experiment = self.experiment()
        self.id = self.earlier(run, experiment) or self.begin(run, experiment)
        self.logged = self.last_step()

    def experiment(self) -> str:
        """Return the id of the experiment: $MLFLOW_EXPERIMENT_ID, else that of a name, which is made if need be."""
        if given := os.environ.get("MLFLOW_EXPERIMENT_ID"):
            return given
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        found = self.client.get_experiment_by_name(name)
        return str(found.experiment_id if found else self.client.create_experiment(name))

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

    def finish(self, status: str, results: Mapping[str, float]) -> None:
        """Log the results as metrics without steps, and say how the run ended."""
        self.log([(0, {f"evaluation/{name}": value for name, value in results.items()})])
        self.client.set_terminated(self.id, STATUS.get(status, "FAILED"))


def store(run: Tracked) -> str:
    """Return where entries go: the place given or the environment's, as MLflow reads them, else `outputs/mlruns`."""
    given = run.place or os.environ.get("MLFLOW_TRACKING_URI")
    return given or (run.outputs / "mlruns").absolute().as_uri()


def parts(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield the items in lists of at most `size`."""
    whole = list(items)
    for start in range(0, len(whole), size):
        yield whole[start : start + size]

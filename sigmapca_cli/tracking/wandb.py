"""Weights & Biases: a run of the project that $WANDB_PROJECT names, else `sigmapca`; offline without a key."""

import logging
import os
from collections.abc import Mapping
from typing import Any

import wandb

from sigmapca_cli.system.untrusted_files import refuse_link
from sigmapca_cli.tracking.protocols import Rows, Tracked

PROJECT = "sigmapca"
log = logging.getLogger("sigmapca")


class WandB:
    """Logs metrics, the configuration, tags and note; the results become the summary."""

    def __init__(self, run: Tracked) -> None:
        refuse_link(run.folder / "wandb")  # which it would write through
        self.id, self.seen = run.known or run.key, run.seen
        self.run: Any = wandb.init(
            project=run.place or os.environ.get("WANDB_PROJECT") or PROJECT,
            id=self.id,
            resume="allow",
            reinit="create_new",  # several runs of one process, side by side
            name=run.name,
            group=run.group or None,
            notes=run.note or None,
            tags=list(run.tags) or None,
            config=dict(run.config),
            dir=str(run.folder),
            mode=mode(),
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
        )

    def log(self, rows: Rows) -> None:
        """Append values; those that an earlier process logged are not logged again."""
        for step, values in rows:
            if step > self.seen:
                self.run.log(dict(values), step=step)

    def finish(self, status: str, results: Mapping[str, float]) -> None:
        """Store the results as the summary, and end the run."""
        self.run.summary.update({f"evaluation/{name}": value for name, value in results.items()})
        self.run.finish(exit_code=0 if status == "finished" else 1)


def mode() -> Any:
    """Return the mode that the environment asks for; offline where there is no key, as nobody can be asked for one."""
    given = os.environ.get("WANDB_MODE")
    if given or has_key():
        return given
    log.warning(
        "tracker=wandb: no API key; kept offline in the run's folder: `wandb login`, then `wandb sync`"
    )
    return "offline"


def has_key() -> bool:
    """Return whether a key is known here, without asking for one."""
    try:
        return bool(wandb.login(prompt=False))
    except TypeError:  # an older version, which knows no `prompt`
        return bool(os.environ.get("WANDB_API_KEY") or wandb.api.api_key)

"""Checkpoints: the state that a run needs to be resumed, written to a new file that replaces the last one."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.settings.schema import Config
from sigmapca_cli.storage import checkpoint as files
from sigmapca_cli.storage.format import CHECKPOINT_FILE, RUN_FILE
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.atomic import check_fence
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.training.arrays import as_numpy, made_like
from sigmapca_cli.training.trainer import Memory, Trainer

log = logging.getLogger("sigmapca")


@dataclass
class Saved:
    """A checkpoint in memory."""

    step: int
    state: dict[str, np.ndarray]
    slots: dict[str, np.ndarray]
    generator: np.ndarray | None  # None where nothing is drawn at random
    meta: dict[str, Any]

    @property
    def trained(self) -> bool:
        """Whether training had ended and only the evaluation was missing."""
        return bool(self.meta.get("trained"))


class Saver:
    """Writes the checkpoints of a run, every so many seconds or steps; `save` writes one at once."""

    def __init__(self, cfg: Config, folder: Path, config_hash: str, data_hash: str) -> None:
        self.every, self.every_steps = cfg.checkpoint.every, cfg.checkpoint.every_steps
        self.path = folder / CHECKPOINT_FILE
        self.config_hash, self.data_hash = config_hash, data_hash
        self.last = time.monotonic()

    def due(self, step: int) -> bool:
        """Return whether a checkpoint is due after this step."""
        if self.every_steps is not None:
            return step % self.every_steps == 0
        return self.every > 0 and time.monotonic() - self.last >= self.every

    def save(self, trainer: Trainer, *, trained: bool = False) -> None:
        """Write the trainer's state to a new file that replaces the last one; `trained`: no step is to follow."""
        self.last = time.monotonic()
        arrays: dict[str, np.ndarray] = {}
        if trainer.generator is not None:
            arrays["generator"] = trainer.generator.get_state().numpy()
        remembered = trainer.opt_state | trainer.memory.named()  # under one prefix in the format
        for prefix, group in (("state", trainer.state), ("slots", remembered)):
            arrays |= {f"{prefix}/{name}": as_numpy(value) for name, value in group.items()}
        if trainer.losses:
            arrays["losses"] = np.asarray(trainer.losses, np.float64)
        files.save(
            self.path,
            arrays,
            {"step": trainer.step, "trained": trained},
            config_hash=self.config_hash,
            data_hash=self.data_hash,
        )


def read(folder: Path, config_hash: str, data_hash: str) -> Saved | None:
    """Read the checkpoint of a folder; None if there is none. Raise InputError for one of another configuration."""
    path = folder / CHECKPOINT_FILE
    if not path.exists():
        return None
    tensors, meta = files.load(path, config_hash=config_hash, data_hash=data_hash)

    def part(prefix: str) -> dict[str, np.ndarray]:
        return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

    meta = {**meta, "losses": tensors.get("losses")}
    return Saved(int(meta["step"]), part("state/"), part("slots/"), tensors.get("generator"), meta)


def restore(trainer: Trainer, saved: Saved) -> None:
    """Put a checkpoint back into a trainer built for the same configuration."""
    like = trainer.state["W"]
    state, remembered = (
        {name: made_like(like, value) for name, value in group.items()}
        for group in (saved.state, saved.slots)
    )
    trainer.state, trainer.memory = state, Memory.from_named(remembered)
    of_memory = trainer.memory.named()
    trainer.opt_state = {name: value for name, value in remembered.items() if name not in of_memory}
    trainer.step = saved.step
    if trainer.generator is not None and saved.generator is not None:
        import torch

        trainer.generator.set_state(torch.from_numpy(np.array(saved.generator)))
    losses = saved.meta.get("losses")
    trainer.losses = [] if losses is None else list(np.array(losses, np.float64).reshape(-1))


def remove(folder: Path) -> None:
    """Remove the checkpoint: a finished run needs none."""
    check_fence(folder)
    (folder / CHECKPOINT_FILE).unlink(missing_ok=True)


def has_run(folder: Path) -> bool:
    """Return whether this folder holds a run, in any state."""
    return (folder / RUN_FILE).exists() or (folder / CHECKPOINT_FILE).exists()


def status(folder: Path) -> str:
    """Return finished, failed, interrupted or running, as the run file says."""
    if not (folder / RUN_FILE).exists():
        return "interrupted"
    try:
        return StoredRun.open(folder).status
    except InputError as problem:
        if not (folder / CHECKPOINT_FILE).exists():
            raise
        # The checkpoint holds all that is needed, and the run file is written anew.
        log.warning("%s; going on from the checkpoint", problem)
        return "interrupted"


def check_identity(folder: Path, config_hash: str, data_hash: str) -> None:
    """Raise InputError if the run in `folder` has another configuration or other data."""
    try:
        attrs = StoredRun.open(folder).attrs
    except InputError:
        return  # damaged, or only a checkpoint: `status` and `read` report these
    for name, wanted, what in (
        ("config_hash", config_hash, "another configuration"),
        ("data_hash", data_hash, "other data: the files have changed since it began"),
    ):
        found = str(attrs.get(name) or wanted)
        if found != wanted:
            raise InputError(
                f"{folder}: holds a run of {what} ({found[:8]}, not {wanted[:8]}); choose another folder"
            )

"""The contracts between the training loop and what it is given: a trained method, and a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.training.arrays import Array
from sigmapca_cli.training.batches import Batch

State = dict[str, Array]
"""Arrays of a run by name: W (p, k), sigma (k,) and what else its method keeps. R stacked runs: a leading R."""


class TrainedMethod(Protocol):
    """A method that takes steps: `methods.method.Method` on tensors, `methods.numpy_main.NumpyMain` on arrays."""

    @property
    def kind(self) -> str:
        """Always "trained"; closed forms and solvers have other kinds."""

    @property
    def trained(self) -> str:
        """Name of the matrix in the state whose columns are the filters: "W", or "V" behind a projection."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arrays in the state that the optimizer changes."""

    @property
    def has_loss(self) -> bool:
        """Whether a step has a loss; an update rule reports NaN."""

    def begin_epoch(self, state: State, covariance: Array) -> None:
        """Recompute in place what is exact over the data of covariance (p, p)."""

    def directions(self, state: State) -> Array:
        """Return the directions (p, k) whose projections are the components."""

    def result(self, state: State, covariance: Any) -> Solution:
        """Return the Solution in its final order and signs; covariance (p, p) of the standardised data, float64."""


class Step(Protocol):
    """One optimisation step of R runs on the same batch. It changes the state and the optimizer state in place."""

    runs: int
    """R."""
    wants_centred: bool
    """Whether the rows of a batch have to come centred on the batch, with their mean square."""

    def advance(self, batch: Batch, count: int, factors: Sequence[float]) -> Array:
        """Make step number `count`, from 1. Return the losses, (R,) or (). `factors` (R,) scale the learning rates."""

"""The share of a process in every batch of a run over several: its rows, its means, and the flag that all see."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.methods.share import Share
from sigmapca_cli.signals import Guard
from sigmapca_cli.sources.base import Source
from sigmapca_cli.training.batches import BLOCK_ROWS, Batch, Batches
from sigmapca_cli.training.collectives import Ranks
from sigmapca_cli.training.fused_step import FusedStep
from sigmapca_cli.training.loop import Trainer

FLAGS_ON_GPU = 16  # steps between two looks at the flag there: a look waits for the GPU


@dataclass(frozen=True)
class Part:
    """The rows first, …, first + rows − 1 of a batch of `whole`, and their share of its means."""

    first: int
    rows: int
    whole: int
    weight: float


def part(whole: int, rank: int, world: int) -> Part:
    """The part of a rank. Of fewer rows than processes some see the first row with weight 0: none stands aside."""
    each, more = divmod(whole, world)
    rows = each + (rank < more)
    if rows == 0:
        return Part(0, 1, whole, 0.0)
    return Part(rank * each + min(rank, more), rows, whole, rows / whole)


class SharedBatches(Batches):
    """This process's part of every batch, centred on the whole batch where the method centres by batch."""

    may_fork = False  # gathering takes sums over the processes

    def __init__(self, source: Source, batch_size: int, seed: int, ranks: Ranks, dtype: Any, by_batch: bool):
        super().__init__(source, batch_size, seed)
        self.ranks, self.by_batch = ranks, by_batch
        self.open: Any = None
        self.dtype = np.dtype(str(dtype).removeprefix("torch."))
        self.full, rest = divmod(source.n, self.size)
        self.part = self.usual = part(self.size, ranks.rank, ranks.world)
        self.last = part(rest, ranks.rank, ranks.world) if self.per_epoch > self.full else None
        self.size = self.usual.rows
        self.block = max(1, BLOCK_ROWS // self.size)

    def order(self, epoch: int) -> np.ndarray:
        """The rows of this process, batch after batch."""
        order, usual = super().order(epoch), self.usual
        body = order[: self.full * usual.whole].reshape(self.full, usual.whole)
        mine = body[:, usual.first : usual.first + usual.rows].reshape(-1)
        if self.last is None:
            return mine
        tail = order[self.full * usual.whole :][self.last.first : self.last.first + self.last.rows]
        return np.concatenate([mine, tail])

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """As `Batches.epoch`; `part` and the ranks' weight are those of the batch that was handed out."""
        self.open = super().epoch(epoch, first)
        with contextlib.closing(self.open):
            for number, batch in enumerate(self.open, first):
                self.part = self.part_of(number)
                self.ranks.weight = self.part.weight
                yield batch

    def close(self) -> None:
        """End the thread that gathers: the processes must not part while it is at a sum."""
        if self.open is not None:
            self.open.close()

    def part_of(self, number: int) -> Part:
        """This process's part of the batch with this number."""
        return self.last if self.last is not None and number >= self.full else self.usual

    def gather(self, order: np.ndarray, numbers: range, buffer: np.ndarray | None = None) -> list[Batch]:
        """As `Batches.gather`, centred on the whole batches: one sum for all of them, ahead of the steps."""
        batches = super().gather(order, numbers, buffer)
        if not self.by_batch:
            return batches
        rows = [batch.x.astype(self.dtype, copy=False) for batch in batches]
        weighted = [x.mean(0) * self.part_of(n).weight for x, n in zip(rows, numbers, strict=True)]
        means = self.ranks.sum_ahead(torch.from_numpy(np.stack(weighted).astype(self.dtype))).numpy()
        for x, mean in zip(rows, means, strict=True):
            np.subtract(x, mean, out=x)
        flat = [x.reshape(-1) for x in rows] if self.wants_power else []
        powers = (
            [np.dot(v, v) / len(x) for v, x in zip(flat, rows, strict=True)] if flat else [0.0] * len(rows)
        )
        return [Batch(x, self.dtype.type(power)) for x, power in zip(rows, powers, strict=True)]

    @property
    def centre(self) -> bool:  # type: ignore[override]
        """Never on the rows that are here: `gather` centres on the whole batches."""
        return False

    @centre.setter
    def centre(self, wanted: bool) -> None:
        self.wants_power = wanted


class Shared(Share):
    """The share of this process, and the flag that goes with every sum: has any process received a signal?"""

    def __init__(self, ranks: Ranks, batches: SharedBatches, guard: Guard) -> None:
        self.ranks, self.batches, self.guard = ranks, batches, guard
        self.centred = batches.by_batch
        self.flags: Tensor | None = None

    def mean(self, v: Tensor) -> Tensor:
        return self.ranks.mean(v.mean(-2, keepdim=True))

    def draw(self, b: int, make: Callable[[int], Tensor]) -> Tensor:
        mine = self.batches.part
        return make(mine.whole)[mine.first : mine.first + b]

    def combine(self, loss: Tensor, gradients: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Everything in one sum."""
        flag = loss.new_tensor([float(self.guard.received is not None)])
        pieces = [loss.reshape(1), *(g.reshape(-1) for g in gradients.values())]
        flat = torch.cat([flag, torch.cat(pieces).mul_(self.ranks.weight)])
        self.ranks.sum_(flat)
        self.flags = flat[0] if self.flags is None else self.flags + flat[0]
        parts = flat[2:].split([g.numel() for g in gradients.values()])
        shaped = {n: v.view_as(g) for (n, g), v in zip(gradients.items(), parts, strict=True)}
        return flat[1].reshape(loss.shape), shaped


class SharedStep(FusedStep):
    """The fused step of one share: σ follows the whole batch's variance, and what moves W is the whole gradient.

    The gradient on the tangent space is linear in the gradient, so that the shares' are summed as they are.
    """

    def __init__(self, cfg: Any, state: dict[str, Tensor], slots: dict[str, Tensor], share: "Shared") -> None:
        super().__init__([cfg], state, slots)
        self.share = share

    def step(self, x: Any, power: Any, count: int, factor: Any) -> Any:
        """As `FusedStep.step`; the loss is that of the whole batch."""
        self.power = power
        super().step(x, power, count, factor)
        return self.loss

    def total(self, h: Any, d: Any, y: Any, f: dict[str, Any]) -> Any:
        self.inner = super().total(h, d, y, f)
        return self.inner

    def follow(self, r: Any) -> None:
        mean = torch.as_tensor(r)  # the same memory
        self.share.ranks.sum_(mean.mul_(self.share.ranks.weight))
        super().follow(r)

    def move(self, count: int, factor: Any) -> None:
        g = torch.as_tensor(self.g)  # the same memory
        loss = torch.as_tensor(self.power + self.inner).to(g)
        self.loss, found = self.share.combine(loss, {"W": g})
        g.copy_(found["W"])
        super().move(count, factor)


class Agreed(Guard):
    """What the processes agree to have received: asked between two steps, the answer is the same in all of them."""

    def __init__(self, guard: Guard, share: Shared, trainer: Trainer) -> None:
        super().__init__()
        self.guard, self.share, self.trainer = guard, share, trainer
        self.before = guard.before
        self.noting = guard.noting  # type: ignore[method-assign]
        self.agreed: int | None = None

    @property
    def received(self) -> int | None:  # type: ignore[override]
        flags, ended = self.share.flags, self.trainer.step >= self.trainer.ends[-1]
        if flags is None or (flags.is_cuda and self.trainer.step % FLAGS_ON_GPU and not ended):
            return self.agreed
        if self.agreed is None and float(flags):
            heard = [number for number in self.share.ranks.gather(self.guard.received) if number]
            self.agreed = min(heard)  # Ctrl-C before what torchrun makes of it
        # After the last step there is nothing left to agree on: the first process goes on alone.
        alone = ended and self.share.ranks.rank == 0
        return self.agreed or (self.guard.received if alone else None)

    @received.setter
    def received(self, number: int | None) -> None:
        self.agreed = number

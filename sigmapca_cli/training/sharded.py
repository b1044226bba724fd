"""The shard of a rank in every batch of a run over several processes: its rows, its means, all ranks' signals."""

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
from sigmapca_cli.training.arrays import Array
from sigmapca_cli.training.batches import Batch, Batches, rows_at_once
from sigmapca_cli.training.collectives import Ranks
from sigmapca_cli.training.order import Order, Scattered
from sigmapca_cli.training.trainer import Trainer

FLAGS_ON_GPU = 16  # steps between two reads of the signal flag there: a read waits for the GPU


@dataclass(frozen=True)
class Shard:
    """The rows first, …, first + rows − 1 of a batch of `whole` rows, and their weight in its means."""

    first: int
    rows: int
    whole: int
    weight: float


def shard_of(whole: int, rank: int, world: int) -> Shard:
    """Return the shard of a rank in a batch of `whole` rows.

    If the batch has fewer rows than there are ranks, the spare ranks get row 0 with weight 0, so that every rank still
    takes part in the collectives.
    """
    each, more = divmod(whole, world)
    rows = each + (rank < more)
    if rows == 0:
        return Shard(0, 1, whole, 0.0)
    return Shard(rank * each + min(rank, more), rows, whole, rows / whole)


class ShardedBatches(Batches):
    """This rank's shard of every batch, centred on the whole batch where the method centres by batch."""

    may_fork = False  # gathering is a collective

    def __init__(
        self,
        source: Source,
        batch_size: int,
        seed: int,
        ranks: Ranks,
        dtype: Any,
        by_batch: bool,
        *,
        through: int | None = None,
    ) -> None:
        super().__init__(source, batch_size, seed, through=through)
        self.ranks, self.by_batch, self.wants_power = ranks, by_batch, False
        self.open: Any = None
        self.dtype = np.dtype(str(dtype).removeprefix("torch."))
        self.full, rest = divmod(source.n, self.size)
        self.shard = self.usual = shard_of(self.size, ranks.rank, ranks.world)
        self.last = shard_of(rest, ranks.rank, ranks.world) if self.per_epoch > self.full else None
        self.size = self.usual.rows
        self.block = max(1, rows_at_once(source.p) // self.size)

    def prepare(self, centred: bool) -> None:
        """Set whether batches come with their mean square. `gather` centres on the whole batches, not on shards."""
        self.wants_power = centred

    def order(self, epoch: int) -> Order:
        """Return the rows of this rank, batch after batch."""
        order, usual = super().order(epoch), self.usual
        if isinstance(order, Scattered):
            count = self.full * usual.rows + (self.last.rows if self.last else 0)
            return order.share(count, self.place)
        body = order[: self.full * usual.whole].reshape(self.full, usual.whole)
        mine = body[:, usual.first : usual.first + usual.rows].reshape(-1)
        if self.last is None:
            return mine
        tail = order[self.full * usual.whole :][self.last.first : self.last.first + self.last.rows]
        return np.concatenate([mine, tail])

    def place(self, position: np.ndarray) -> np.ndarray:
        """Return the positions, in the order of all ranks, of these positions in the order of this rank."""
        usual, whole = self.usual, self.full * self.usual.rows
        batch, within = np.divmod(position, usual.rows)
        in_last = self.full * usual.whole + (self.last.first if self.last else 0) + position - whole
        return np.where(position < whole, batch * usual.whole + usual.first + within, in_last)

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield as `Batches.epoch`; `shard` is that of the batch that was yielded last."""
        self.open = super().epoch(epoch, first)
        with contextlib.closing(self.open):
            for number, batch in enumerate(self.open, first):
                self.shard = self.shard_at(number)
                yield batch

    def close(self) -> None:
        """End the thread that gathers: the process group must not close while it is in a collective."""
        if self.open is not None:
            self.open.close()

    def shard_at(self, number: int) -> Shard:
        """Return this rank's shard of the batch with this number."""
        return self.last if self.last is not None and number >= self.full else self.usual

    def gather(self, order: Order, numbers: range, buffer: np.ndarray | None = None) -> list[Batch]:
        """Return as `Batches.gather`, centred on the whole batches by one all-reduce for all of them."""
        batches = super().gather(order, numbers, buffer)
        if not self.by_batch:
            return batches
        rows = [batch.x.astype(self.dtype, copy=False) for batch in batches]
        weighted = [x.mean(0) * self.shard_at(n).weight for x, n in zip(rows, numbers, strict=True)]
        means = self.ranks.all_reduce_ahead(torch.from_numpy(np.stack(weighted).astype(self.dtype))).numpy()
        for x, mean in zip(rows, means, strict=True):
            np.subtract(x, mean, out=x)
        powers = [0.0] * len(rows)
        if self.wants_power:
            powers = [float(np.dot(x.reshape(-1), x.reshape(-1)) / len(x)) for x in rows]
        return [Batch(x, self.dtype.type(power)) for x, power in zip(rows, powers, strict=True)]


class AllReduce(Share):
    """The means and gradients over a whole batch, from the shards of all ranks.

    A flag travels with every all-reduce of gradients: has any rank received a signal?
    """

    def __init__(self, ranks: Ranks, batches: ShardedBatches, guard: Guard) -> None:
        self.ranks, self.batches, self.guard = ranks, batches, guard
        self.centred = batches.by_batch
        self.flags: Tensor | None = None

    @property
    def weight(self) -> float:
        """This rank's weight in the present batch."""
        return self.batches.shard.weight

    def mean(self, v: Tensor) -> Tensor:
        """Return the mean over the whole batch, (…, 1, k), of this shard's values v (…, b, k)."""
        return self.ranks.mean(v.mean(-2, keepdim=True), self.weight)

    def draw(self, b: int, make: Callable[[int], Tensor]) -> Tensor:
        """Draw for the whole batch, as one process would, and return this shard's b rows."""
        shard = self.batches.shard
        return make(shard.whole)[shard.first : shard.first + b]

    def average_(self, shard_mean: Array) -> None:
        """Replace the mean over this shard by the mean over the whole batch, in place."""
        mean = torch.as_tensor(shard_mean)  # the same memory
        self.ranks.all_reduce_(mean.mul_(self.weight))

    def combine(self, loss: Any, gradients: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return loss and gradients of the whole batch, by one all-reduce of all of them and the flag."""
        parts = {name: torch.as_tensor(g) for name, g in gradients.items()}
        loss = torch.as_tensor(loss).to(next(iter(parts.values())))
        flag = loss.new_tensor([float(self.guard.received is not None)])
        pieces = [loss.reshape(1), *(g.reshape(-1) for g in parts.values())]
        flat = torch.cat([flag, torch.cat(pieces).mul_(self.weight)])
        self.ranks.all_reduce_(flat)
        self.flags = flat[0] if self.flags is None else self.flags + flat[0]
        split = torch.split(flat[2:], [g.numel() for g in parts.values()])
        shaped = {name: v.view_as(g) for (name, g), v in zip(parts.items(), split, strict=True)}
        return flat[1].reshape(loss.shape), shaped


class AgreedGuard(Guard):
    """The signal that all ranks have agreed on. `poll` is a collective: every rank calls it after every step."""

    def __init__(self, guard: Guard, reducer: AllReduce, trainer: Trainer) -> None:
        super().__init__()
        self.guard, self.reducer, self.trainer = guard, reducer, trainer
        self.before = guard.before

    @contextlib.contextmanager
    def deferring(self) -> Iterator[None]:
        """Defer the signals of this process; see `Guard.deferring`."""
        with self.guard.deferring():
            yield

    def poll(self) -> int | None:
        """Return the signal that all ranks have agreed on, if any has received one."""
        flags, ended = self.reducer.flags, self.trainer.step >= self.trainer.ends[-1]
        if flags is None or (flags.is_cuda and self.trainer.step % FLAGS_ON_GPU and not ended):
            return self.received
        if self.received is None and float(flags):
            signals = [number for number in self.reducer.ranks.all_gather(self.guard.received) if number]
            self.received = min(signals)  # Ctrl-C rather than what torchrun makes of it
        # After the last step there is nothing left to agree on: rank 0 goes on alone.
        if self.received is None and ended and self.reducer.ranks.rank == 0:
            self.received = self.guard.received
        return self.received

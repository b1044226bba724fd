"""Which rows a step sees: a full permutation every epoch, gathered a few batches at a time."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.sources.base import Source

# Rows gathered by one indexing call: enough to share its overhead, few enough to stay in the cache.
BLOCK_ROWS = 1024


class Batches:
    """Batches of standardised rows in a new random order every epoch.

    Epoch e is ordered by a generator seeded with (seed, e), so the position (epoch, batch) says all there is
    to know: a resumed run sees the rows that the uninterrupted one would have seen. A last batch of one row
    is left out, since it has no variance.
    """

    def __init__(self, source: Source, batch_size: int, seed: int) -> None:
        self.source, self.seed = source, seed
        self.size = min(batch_size, source.n)
        whole, rest = divmod(source.n, self.size)
        self.per_epoch = whole + (rest >= 2)

    def order(self, epoch: int) -> np.ndarray:
        """The permutation of the rows in an epoch, (n,) int64."""
        return np.random.default_rng((self.seed, epoch)).permutation(self.source.n)

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Tensor]:
        """Batches (b, p) of one epoch from the batch numbered `first` on."""
        order = self.order(epoch)
        each = max(1, BLOCK_ROWS // self.size)
        for block in range(first, self.per_epoch, each):
            last = min(block + each, self.per_epoch)
            rows = self.source.rows(order[block * self.size : last * self.size])
            yield from torch.from_numpy(rows).split(self.size)

"""The rows of a batch that a process holds: all of them here, a share of them in a run over several processes.

Whatever a method takes from its batch is a mean over rows. The objectives are linear in most of these means, so that
a gradient is the weighted sum of the gradients of the shares; the few that are not (a mean that is subtracted, a
variance, β times a mean) ask `mean` for the mean over the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


class Share:
    """The whole batch."""

    centred = False
    """Whether the rows come centred on the whole batch already, so that their mean is zero."""

    def mean(self, v: Tensor) -> Tensor:
        """Mean over the rows of the whole batch, (…, b, k) -> (…, 1, k); gradients flow through it."""
        return v.mean(-2, keepdim=True)

    def draw(self, b: int, make: Callable[[int], Tensor]) -> Tensor:
        """The part of make(rows of the whole batch) that belongs to the b rows of this share."""
        return make(b)

    def combine(self, loss: Tensor, gradients: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss and gradients of the whole batch from those of this share."""
        return loss, gradients


WHOLE = Share()

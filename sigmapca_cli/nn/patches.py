"""σ-PCA of image patches: a convolution applies the filters, and the loss sees every window as a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.nn import functional

from sigmapca_cli.nn.layer import SigmaPCA


class PatchSigmaPCA(SigmaPCA):
    """A convolution with filters that nonlinear PCA trains on the patches of its images.

    Parameters
    ----------
    channels : int
        Channels of an image, c.
    size : int
        Side of a patch in pixels, s.
    n_components : int
        Filters, k ≤ c·s².
    stride : int
        Pixels from one window to the next.
    padding : int
        Zeros on each side of an image.
    **settings : Any
        Those of `SigmaPCA`.

    Raises
    ------
    ValueError
        If a setting does not fit.

    Notes
    -----
    A row of the loss is one window, its p = c·s² values by channel, row and column, as `torch.nn.functional.unfold`
    has them.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        n_components: int,
        *,
        stride: int = 1,
        padding: int = 0,
        **settings: Any,
    ) -> None:
        for name, value, least in (
            ("channels", channels, 1),
            ("size", size, 1),
            ("stride", stride, 1),
            ("padding", padding, 0),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name}={value!r}: give a whole number from {least} on")
        super().__init__(channels * size * size, n_components, **settings)
        self.channels, self.size, self.stride, self.padding = channels, size, stride, padding

    @property
    def kernels(self) -> Tensor:
        """Return the filters as images, (k, c, s, s)."""
        return self.filters.mT.reshape(self.n_components, self.channels, self.size, self.size)

    def forward(self, x: Tensor, return_loss: bool = False) -> Any:
        """Return the components of every window.

        Parameters
        ----------
        x : Tensor of shape (n, c, height, width)
            Images.
        return_loss : bool
            Whether to return the loss too.

        Returns
        -------
        Tensor of shape (n, k, height', width'), or a pair of it and the loss
            The convolution with the filters, less μW.
        """
        loss = self.loss(x) if return_loss else None
        W = self.filters
        shift = -self.running_mean.to(W.dtype) @ W
        y = functional.conv2d(x, self.kernels, shift, self.stride, self.padding)
        return y if loss is None else (y, loss)

    def windows(self, images: Tensor) -> Tensor:
        """Return every window of images as a row.

        Parameters
        ----------
        images : Tensor of shape (n, c, height, width)
            Images.

        Returns
        -------
        Tensor of shape (n·windows, p)
            Windows image by image, row by row.

        Raises
        ------
        ValueError
            If the images have another shape or number of channels.
        """
        if images.ndim != 4 or images.shape[1] != self.channels:
            raise ValueError(
                f"images of shape {tuple(images.shape)}: give (n, {self.channels}, height, width)"
            )
        unfolded = functional.unfold(images, self.size, padding=self.padding, stride=self.stride)
        return unfolded.mT.reshape(-1, self.in_features)

    def _rows(self, x: Tensor) -> Tensor:
        """Return the windows of images in the type of the weight."""
        return super()._rows(self.windows(x))

    def _parts(self, parts: Iterable[Tensor]) -> Iterable[Tensor]:
        """Return the windows of batches of images."""
        return (self.windows(part) for part in parts)

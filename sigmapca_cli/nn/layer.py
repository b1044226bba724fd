"""The σ-PCA layer: y = (x − μ)W, and the main loss that trains W beside the rest of a network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sigmapca_cli.methods import automatic
from sigmapca_cli.nn.pieces import LossOfLayer, random_orthonormal_
from sigmapca_cli.nn.statistics import batches_of, leading, moments_of
from sigmapca_cli.system.errors import InputError


class SigmaPCA(LossOfLayer):
    """A layer y = (x − μ)W whose filters W nonlinear PCA trains, with σ.

    Parameters
    ----------
    in_features : int
        Features of a row, p.
    n_components : int
        Components, k ≤ p.
    a : float or "auto"
        Scale of h(z) = a·tanh(z/a), above 0; "auto" follows the sign of each component's non-Gaussianity.
    nonlinearity : str
        Name of h, as in the group `nonlinearity` of the command line.
    derivative : {"true", "one"}
        Whether h′ is itself or 1 in the gradient.
    sigma : {"ema", "batch", "trained", "unit"}
        σ: from a moving average of the variances, from the batch, a trained parameter, or 1.
    momentum : float
        Weight of the past in the moving averages, as `sigma.momentum` of the command line.
    epsilon : float
        Added under the root of σ.
    relative : bool
        Whether `epsilon` is a share of each variance, as in recipe=default, or a number, as in recipe=paper.
    start : {"data", "one"}
        Variances before the first step: those of the first batch, or of the rows given to `init_pca`; or 1.
    constraint : {"unit_norm", "symmetric", "gram_schmidt", "none"}
        What `constrain_` does to the weight after a step. Except for "none" the filters are the columns of the weight
        divided by their norms, so that only the tangent part of a gradient counts.
    sync : bool
        Whether means and variances are those of the batch over all processes of `torch.distributed`.
    device : torch.device, optional
        Where the parameters are.
    dtype : torch.dtype, optional
        Their type.

    Attributes
    ----------
    weight : Parameter of shape (p, k)
        What the optimizer moves; `filters` are made of it.
    deviation : Parameter of shape (k,) or None
        The trained σ, for sigma="trained".
    running_mean : Tensor of shape (p,)
        μ, a moving average of the batches' means; a buffer.
    variance : Tensor of shape (k,)
        Moving average of the components' variances; a buffer.

    Raises
    ------
    ValueError
        If a setting is not one of those above.

    Notes
    -----
    The loss is E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖² on rows centred on the mean of their batch; Σ is held constant unless it is
    trained (paper, the nonlinear PCA model). Call `constrain_after(optimizer)` once. Gradients reach x, and with it
    the layers below; give `x.detach()` to train this layer only. A loss that may change x is made small by features
    without variance, so that it needs a task beside it.

    References
    ----------
    F. Kanavati, L. Katsnith, M. Tsuneki (2024). σ-PCA: a building block for neural learning of identifiable linear
    transformations. TMLR.
    """

    def __init__(
        self,
        in_features: int,
        n_components: int,
        *,
        a: float | str = 4.0,
        nonlinearity: str = "scaled_tanh",
        derivative: str = "true",
        sigma: str = "ema",
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        relative: bool = True,
        start: str = "data",
        constraint: str = "unit_norm",
        sync: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features, n_components, a=a, nonlinearity=nonlinearity, derivative=derivative, sigma=sigma,
            momentum=momentum, epsilon=epsilon, relative=relative, start=start, constraint=constraint, sync=sync,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to random orthonormal columns, and the averages to what they are before the first batch."""
        random_orthonormal_(self.weight)
        with torch.no_grad():
            self.running_mean.zero_()
            self.variance.fill_(1)
            self.batches.zero_()
            if self.deviation is not None:
                self.deviation.fill_(1)
            if self.a == "auto":
                for name, value in automatic.start(self.variance).items():
                    self.get_buffer(f"auto_{name}").copy_(value)

    @classmethod
    def from_run(cls, run: Any, **settings: Any) -> SigmaPCA:
        """Return a layer with the filters, the mean and the variances of a run.

        Parameters
        ----------
        run : Run, str or PathLike
            A finished run of nonlinear or linear PCA, or its name.
        **settings : Any
            Those of the layer, in the place of the run's.

        Returns
        -------
        SigmaPCA
            A layer whose y, divided by the run's σ, is the run's `transform`.

        Raises
        ------
        InputError
            If the run is no orthonormal transformation of centred rows, or the layer is of another kind.
        """
        if cls.__init__ is not SigmaPCA.__init__:
            raise InputError(f"{cls.__name__}.from_run: only SigmaPCA can be made of a run")
        from sigmapca_cli.nn.runs import arrays_and_settings

        W, mean, sigma, own = arrays_and_settings(run)
        layer = cls(*W.shape, **{**own, **settings})
        with torch.no_grad():
            for target, value in ((layer.weight, W), (layer.running_mean, mean), (layer.variance, sigma**2)):
                target.copy_(torch.as_tensor(value))
            if layer.deviation is not None:
                layer.deviation.copy_(torch.as_tensor(sigma))
            layer.batches.fill_(1)
        return layer

    # ---- values ----

    @property
    def order(self) -> Tensor:
        """Return the indices (k,) of the components by decreasing variance of the batches so far."""
        return self.variance.argsort(descending=True, stable=True)

    @property
    def encoder(self) -> Tensor:
        """Return what centred rows are multiplied with, W (p, k)."""
        return self.filters

    def forward(self, x: Tensor, return_loss: bool = False) -> Any:
        """Return the components of rows.

        Parameters
        ----------
        x : Tensor of shape (…, p)
            Rows.
        return_loss : bool
            Whether to return the loss too. Distributed training needs it: only a call of the module starts its
            communication.

        Returns
        -------
        Tensor of shape (…, k), or a pair of it and the loss
            (x − μ) @ encoder with the running mean; the encoder is W, of linear ICA WΣ⁻¹V.
        """
        loss = self.loss(x) if return_loss else None
        W = self.encoder
        y = (x - self.running_mean).to(W.dtype) @ W
        return y if loss is None else (y, loss)

    def loss(self, x: Tensor) -> Tensor:
        """Return the main loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (…, p)
            Rows, at least two in all while training.

        Returns
        -------
        Tensor of shape ()
            E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖², a mean over the rows, in the type of the weight also under autocast; in float32 for
            a weight of half precision.

        Raises
        ------
        ValueError
            If the rows have another number of features, are fewer than two, or hold NaN.

        Notes
        -----
        While the module trains, each call moves the averages of mean and variance on by one batch. A backward pass that
        computes it again (activation checkpointing) does not.
        """
        with torch.autocast(x.device.type, enabled=False):
            rows = self._rows(x)
            return self._loss_of_rows(rows - self._centre(rows))

    def reconstruct(self, y: Tensor) -> Tensor:
        """Return the rows that components stand for.

        Parameters
        ----------
        y : Tensor of shape (…, k)
            Components.

        Returns
        -------
        Tensor of shape (…, p)
            The rows yWᵀ + μ, the nearest ones where W has orthonormal columns; of linear ICA yVᵀΣWᵀ + μ.
        """
        W = self.filters
        return self._on_filters(y) @ W.mT + self.running_mean.to(W.dtype)

    def _on_filters(self, y: Tensor) -> Tensor:
        """Return what components are along the filters."""
        return y

    # ---- before and after steps ----

    @torch.no_grad()
    def init_pca(self, x: Any) -> SigmaPCA:
        """Start at the leading eigenvectors of the covariance of rows.

        Parameters
        ----------
        x : Tensor or array of shape (…, p), or an iterable of such
            Rows, or batches of rows such as a DataLoader gives: of a batch with labels, its first entry.

        Returns
        -------
        SigmaPCA
            The layer itself. Its mean, and with start="data" its variances, are those of the rows.

        Raises
        ------
        ValueError
            If the rows have another width, are not finite, or have variance in fewer than k directions.
        """
        mean, covariance = moments_of(self._parts(batches_of(x)), self.in_features)
        values, vectors = leading(covariance, self.n_components)
        self.weight.copy_(vectors)
        self.running_mean.copy_(mean)
        if self.start == "data":
            self.variance.copy_(values)
            if self.deviation is not None:
                self.deviation.copy_(values.sqrt())
        self.batches.fill_(1)
        return self

    def constrain_after(self, optimizer: torch.optim.Optimizer) -> Any:
        """Call `constrain_` after every step of an optimizer.

        Parameters
        ----------
        optimizer : torch.optim.Optimizer
            The optimizer that moves this layer's weight.

        Returns
        -------
        torch.utils.hooks.RemovableHandle
            Its `remove()` ends it.

        Notes
        -----
        A deep copy of the layer and the optimizer has no such hook; the copied layer puts its weight back itself.
        """
        self._hooked, self._copied = True, False
        return optimizer.register_step_post_hook(lambda *_: self.constrain_())

    def extra_repr(self) -> str:
        """Return the settings, for the printed form of a network.

        Returns
        -------
        str
            What stands between the brackets.
        """
        return (
            f"{self.in_features}, {self.n_components}, a={self.a}, nonlinearity={self.nonlinearity}, "
            f"sigma={self.sigma_rule}, constraint={self.constraint}"
        )

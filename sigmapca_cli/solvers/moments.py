"""One pass over the rows: the cross moments that the Newton solver works on.

Blocks are sized for the cache and computed in the dtype of the rows; sums across blocks are kept in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.solvers.scores import Score

Array = np.ndarray


@dataclass(frozen=True)
class Moments:
    """Moments of the standardised components z = Y·M of one candidate.

    Q (k, k): Q_ij = E[z_i φ(z_j)];  m (k,): E[z_j φ(z_j)];  c (k,): E[φ′(z_j)];
    T (k, k, k) or None: T_jil = E[φ′(z_j) z_i z_l];  error (k,) or None: standard error of m_j − c_j.
    """

    Q: Array
    c: Array
    T: Array | None = None
    error: Array | None = None

    @property
    def m(self) -> Array:
        """E[z_j φ(z_j)]."""
        return np.diag(self.Q)

    def signed(self, signs: Array) -> Moments:
        """The same moments for the score s_j·φ, s_j = ±1."""
        T = None if self.T is None else self.T * signs[:, None, None]
        return Moments(self.Q * signs, self.c * signs, T, self.error)


def measure(
    Y: Tensor,
    M: Array,
    score: Score,
    a: Array,
    *,
    third: bool = False,
    error: bool = False,
    block: int = 4096,
) -> Moments:
    """Cross moments of z = Y·M over all rows of Y (n, k), M (k, k) = RΣ⁻¹, a (k,).

    third adds T, which costs n·k³ multiplications; error adds the standard error of m_j − c_j, which takes
    rows to be independent (patches that overlap are not: there it is a lower bound).
    """
    n, k = Y.shape
    Mt = torch.from_numpy(np.ascontiguousarray(M)).to(Y.dtype)
    at = torch.from_numpy(np.asarray(a, dtype=np.float64)).to(Y.dtype)
    Q = torch.zeros(k, k, dtype=torch.float64)
    c = torch.zeros(k, dtype=torch.float64)
    T = torch.zeros(k, k * k, dtype=torch.float64) if third else None
    squares = torch.zeros(k, dtype=torch.float64)
    for rows in Y.split(block):
        z = rows @ Mt
        phi, dphi = score(z, at)
        Q += (z.T @ phi).double()
        c += dphi.sum(0).double()
        if T is not None:
            for zs, ds in zip(z.split(512), dphi.split(512), strict=True):
                T += (zs.T @ (ds[:, :, None] * zs[:, None, :]).flatten(1)).double()
        if error:
            squares += torch.square(z * phi - dphi).sum(0).double()
    Qn, cn = Q.numpy() / n, c.numpy() / n
    # T is accumulated as (i, j·k + l) and handed out as T_jil.
    Tn = None if T is None else (T.view(k, k, k).transpose(0, 1) / n).contiguous().numpy()
    gap = np.diag(Qn) - cn
    se = np.sqrt(np.maximum(squares.numpy() / n - gap**2, 0) / n) if error else None
    return Moments(Qn, cn, Tn, se)

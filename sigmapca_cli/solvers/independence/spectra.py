"""Rows in time: spectral matrices in place of the covariance, and whether rows are in time at all.

S(f) = real part of the spectral matrix of the components, by Welch's method (segments that overlap by half, Hann
window), averaged into bands. Σ_i ½ mean_f log S_ii(f) is smallest where S(f) is diagonal at every f (Hadamard): so
components are told apart by their spectra as well as by variances and shapes. On white rows S_ii(f) = σ_i².

References
----------
D.-T. Pham (2001). Joint approximate diagonalization of positive definite Hermitian matrices. SIAM J. Matrix Anal.
P. D. Welch (1967). The use of fast Fourier transform for the estimation of power spectra. IEEE Trans. Audio.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from sigmapca_cli.system.errors import InputError

Array = np.ndarray

BANDS = 32
"""Largest number of bands."""
SEGMENTS = 16
"""Number of segments that one series has at least, if it is long enough for SHORTEST of their rows."""
SHORTEST = 32
"""Least number of rows of a segment: 16 bands."""
LONGEST = 512
"""Largest number of rows of a segment: more would show lines, and averages into bands hide them."""
LAGGED = 8
"""Number of leading components whose lag-1 correlation is asked."""
LEVEL = 0.001
"""Probability that rows without an order are called ordered."""


def spectra_of(Y: Array, pieces: Sequence[int] = (), bands: int = BANDS) -> Array:
    """Return the spectral matrices of rows in time, (bands, k, k), float64.

    Parameters
    ----------
    Y : ndarray of shape (n, k)
        Components in the order of time.
    pieces : sequence of int
        Numbers of the rows at which a new file, subject or stretch after a gap begins; no segment goes across them.
    bands : int
        Number of bands of equal width; fewer if segments are short.

    Returns
    -------
    ndarray of shape (bands, k, k)
        Real, symmetric and positive; in units in which white rows give their covariance.

    Raises
    ------
    InputError
        If no piece has SHORTEST rows.
    """
    edges = checked_pieces(pieces, len(Y))
    lengths = np.diff(edges)
    length = segment_length(lengths)
    frequencies = length // 2 + 1
    count = min(bands, frequencies - 1)
    band = np.minimum(np.arange(frequencies) * count // (frequencies - 1), count - 1)
    window = np.hanning(length + 1)[:length]
    # the zero frequency and the highest one appear once in a full spectrum, the others twice
    twice = np.where(np.isin(np.arange(frequencies), (0, length / 2)), 1.0, 2.0)
    weight = np.bincount(band, twice, count)
    S, used = np.zeros((count, Y.shape[1], Y.shape[1])), 0
    centre = Y.mean(0, dtype=np.float64)
    for start in segment_starts(edges, length):
        segment = (Y[start : start + length] - centre) * window[:, None]
        F = np.fft.rfft(segment, axis=0) * np.sqrt(twice)[:, None]
        for b in range(count):
            part = F[band == b]
            S[b] += part.real.T @ part.real + part.imag.T @ part.imag
        used += 1
    return np.asarray(S / (weight[:, None, None] * used * np.square(window).sum()))


def checked_pieces(pieces: Sequence[int], n: int) -> Array:
    """Return the edges of the pieces, from 0 to n. Raise InputError if they do not lie in the rows."""
    inner = np.unique(np.asarray(pieces, dtype=np.int64))
    if len(inner) and (inner[0] < 0 or inner[-1] >= n):
        raise InputError(f"pieces begin at rows 0 to {n - 1}; {inner[0]} to {inner[-1]} were given")
    return np.concatenate([[0], inner[inner > 0], [n]])


def segment_length(lengths: Array) -> int:
    """Return the number of rows of a segment, even, for pieces of these lengths. Raise InputError if all are short."""
    longest = int(lengths.max())
    if longest < SHORTEST:
        raise InputError(
            f"the longest piece of rows in time has {longest} rows, and spectra need {SHORTEST}: set data.ordered=false"
        )
    # halves overlap: m segments of a piece take (m + 1)/2 lengths of rows
    wanted = int(lengths.sum()) * 2 // (SEGMENTS + 1)
    return int(np.clip(min(wanted, longest), SHORTEST, LONGEST)) // 2 * 2


def segment_starts(edges: Array, length: int) -> list[int]:
    """Return the first rows of all segments: they overlap by half, and lie within one piece."""
    return [
        start
        for first, last in itertools.pairwise(edges)
        for start in range(int(first), int(last) - length + 1, length // 2)
    ]


def are_ordered(Y: Array, pieces: Sequence[int] = ()) -> bool:
    """Return whether rows depend on their neighbours: the lag-1 correlation of leading components, and of their size.

    Y (n, k): components by decreasing variance, in the order of the rows. For rows without an order √n·r is Gaussian
    of variance 1; heavy tails are tamed by ranks. The size is asked too: returns have no lag-1 correlation, and slow
    variance.
    """
    edges = checked_pieces(pieces, len(Y))
    leading = Y[:, :LAGGED].astype(np.float64)
    n = len(leading) - (len(edges) - 1)
    if n < SHORTEST:
        return False
    from scipy import stats

    within = np.ones(len(leading) - 1, bool)
    within[edges[1:-1] - 1] = False
    ranks = stats.rankdata(np.column_stack([leading, np.abs(leading - np.median(leading, axis=0))]), axis=0)
    ranks -= ranks.mean(0)
    spread = np.maximum(np.square(ranks).mean(0), 1e-300)
    lagged = (ranks[1:] * ranks[:-1])[within].mean(0) / spread
    bound = stats.norm.isf(LEVEL / (2 * ranks.shape[1]))
    return bool(np.abs(lagged).max() * np.sqrt(n) > bound)

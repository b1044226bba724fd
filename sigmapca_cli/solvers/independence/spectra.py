"""Rows in time: spectral matrices in place of the covariance.

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

from sigmapca_cli.data.row_order import checked_pieces
from sigmapca_cli.data.source import Source
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.row_shards import added, agreed, own, place

Array = np.ndarray

BANDS = 32
"""Largest number of bands."""
FEWEST_BANDS, ROWS_OF_A_BAND = 4, 100
"""Least number of bands, and of rows for each band: with more bands of few rows, spectra are noise."""
SEGMENTS = 16
"""Number of segments that one series has at least, if it is long enough for SHORTEST of their rows."""
SHORTEST = 32
"""Least number of rows of a segment: 16 bands."""
CHUNK = 1 << 16
"""Number of rows that are read at once where there are too many to hold."""
LONGEST = 512
"""Largest number of rows of a segment: more would show lines, and averages into bands hide them."""
FLOOR = 1e-6
"""White noise that is added to all components, as part of their mean variance: a band without power has a logarithm."""


def spectra_of(Y: Array, pieces: Sequence[int] = (), bands: int = BANDS) -> Array:
    """Return the spectral matrices (bands, k, k), float64, of components Y (n, k) in the order of time.

    pieces: rows at which a new file, subject or stretch after a gap begins; no segment goes across them. bands: of
    equal width, at most; fewer if rows are few or segments short. They are real, symmetric and positive, in units in
    which white rows give their covariance. Raise InputError if no piece has SHORTEST rows.
    """
    edges, n = checked_pieces(pieces, len(Y)), place(Y)[1]
    welch = Welch(agreed(segment_length(np.diff(edges), n)), n, Y.shape[1], bands)
    welch.add(Y - added((Y.sum(0, dtype=np.float64),))[0] / n, edges)
    return welch.spectra()


def spectra_of_source(source: Source, P: Array) -> Array:
    """Return the spectral matrices of all rows of a source in the axes P (p, k), read in stretches of CHUNK rows.

    It is for rows that are too many to hold; each stretch is a piece of its own. Raise InputError if pieces are short.
    """
    mean, pieces = np.asarray(source.covariance()[0]) @ P, np.asarray(source.pieces, np.int64)
    lengths = np.diff(checked_pieces(source.pieces, source.n))
    welch = Welch(segment_length(np.minimum(lengths, CHUNK), source.n), source.n, P.shape[1], BANDS)
    first, held, blocks = own(source.n).start, 0, []
    for block in itertools.chain(source.project(P.astype(np.float32)), [None]):
        if block is not None:
            blocks.append(block)
            held += len(block)
        if held and (block is None or held >= CHUNK):
            inside = pieces[(pieces > first) & (pieces < first + held)] - first
            welch.add(np.concatenate(blocks) - mean, np.concatenate([[0], inside, [held]]))
            first, held, blocks = first + held, 0, []
    return welch.spectra()


class Welch:
    """Sums of periodograms of segments, by band.

    length: rows of a segment. n: number of all rows. k: number of components. bands: largest number of bands.
    """

    def __init__(self, length: int, n: int, k: int, bands: int) -> None:
        self.length, self.used = length, 0
        frequencies = length // 2 + 1
        count = min(int(np.clip(n // ROWS_OF_A_BAND, FEWEST_BANDS, bands)), frequencies - 1)
        self.band = np.minimum(np.arange(frequencies) * count // (frequencies - 1), count - 1)
        self.window = np.hanning(length + 1)[:length]
        # the zero frequency and the highest one appear once in a full spectrum, the others twice
        self.twice = np.where(np.isin(np.arange(frequencies), (0, length / 2)), 1.0, 2.0)
        self.sums = np.zeros((count, k, k))

    def add(self, Y: Array, edges: Array) -> None:
        """Add the segments of centred rows (m, k) whose pieces have these edges, from 0 to m."""
        for start in segment_starts(edges, self.length):
            segment = Y[start : start + self.length] * self.window[:, None]
            F = np.fft.rfft(segment, axis=0) * np.sqrt(self.twice)[:, None]
            for b in range(len(self.sums)):
                part = F[self.band == b]
                self.sums[b] += part.real.T @ part.real + part.imag.T @ part.imag
            self.used += 1

    def spectra(self) -> Array:
        """Return the spectral matrices (bands, k, k) of the rows of all ranks."""
        S, used = added((self.sums, np.array([float(self.used)])))
        weight = np.bincount(self.band, self.twice, len(S))
        S = S / (weight[:, None, None] * used[0] * np.square(self.window).sum())
        k = S.shape[1]
        return np.asarray(S + FLOOR * np.einsum("fii->", S) / (len(S) * k) * np.eye(k))


def are_long_enough(pieces: Sequence[int], n: int) -> bool:
    """Return whether some piece of n rows has SHORTEST rows, so that spectra can be had."""
    return bool(np.diff(checked_pieces(pieces, n)).max() >= SHORTEST)


def segment_length(lengths: Array, n: int) -> int:
    """Return the number of rows of a segment, even, for pieces of these lengths. Raise InputError if all are short."""
    longest = int(lengths.max())
    if longest < SHORTEST:
        raise InputError(
            f"the longest piece of rows in time has {longest} rows, and spectra need {SHORTEST}: set data.ordered=false"
        )
    # halves overlap: m segments of a piece take (m + 1)/2 lengths of rows
    wanted = n * 2 // (SEGMENTS + 1)
    return int(np.clip(min(wanted, longest), SHORTEST, LONGEST)) // 2 * 2


def segment_starts(edges: Array, length: int) -> list[int]:
    """Return the first rows of all segments: they overlap by half, and lie within one piece."""
    return [
        start
        for first, last in itertools.pairwise(edges)
        for start in range(int(first), int(last) - length + 1, length // 2)
    ]

"""Fifteen kinds of independent sources of mean 0 and variance 1, and Gaussian ones, planted in orthonormal directions.

The tests of solver=independence and benchmarks/kinds.py share them.
"""

import numpy as np


def two_valued(P):
    """Two values, the upper with probability P."""
    return lambda rng, shape: ((rng.random(shape) < P) - P) / np.sqrt(P * (1 - P))


def three_valued(rng, shape):
    """−1, 0 and 1, with P(0) = 2/3: skewness and excess kurtosis 0."""
    return np.sqrt(3.0) * rng.choice([-1, 0, 0, 0, 0, 1], shape)


def scale_mixture(rng, shape):
    scale = np.where(rng.random(shape) < 0.1, 3.0, 0.4)
    return rng.normal(size=shape) * scale / np.sqrt(0.1 * 9 + 0.9 * 0.16)


def bimodal(rng, shape):
    """Two bumps of unequal weight."""
    upper = rng.random(shape) < 0.3
    x = np.where(upper, 2.0, -1.0) + 0.5 * rng.normal(size=shape)
    mean = 0.3 * 2 - 0.7
    return (x - mean) / np.sqrt(0.25 + 0.3 * 4 + 0.7 - mean**2)


KINDS = {
    "laplace": lambda rng, shape: rng.laplace(size=shape) / np.sqrt(2),
    "t, 3 df": lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "gamma(4)": lambda rng, shape: (rng.gamma(4, size=shape) - 4) / 2,
    "scale mixture": scale_mixture,
    "Poisson(2)": lambda rng, shape: (rng.poisson(2, shape) - 2) / np.sqrt(2),
    "Poisson(20)": lambda rng, shape: (rng.poisson(20, shape) - 20) / np.sqrt(20),
    "±1": two_valued(0.5),
    "two-valued, P = .25": two_valued(0.25),
    "two-valued, P = .3": two_valued(0.3),
    "two-valued, P = .05": two_valued(0.05),
    "two-valued, kurtosis 0": two_valued(0.5 - np.sqrt(1 / 12)),
    "three-valued": three_valued,
    "bimodal": bimodal,
    "uniform": lambda rng, shape: rng.uniform(-np.sqrt(3), np.sqrt(3), shape),
}
"""The fifteen kinds."""
ALL = {**KINDS, "Gaussian": lambda rng, shape: rng.normal(size=shape)}
SIGMA = (3.0, 3.0, 2.85, 1.8, 1.8)
"""Standard deviations of planted sources unless others are given: two of them equal, one near them, two equal."""


PHI = np.array([0.95, 0.8, 0.5, 0.0, -0.6])
"""Lag-1 correlations of series unless others are given."""
SERIES_SIGMA = np.array([2.0, 2.0, 2.0, 1.0, 1.0])
"""Their standard deviations."""


def series(kind, n, seed, phi=PHI, sigma=SERIES_SIGMA):
    """Return AR(1) series (n, k) of given standard deviations, driven by noise of a kind."""
    rng = np.random.default_rng(seed)
    noise = ALL[kind](rng, (n + 200, len(phi))) * np.sqrt(1 - phi**2)
    x = np.zeros_like(noise)
    for t in range(1, len(x)):
        x[t] = phi * x[t - 1] + noise[t]
    return x[200:] * sigma


def planted(kind, n, seed, sigma=SIGMA, p=8, noise=0.05):
    """Return rows X (n, p), centred, and the orthonormal directions E (p, k) of their sources."""
    rng = np.random.default_rng(seed)
    S = ALL[kind](rng, (n, len(sigma))) * np.asarray(sigma)
    E = np.linalg.qr(rng.normal(size=(p, p)))[0][:, : len(sigma)]
    X = S @ E.T + noise * rng.normal(size=(n, p))
    return X - X.mean(0), E


def projected(X, k):
    """Return the rows on their k principal axes (n, k), and the axes P (p, k)."""
    P = np.linalg.eigh(X.T @ X / len(X))[1][:, ::-1][:, :k]
    return X @ P, P

"""data=signals: three test signals mixed as in the paper's experiments, or recordings from WAV files."""

import logging
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.in_memory import MemorySource, known_source
from sigmapca_cli.data.locate import existing
from sigmapca_cli.data.truth import Truth
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import reason
from sigmapca_cli.system.untrusted_files import need_memory

Array = NDArray[np.float64]

# The authors' recorded mixing matrix: uniform random, columns of unit norm; X = S A.
RECORDED_MIXING = np.array(
    [
        [0.7592529, 0.7150501, 0.0807479],
        [0.3787826, 0.6920025, 0.6625595],
        [0.5292058, 0.0991756, 0.7446440],
    ]
)


def rotation() -> Array:
    """Rx(−π/4) Ry(π/3), (3, 3)."""
    a, b = -np.pi / 4, np.pi / 3
    Rx = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    Ry = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    return Rx @ Ry


def waves(n: int, duration: float, noise: float, seed: int) -> Array:
    """S (n, 3): 6 sin 2t, 3 sign(sin 3t), sawtooth 2πt, plus `noise` × standard normal numbers.

    The legacy generator, because seed 0 must give the numbers of the authors' own runs.
    """
    t = np.linspace(0, duration, n)
    sawtooth = np.mod(2 * np.pi * t, 2 * np.pi) / np.pi - 1
    S = np.c_[6 * np.sin(2 * t), 3 * np.sign(np.sin(3 * t)), sawtooth]
    return S + noise * np.random.RandomState(seed).normal(size=S.shape)


def equalise(S: Array, variant: str) -> Array:
    """Variances as the variant asks: all 1 ("same_variance"), all but the first 1 ("two_same_variance")."""
    if variant == "same_variance":
        return S / S.std(axis=0)
    if variant == "two_same_variance":
        return S / np.r_[1.0, S[:, 1:].std(axis=0)]
    return S


def mixing_matrix(variant: str, k: int, seed: int) -> Array:
    """M (k, k) of X = S Mᵀ: a rotation; for "non_orthogonal", Mᵀ has columns of unit norm."""
    if variant == "non_orthogonal":
        if k == 3 and seed == 0:
            return RECORDED_MIXING.T
        A = np.random.RandomState(seed).uniform(size=(k, k))
        return (A / np.linalg.norm(A, axis=0)).T
    if k == 3:
        return rotation()
    Q, R = np.linalg.qr(np.random.RandomState(seed).normal(size=(k, k)))
    return Q * np.sign(np.diag(R))


def mix(S: Array, variant: str, seed: int) -> tuple[Array, Truth]:
    """X (n, k) and its truth. For "same_variance" X is divided by its std as well, in the authors' way."""
    S = equalise(S, variant)
    M = mixing_matrix(variant, S.shape[1], seed)
    X = S @ M.T
    if variant == "same_variance":
        scale = X.std(axis=0)
        X, M = X / scale, M / scale[:, None]
    orthonormal = np.allclose(M.T @ M, np.eye(M.shape[1]), atol=1e-9)
    return X, Truth("sources", filters=M if orthonormal else None, sources=S, mixing=M)


def read_wav(path: Path) -> tuple[int, Array]:
    """Rate and samples (n, channels) of a WAV file, whole numbers scaled to ±1."""
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wavfile.WavFileWarning)  # chunks of tags, of no concern here
            rate, samples = wavfile.read(path)
    except Exception as error:  # scipy raises ValueError, struct.error, EOFError … by the kind of damage
        raise InputError(f"{path} cannot be read as WAV ({reason(error)}): convert it to PCM WAV") from None
    if not samples.size:
        raise InputError(f"{path} holds no samples: record it again")
    scaled = samples.astype(np.float64)
    if samples.dtype == np.uint8:
        scaled = (scaled - 128) / 128
    elif samples.dtype.kind == "i":
        scaled /= -float(np.iinfo(samples.dtype).min)
    return int(rate), scaled.reshape(len(scaled), -1)


def read_recordings(path: Path) -> tuple[int, Array, tuple[str, ...]]:
    """Rate, S (n, k) and names: the channels of one WAV file, or of all in a folder, cut to the shortest."""
    files = sorted(path.glob("*.[wW][aA][vV]")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path} has no .wav file: give a folder of WAV files, or one file")
    if odd := next((file for file in files if not file.is_file()), None):
        raise InputError(f"{odd} is not a plain file: remove it, or give other WAV files")
    tracks = [read_wav(file) for file in files]
    rates = {rate for rate, _ in tracks}
    if len(rates) > 1:
        raise InputError(
            f"{path}: sample rates differ ({', '.join(map(str, sorted(rates)))} Hz): resample first"
        )
    length = min(len(samples) for _, samples in tracks)
    names = (
        file.stem if samples.shape[1] == 1 else f"{file.stem}:{channel + 1}"
        for file, (_, samples) in zip(files, tracks, strict=True)
        for channel in range(samples.shape[1])
    )
    return rates.pop(), np.hstack([samples[:length] for _, samples in tracks]), tuple(names)


def sample(cfg: DataConfig) -> tuple[Array, Truth | None, int | None, tuple[str, ...] | None]:
    """X (n, k), its truth, its sample rate, and the names of channels that were recorded."""
    if cfg.path is None:
        n = 2000 if cfg.n is None else cfg.n
        need_memory(128.0 * n, "data=signals", "lower data.n")
        X, truth = mix(waves(n, cfg.duration, cfg.noise, cfg.seed), cfg.variant, cfg.seed)
        return X, truth, round((n - 1) / cfg.duration), None
    rate, S, names = read_recordings(existing(cfg.path, "WAV files"))
    S = S if cfg.n is None else S[: cfg.n]
    if not cfg.mix:
        return S, None, rate, names
    silent = np.flatnonzero(S.std(axis=0) == 0)
    if len(silent) and "same" in cfg.variant:
        raise InputError(
            f"{cfg.path}: channel {silent[0]} is silent, it has no variance to equalise: leave it out"
        )
    logging.getLogger("sigmapca").warning(
        "%s: its %d tracks are taken for sources, and are mixed; data.mix=false reads them as microphones",
        cfg.path,
        S.shape[1],
    )
    X, truth = mix(S, cfg.variant, cfg.seed)
    return X, truth, rate, None


def build(cfg: DataConfig) -> MemorySource:
    X, truth, rate, names = sample(cfg)
    source = known_source("signals", X, truth, cfg)
    source.sample_rate, source.names = rate, names
    return source

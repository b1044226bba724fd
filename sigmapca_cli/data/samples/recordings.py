"""Recordings with known sources: an electroencephalogram, microphones; and windows of pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sigmapca_cli.data.samples.tables import Sample, Sound, frame

Array = NDArray[np.float64]

ELECTRODES = {
    "Fp1": (-0.3, 0.9), "Fp2": (0.3, 0.9), "F7": (-0.8, 0.55), "F3": (-0.4, 0.5), "Fz": (0.0, 0.45), "F4": (0.4, 0.5),
    "F8": (0.8, 0.55), "T7": (-1.0, 0.0), "C3": (-0.5, 0.0), "Cz": (0.0, 0.0), "C4": (0.5, 0.0), "T8": (1.0, 0.0),
    "P7": (-0.8, -0.55), "P3": (-0.4, -0.5), "Pz": (0.0, -0.45), "P4": (0.4, -0.5), "P8": (0.8, -0.55),
    "O1": (-0.3, -0.9), "O2": (0.3, -0.9),
}  # fmt: skip
"""Places on the head seen from above, the nose up: the 10-20 system."""


def eeg(rng: np.random.Generator) -> Sample:
    """Return a minute of 19 electrodes at 128 Hz: alpha, blinks, a muscle and the heart, in microvolts."""
    rate, n = 128, 60 * 128
    t = np.arange(n) / rate
    places = np.array(list(ELECTRODES.values()))

    def topography(x: float, y: float, width: float) -> Array:
        return np.asarray(np.exp(-0.5 * ((places - [x, y]) ** 2).sum(axis=1) / width**2))

    blinks, beats = np.zeros(n), np.zeros(n)
    for start in np.cumsum(rng.uniform(2.0, 5.0, 25)):
        blinks += np.exp(-0.5 * ((t - start) / 0.09) ** 2)
    for start in np.cumsum(rng.normal(0.85, 0.03, 80)):
        beats += np.exp(-0.5 * ((t - start) / 0.02) ** 2)
    alpha = np.sin(2 * np.pi * np.cumsum(10 + rng.standard_normal(n)) / rate)
    sources = np.stack([alpha, blinks, rng.laplace(size=n), beats], axis=1)
    sources = (sources - sources.mean(axis=0)) / sources.std(axis=0)
    mixing = np.stack(
        [
            12 * topography(0.0, -0.9, 0.5),
            25 * topography(0.0, 1.1, 0.45),
            9 * topography(1.1, 0.0, 0.35),
            6 * topography(-0.9, -0.7, 0.9),
        ],
        axis=1,
    )
    rows = sources @ mixing.T + 0.8 * rng.standard_normal((n, len(places)))
    table = pd.DataFrame(rows.round(3), columns=list(ELECTRODES))
    table.insert(0, "time", t.round(6))
    truth = frame(mixing, list(ELECTRODES), ["alpha", "blink", "muscle", "heart"])
    return Sample(table, truth, "60 s of 19 electrodes at 128 Hz, 4 sources")


def sound(rng: np.random.Generator) -> Sample:
    """Return three microphones of three sounds at once, four seconds: a melody, a siren, steps."""
    rate, n = 8000, 4 * 8000
    t = np.arange(n) / rate
    notes = rng.choice([262, 294, 330, 392, 440], 16)[np.minimum((t * 4).astype(int), 15)]
    melody = np.sin(2 * np.pi * np.cumsum(notes) / rate) * np.exp(-3 * ((t * 4) % 1))
    siren = np.sign(np.sin(2 * np.pi * np.cumsum(700 + 200 * np.sin(2 * np.pi * 0.8 * t)) / rate))
    steps = rng.standard_normal(n) * np.exp(-18 * ((t * 1.7) % 1))
    sources = np.stack([melody, siren, steps], axis=1)
    sources /= sources.std(axis=0)
    mixing = np.array([[1.0, 0.6, 0.3], [0.4, 1.0, 0.5], [0.5, 0.3, 1.0]])
    microphones = ["microphone1", "microphone2", "microphone3"]
    truth = frame(mixing, microphones, ["melody", "siren", "steps"])
    mixed = sources @ mixing.T
    tracks = {name: mixed[:, i] / np.abs(mixed).max() for i, name in enumerate(microphones)}
    return Sample(Sound(rate, tracks), truth, "3 microphones × 4 s at 8000 Hz, 3 sounds")


def patches(rng: np.random.Generator) -> Sample:
    """Return 6000 windows of 8 × 8 pixels, sums of twelve oriented waves that are seldom strong."""
    row, column = np.mgrid[:8, :8] - 3.5
    waves = []
    for angle in np.arange(6) * np.pi / 6:
        along = row * np.sin(angle) + column * np.cos(angle)
        envelope = np.exp(-(row**2 + column**2) / 14)
        waves += [(envelope * np.cos(1.4 * along)).ravel(), (envelope * np.sin(1.4 * along)).ravel()]
    W = np.stack(waves, axis=1)
    W = W - W.mean(axis=0)
    values, turn = np.linalg.eigh(W.T @ W)
    W = W @ turn @ np.diag(values**-0.5) @ turn.T  # the nearest orthonormal ones
    strength = rng.laplace(size=(6000, 12)) * np.repeat([3.0, 2.0, 1.3], 4)
    rows = 128 + 4 * strength @ W.T + rng.standard_normal((6000, 64))
    pictures = np.clip(np.rint(rows), 0, 255).astype(np.uint8).reshape(6000, 8, 8)
    names = [f"{i}.{j}" for i in range(8) for j in range(8)]
    truth = frame(W, names, [f"wave{j + 1}" for j in range(12)])
    return Sample(pictures, truth, "6000 windows of 8 × 8 pixels, 12 waves")

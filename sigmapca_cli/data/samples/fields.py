"""The fields that `sigmapca sample` makes data of, and the files that it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.samples import recordings, tables
from sigmapca_cli.data.samples.tables import Sample, Sound
from sigmapca_cli.system.atomic import replacing
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.frames import write_frame

FIELDS: dict[str, Callable[[np.random.Generator], Sample]] = {
    "questionnaire": tables.questionnaire,
    "spectra": tables.spectra,
    "eeg": recordings.eeg,
    "sound": recordings.sound,
    "returns": tables.returns,
    "embeddings": tables.embeddings,
    "counts": tables.counts,
    "patches": recordings.patches,
    "table": tables.sensors,
}


def make(field: str, seed: int = 0) -> Sample:
    """Return the sample of a field; another seed gives other numbers."""
    return FIELDS[field](np.random.default_rng(seed))


def write(sample: Sample, place: Path) -> None:
    """Write the data of a sample to a file, or tracks to a folder. Raise InputError for another suffix."""
    content = sample.content
    if isinstance(content, Sound):
        if place.suffix:
            raise InputError(f"{place}: give the name of a folder, for WAV files")
        _write_tracks(content, place)
    elif isinstance(content, np.ndarray):
        if place.suffix != ".npy":
            raise InputError(f"{place}: give a name that ends in .npy")
        with replacing(place) as aside, open(aside, "wb") as file:
            np.save(file, content)
    else:
        write_frame(content, place, index=False)


def _write_tracks(sound: Sound, folder: Path) -> None:
    from scipy.io import wavfile

    folder.mkdir(exist_ok=True)
    for name, track in sound.tracks.items():
        numbers: Any = np.rint(track * 32767).astype(np.int16)
        with replacing(folder / f"{name}.wav") as aside:
            wavfile.write(aside, sound.rate, numbers)

"""Reader of EEG and MEG recordings, by MNE: one row for each sample, one column for each channel, by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.table import Table, listed
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.packages import required
from sigmapca_cli.system.untrusted_files import damaged, need_memory

SUFFIXES = (".edf", ".bdf", ".fif", ".fif.gz", ".vhdr", ".set")
"""Of EDF, BDF, FIF, BrainVision and EEGLAB files."""


def read_recording(path: Path, cfg: DataConfig) -> Table:
    """Return the channels of a recording that hold data, in volts or tesla, (samples, channels) in float64.

    Channels marked as bad, and spans of time annotated as bad, are left out and counted; data.recognise=false reads
    them. Epochs stand one after the other, each a piece of its own. Raise InputError where MNE is not installed or
    cannot read the file.
    """
    mne = required(f"{path} is a recording of EEG or MEG: reading it", "mne")
    with damaged(path), mne.utils.use_log_level("ERROR"):
        raw = opened(path)
        bad = [name for name in raw.info["bads"] if cfg.recognise]
        channels = mne.pick_types(raw.info, meg=True, eeg=True, ecog=True, seeg=True, exclude=bad)
        if not len(channels):
            raise InputError(f"{path} has no channel of EEG or MEG: it has {listed(raw.ch_names)}")
        in_epochs = not hasattr(raw, "n_times")
        count = len(raw) * len(raw.times) if in_epochs else raw.n_times
        need_memory(8.0 * len(channels) * count, path, "cut a part of it")
        samples, pieces = _of_epochs(raw, channels) if in_epochs else _in_one(raw, channels, cfg)
    names = [raw.ch_names[i] for i in channels]
    notes = [f"{path}: channels marked as bad are left out ({listed(bad)})"] if bad else []
    rate = float(raw.info["sfreq"])
    if lost := count - len(samples):
        notes.append(f"{path}: {lost / rate:.1f} of {count / rate:.1f} s are annotated as bad: left out")
    if notes:
        notes[-1] += "; data.recognise=false reads all"
    table = Table(np.ascontiguousarray(samples), names, notes=notes, sample_rate=rate, timed=True)
    table.pieces = pieces
    return table


def _in_one(raw: Any, channels: Any, cfg: DataConfig) -> tuple[Any, tuple[int, ...]]:
    """Return the samples (n, channels) of a continuous recording, and the rows that follow a span that is left out."""
    omit = "omit" if cfg.recognise else None
    values, times = raw.get_data(channels, reject_by_annotation=omit, return_times=True)
    return values.T, tuple((np.flatnonzero(np.diff(times) > 1.5 / float(raw.info["sfreq"])) + 1).tolist())


def _of_epochs(epochs: Any, channels: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the samples (epochs · times, channels) of epochs, and the first row of each but the first."""
    values = epochs.get_data(channels)
    count, _, times = values.shape
    rows = values.transpose(0, 2, 1).reshape(count * times, len(channels))
    return rows, tuple(range(times, len(rows), times))


def opened(path: Path) -> Any:
    """Return the recording without its values, or its epochs. Raise InputError for other content of FIF files."""
    mne = required(f"{path} is a recording of EEG or MEG: reading it", "mne")
    try:
        return mne.io.read_raw(path, preload=False)
    except ValueError as problem:
        if not path.name.lower().endswith((".fif", ".fif.gz")):
            raise problem
    try:
        return mne.read_epochs(path, preload=False)
    except ValueError:
        raise InputError(f"{path} holds neither a recording nor epochs: save one of them with MNE") from None

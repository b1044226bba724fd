"""Reader of EEG and MEG recordings, by MNE: one row for each sample, one column for each channel, by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.table import Table, listed
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import damaged, need_memory

SUFFIXES = (".edf", ".bdf", ".fif", ".fif.gz", ".vhdr", ".set")
"""Of EDF, BDF, FIF, BrainVision and EEGLAB files."""


def read_recording(path: Path, cfg: DataConfig) -> Table:
    """Return the channels of a recording that hold data, in volts or tesla, (samples, channels) in float64.

    Channels marked as bad, and spans of time annotated as bad, are left out and counted; data.recognise=false reads
    them. Raise InputError where MNE is not installed or cannot read the file.
    """
    mne = package(f"{path} is a recording of EEG or MEG: reading it")
    with damaged(path), mne.utils.use_log_level("ERROR"):
        raw = opened(path)
        bad = [name for name in raw.info["bads"] if cfg.recognise]
        channels = mne.pick_types(raw.info, meg=True, eeg=True, ecog=True, seeg=True, exclude=bad)
        if not len(channels):
            raise InputError(f"{path} has no channel of EEG or MEG: it has {listed(raw.ch_names)}")
        need_memory(8.0 * len(channels) * raw.n_times, path, "cut a part of it")
        omit = "omit" if cfg.recognise else None
        values, times = raw.get_data(channels, reject_by_annotation=omit, return_times=True)
        samples = values.T
    names = [raw.ch_names[i] for i in channels]
    notes = [f"{path}: channels marked as bad are left out ({listed(bad)})"] if bad else []
    rate = float(raw.info["sfreq"])
    if lost := raw.n_times - len(samples):
        notes.append(
            f"{path}: {lost / rate:.1f} of {raw.n_times / rate:.1f} s are annotated as bad: left out"
        )
    if notes:
        notes[-1] += "; data.recognise=false reads all"
    table = Table(np.ascontiguousarray(samples), names, notes=notes, sample_rate=rate, timed=True)
    table.pieces = tuple((np.flatnonzero(np.diff(times) > 1.5 / rate) + 1).tolist())
    return table


def package(what: str) -> Any:
    """Return MNE. Raise InputError that `what` needs it where it is not installed."""
    try:
        import mne
    except ImportError:
        raise InputError(f"{what} needs a package: pip install mne") from None
    return mne


def opened(path: Path) -> Any:
    """Return the recording without its values. Raise InputError for epochs and other content of FIF files."""
    mne = package(f"{path} is a recording of EEG or MEG: reading it")
    try:
        return mne.io.read_raw(path, preload=False)
    except ValueError as problem:
        if path.name.lower().endswith((".fif", ".fif.gz")):
            raise InputError(
                f"{path} holds no continuous recording (epochs are joined by raw.save in MNE first)"
            ) from None
        raise problem

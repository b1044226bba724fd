"""python with_mne.py FOLDER: a recording as FIF, EDF, BrainVision and EEGLAB (edfio, pybv, eeglabio)."""

import sys
from pathlib import Path

import mne
import numpy as np

folder = Path(sys.argv[1])
values = (np.arange(128)[:, None] % 8 * 1.5 + np.arange(3) * 0.25 - 4) * 1e-6
raw = mne.io.RawArray(values.T, mne.create_info(["Fp1", "Cz", "Pz"], 128.0, "eeg"), verbose="ERROR")
raw.save(folder / "mne_raw.fif", overwrite=True, verbose="ERROR")
for suffix in ("edf", "vhdr", "set"):
    mne.export.export_raw(folder / f"mne.{suffix}", raw, overwrite=True, verbose="ERROR")

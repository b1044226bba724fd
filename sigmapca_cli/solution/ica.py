"""A solution on channels of EEG or MEG as the ICA of MNE, for its plots, its detectors of artefacts and `apply`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.matrix.concatenated import files_of
from sigmapca_cli.data.readers.recordings import SUFFIXES as RECORDINGS
from sigmapca_cli.data.readers.recordings import opened
from sigmapca_cli.data.stored import data_of
from sigmapca_cli.solution.solution import Solution
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.packages import required
from sigmapca_cli.system.untrusted_files import damaged

Array = NDArray[np.float64]

ENDINGS = ("-ica.fif", "_ica.fif")
"""How the name of a file must end that MNE reads as an ICA."""
EQUAL = 1e-5
"""Largest error of a map that counts as the same one, relative to its largest entry; runs store float32 in places."""


def as_ica(run: Any, info: Any = None) -> Any:
    """Return the solution of a run on named channels as `mne.preprocessing.ICA`; `info` and errors as for `Run.to_mne`.

    Its sources are the components of `transform`, of variance 1, in the same order and signs. `apply` removes
    components as `reconstruct --without` does: what no component explains stays. An ICA of MNE cannot hold clipped
    data, or encoder and decoder that span different spaces, as after whitening with fewer components than channels.
    """
    required("an ICA of MNE", "mne")
    from mne.preprocessing import read_ica

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run-ica.fif"
        path.write_bytes(ica_file(run, info))
        return read_ica(path, verbose="ERROR")


def ica_file(run: Any, info: Any = None) -> bytes:
    """Return the content of a file `…-ica.fif`, as MNE writes `as_ica`. Raise InputError as `as_ica`."""
    mne = required("an ICA of MNE", "mne")
    names, solution = run.names, Solution.of(run)
    if not names:
        raise InputError(
            f"{run.folder}: the run's features have no names, and an ICA of MNE goes by channels"
        )
    if solution.clip is not None:
        raise InputError(f"{run.folder}: an ICA of MNE clips nothing: train without data.clip")
    axes, variances, unmixing = by_principal_axes(solution, run.evaluation.get("total_variance"), run.folder)
    k = len(unmixing)
    # A number of components of one, MNE refuses to fit; it reads them.
    ica = mne.preprocessing.ICA(n_components=k if k > 1 else None, verbose="ERROR")
    ica.info = of_channels(mne, names, getattr(info, "info", info) or info_of(run), run.folder)
    ica.ch_names, ica.current_fit, ica.reject_ = list(names), "raw", None
    ica.method, ica.fit_params = "sigmapca", {"model": str(run.attrs.get("model", ""))}
    ica.n_samples_ = int(run.attrs.get("n", 0))
    # MNE divides by the whitener first, and then subtracts the mean.
    ica.pre_whitener_, ica.pca_mean_ = solution.scale[:, None], solution.mean / solution.scale
    ica.pca_components_, ica.pca_explained_variance_ = axes, variances
    ica.n_components_, ica.unmixing_matrix_ = k, unmixing
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run-ica.fif"
        ica.save(path, verbose="ERROR")
        return path.read_bytes()


def by_principal_axes(solution: Solution, total: Any, where: object) -> tuple[Array, Array, Array]:
    """Return orthonormal axes (p, p), their variances (p,), and U (k, k): components = U @ axes[:k] @ x.

    The first k axes are the right singular vectors of the decoder D: components of variance 1 have covariance DᵀD on
    the features. The others are orthogonal to them; they share what is left of the total variance. Raise InputError
    where encoder and decoder are not inverse to each other on the first k axes.
    """
    E, D = solution.forward * solution.scale[:, None], solution.back / solution.scale
    k, p = D.shape
    _, deviations, axes = np.linalg.svd(D)
    unmixing = (axes[:k] @ E).T
    back = np.linalg.pinv(unmixing).T @ axes[:k]
    for found, wanted in ((axes[:k].T @ unmixing.T, E), (back, D)):
        if not np.allclose(found, wanted, rtol=0, atol=EQUAL * float(np.abs(wanted).max())):
            raise InputError(
                f"{where}: an ICA of MNE needs filters and maps of one space: train without data.whiten"
            )
    left = 0.0 if total is None else max(0.0, float(total) - float((deviations**2).sum()))
    variances = np.concatenate([deviations**2, np.full(p - k, left / max(1, p - k))])
    return axes, variances, unmixing


def info_of(run: Any) -> Any:
    """Return what the recording of a run says of its channels. Raise InputError where its data are none."""
    cfg = data_of(run)
    paths = files_of(cfg.path) if cfg.name == "array" and cfg.path else []
    if not paths or not paths[0].name.lower().endswith(RECORDINGS):
        raise InputError(
            f"{run.folder}: its data are no recording that says where its channels are; "
            "in Python: sp.Run.open(RUN).to_mne(info).save(FILE), with an mne.Info"
        )
    mne = required(f"{paths[0]} is a recording of EEG or MEG: reading it", "mne")
    with damaged(paths[0]), mne.utils.use_log_level("ERROR"):
        raw = opened(paths[0])
        # `transform` does not apply projections that the recording only carries along.
        raw.del_proj([i for i, proj in enumerate(raw.info["projs"]) if not proj["active"]])
        return raw.info


def of_channels(mne: Any, names: list[str], info: Any, where: object) -> Any:
    """Return the part of an mne.Info about these channels, in their order. Raise InputError where one is missing."""
    if lacking := [name for name in names if name not in info["ch_names"]]:
        raise InputError(f"{where}: the recording has no channel {lacking[0]}, which the run was trained on")
    return mne.pick_info(info, [info["ch_names"].index(name) for name in names])

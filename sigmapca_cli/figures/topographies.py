"""Topographies: what each component adds at the electrodes, on the head seen from above, by MNE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.figures.save import heading, new_figure, panels_across

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MONTAGES = ("colin27_1005", "standard_1005")
"""Names of the places of the 10-05 system in MNE, the newer one first."""
FEWEST = 8
"""Least number of electrodes with known places."""


def electrodes(names: Sequence[str] | None) -> list[int]:
    """Return which names are electrodes of the 10-05 system; none where they are few, or MNE is not installed."""
    if names is None or sum(name[:1] in "FCPTOAIN" for name in names) < FEWEST:
        return []
    try:
        known = {name.lower() for name in montage().ch_names}
    except ImportError:
        return []
    found = [i for i, name in enumerate(names) if name.lower() in known]
    return found if len(found) >= FEWEST else []


def montage() -> Any:
    """Return the places of the electrodes."""
    from mne.channels import get_builtin_montages, make_standard_montage

    known = get_builtin_montages()
    return make_standard_montage(next(name for name in MONTAGES if name in known))


def plot_topographies(
    B: ArrayLike, names: Sequence[str], title: str = "", width: float | None = None
) -> Figure:
    """Draw the patterns B (p, k) of components at the electrodes `names` (p,), each on its own symmetric scale."""
    import mne

    B = np.asarray(B, dtype=np.float64)
    k = B.shape[1]
    columns = panels_across(k, 0.85, 5, width)
    lines = math.ceil(k / columns)
    figure = new_figure(
        width or 1.3 * columns, 1.45 * lines * (1.0 if width is None else width / columns / 1.3)
    )
    info = mne.create_info(list(names), 1.0, "eeg", verbose="error")
    info.set_montage(montage(), match_case=False, verbose="error")
    for i in range(k):
        axes: Any = figure.add_subplot(lines, columns, i + 1)
        limit = np.abs(B[:, i]).max() or 1.0
        mne.viz.plot_topomap(
            B[:, i],
            info,
            axes=axes,
            show=False,
            cmap="RdBu_r",
            vlim=(-limit, limit),
            contours=4,
            sensors=True,
        )
        axes.set_title(str(i + 1), fontsize=8, pad=2)
    heading(figure, title)
    return figure

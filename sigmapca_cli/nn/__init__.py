"""σ-PCA as torch modules, for networks of your own: `SigmaPCA`, `PatchSigmaPCA`, `LinearICA`."""

from sigmapca_cli.nn.ica import LinearICA
from sigmapca_cli.nn.layer import SigmaPCA
from sigmapca_cli.nn.patches import PatchSigmaPCA

__all__ = ["LinearICA", "PatchSigmaPCA", "SigmaPCA"]

"""σ-PCA: learning identifiable linear transformations, from the command line."""

__version__ = "0.1.0"

"""Figures of filters, curves, spectra and signals, for files and for the terminal."""

from sigmapca_cli.figures.run import FIGURES, plot_run
from sigmapca_cli.figures.terminal import print_filters

__all__ = ["FIGURES", "plot_run", "print_filters"]

"""A run for programs and notebooks: read it, apply it, judge it, draw it."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.api.pictures import CertificateOfRun
from sigmapca_cli.evaluation.certificate import CERTIFICATE_LEVEL
from sigmapca_cli.solution.solution import Solution
from sigmapca_cli.storage.find import resolve, shortened
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.api.pictures import Picture
    from sigmapca_cli.data.source import Source


class Run(StoredRun):
    """A run that was trained, by a program or by the command.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    path : Path
        Its run.h5, which may lie elsewhere.

    Notes
    -----
    `Run.open` finds both arguments. All that `storage.read.StoredRun` reads is here too: `filters` (p, k),
    `sigma` (k,), `encoder`, `decoder`, `mean`, `scale`, `metrics`, `evaluation`, `config`, `status`, `attrs`.
    """

    @classmethod
    def open(
        cls, name: str | os.PathLike[str] = "last", outputs: str | os.PathLike[str] | None = None
    ) -> Run:
        """Return a run by its name.

        Parameters
        ----------
        name : str or PathLike
            A folder, a run.h5, the name of a folder, the beginning of a hash, or "last".
        outputs : str or PathLike, optional
            Where to look: $SIGMAPCA_OUTPUTS, else ./outputs, unless given.

        Returns
        -------
        Run
            The run; a damaged file is refused now, not later.

        Raises
        ------
        InputError
            If there is no such run, or several, or it is damaged.
        """
        place = Path(name).expanduser()
        found = super().open(place if place.is_file() else resolve(name, outputs))
        assert isinstance(found, cls)
        return found

    @cached_property
    def source(self) -> Source:
        """Return the data of the run, built again from its configuration."""
        from sigmapca_cli.data import build
        from sigmapca_cli.data.stored import data_of

        return build(data_of(self))

    def transform(self, X: Any) -> np.ndarray:
        """Return the components of new rows, as `sigmapca transform` does.

        Parameters
        ----------
        X : array-like, table or sparse matrix of shape (n, p)
            Rows in the units of the training data, of a run on pixels also integers up to the largest of their type.
            Columns of a table are taken by the names of the features. Of a run on maps also maps, such as an array
            of xarray with the same dimensions. Missing values are treated as `data.missing` of
            the run says: replaced by the mean, or the row has components of nan.

        Returns
        -------
        ndarray of shape (n, k)
            ((X − mean)/scale [@ whitening]) @ encoder: components of unit variance on the training data.

        Raises
        ------
        InputError
            If the rows do not fit, hold values that are not finite, or the run has no solution.
        """
        from sigmapca_cli.solution.new_rows import cells_of, transformed

        return transformed(self.solution, cells_of(X, self))

    def inverse_transform(self, Y: Any) -> np.ndarray:
        """Return the rows that components stand for, as `sigmapca reconstruct` does.

        Parameters
        ----------
        Y : array-like of shape (n, k)
            Components, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, p)
            (Y @ decoder) · scale + mean.

        Raises
        ------
        InputError
            If Y has not k columns, or the run has no solution.
        """
        from sigmapca_cli.solution.new_rows import matrix_of

        return self.solution.invert(matrix_of(Y, len(self.solution.decoder), what="components"))

    def to_sklearn(self) -> Any:
        """Return the solution as a fitted estimator of scikit-learn.

        Returns
        -------
        SigmaPCA or Pipeline
            `SigmaPCA.from_run(run)`, behind a StandardScaler if the run divided the features by their deviations. Its
            `transform` is that of the run.

        Raises
        ------
        InputError
            If the run is no orthonormal transformation of standardised rows: linear ICA, whitened or clipped data.
        """
        from sigmapca_cli.api.estimators import as_estimator

        return as_estimator(self)

    def to_mne(self, info: Any = None) -> Any:
        """Return the solution as an ICA of MNE.

        Parameters
        ----------
        info : mne.Info or an object of MNE that has one, optional
            Kinds, positions and sampling rate of the channels, found by their names. Read from the run's recording
            unless given.

        Returns
        -------
        mne.preprocessing.ICA
            `get_sources` gives the components of `transform`, of variance 1. `apply` removes components as `sigmapca
            reconstruct --without` does.

        Raises
        ------
        InputError
            If MNE is not installed, the channels are not known, or the data were clipped, or whitened with fewer
            components than channels.
        """
        from sigmapca_cli.solution.ica import as_ica

        return as_ica(self, info)

    def maps(self) -> np.ndarray:
        r"""Return the filters of gridded data, such as maps through time, in the shape of the grid.

        Returns
        -------
        ndarray of shape (k, \*grid.shape)
            One map for each component; nan in cells that are no feature, such as land in a map of the sea. `grid` has
            the names of the dimensions and the coordinates along them.

        Raises
        ------
        InputError
            If the data had no more than two dimensions, or the run has no solution.
        """
        if self.grid is None or self.directions is None:
            what = "solution" if self.directions is None else "grid: its data had rows and columns only"
            raise InputError(f"{shortened(self.folder)}: the run has no {what}")
        return self.grid.maps(self.directions)

    def certificate(self, rows: int = 100_000, level: float = CERTIFICATE_LEVEL) -> CertificateOfRun:
        """Return which axes the data identify.

        Parameters
        ----------
        rows : int
            At most so many evenly spaced rows of the run's data are used.
        level : float
            Error rate at which an arbitrary pair may be called identified.

        Returns
        -------
        CertificateOfRun
            Curvature, angle and verdict of every pair; it prints as sentences.

        Raises
        ------
        InputError
            If there is no certificate for the method of this run, or its data cannot be read.
        """
        from sigmapca_cli.evaluation.certify import certify_run

        found = certify_run(self, self.source, rows, level)
        made = CertificateOfRun(**vars(found))
        self._sentences = made.sentences
        return made

    @property
    def sentences(self) -> list[str]:
        """Return the sentences of a certificate computed here, or stored by `evaluate --certificate`; [] if none."""
        stored = str(self.evaluation.get("identifiability/words", "")).splitlines()
        return getattr(self, "_sentences", stored)

    def plot(
        self,
        what: str = "filters",
        *,
        width: float | None = None,
        title: bool = True,
        colour: str | None = None,
        components: tuple[int, int] = (1, 2),
        x_label: str | None = None,
        rotate: str | None = None,
    ) -> Picture:
        """Draw a figure of the run.

        Parameters
        ----------
        what : str
            Name of a figure: filters, curves, spectrum, patterns, loadings, topographies, scree, histograms, scores,
            biplot, signals, scatter or certificate.
        width : float, optional
            Of the figure, in inches; what suits its content unless given.
        title : bool
            Whether a title stands above it.
        colour : str, optional
            Column of the run's file by which the points of scores and biplot are coloured.
        components : tuple of int
            The two that scores and biplot show, counted from 1.
        x_label : str, optional
            What numbers in the names of columns are, such as "wavelength (nm)".
        rotate : str, optional
            Rotation of loadings, such as "varimax".

        Returns
        -------
        Picture
            What a notebook shows; `save(path)` writes it, `figure` is matplotlib's.

        Raises
        ------
        InputError
            If there is no such figure, or nothing to draw in it.
        """
        from sigmapca_cli.api.pictures import Picture
        from sigmapca_cli.figures.run import NAMES, WITH_DATA, draw
        from sigmapca_cli.figures.style import style_of
        from sigmapca_cli.settings.checks import choice

        choice("what", what, NAMES)
        if self.filters is None:
            raise InputError(f"{shortened(self.folder)}: this run holds no solution (status {self.status})")
        pair = ",".join(map(str, components))
        style = style_of(None, pair, width=width, titled=title, colour=colour, x_label=x_label, rotate=rotate)
        figure = draw(what, self, self.source if what in WITH_DATA else None, style)
        if figure is None:
            raise InputError(f"{what}: {shortened(self.folder)} has nothing to draw there")
        return Picture(figure)

    @cached_property
    def solution(self) -> Solution:
        """Return the solution as a map of raw rows. Raise InputError if the run has none."""
        return Solution.of(self)

    def __repr__(self) -> str:
        from sigmapca_cli.api.pictures import numbers

        facts = ", ".join(f"{name} {value}" for name, value in numbers(self).items())
        return f"<Run {shortened(self.folder)}: {facts}>"

    def _repr_html_(self) -> str:
        from sigmapca_cli.api.pictures import page

        return page(self)

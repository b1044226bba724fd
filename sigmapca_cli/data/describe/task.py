"""What a user probably wants from her data, from their shape, type and statistics; and which method serves it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.readers.columns import named_by_numbers
from sigmapca_cli.data.row_order import RowOrder, order_in
from sigmapca_cli.data.source import Source
from sigmapca_cli.storage.grid import picture_shape

Array = NDArray[np.float64]

SMOOTH, IN_TIME = 0.8, 0.6
"""Correlation of neighbouring columns from which on a row is a curve, and may be a recording of a channel."""
ALIKE = 0.8
"""Correlation with the mean row from which on rows are curves of one kind, such as spectra."""
WIDER = 10
"""So many times more columns than rows: hardly samples × features, where each row is a curve of its own."""
MUCH_WIDER = 100
"""So many times more columns than rows: no samples × features, even where all rows have one shape."""
PICTURE = 0.3
"""Correlation of neighbours from which on an array is one of pictures."""
ANSWERS = 11
"""Most distinct whole numbers of an answer of a questionnaire: 0 to 10."""
SEVERAL = 4
"""Answers of most items from which on a column of two values is no item."""
LEAST_ITEMS = 4
SOME = 0.001
"""Least share of zeros among counts."""
CELLS, UNEVEN, MORE_UNEVEN = 50, 1.0, 2.5
"""Genes × cells: at least so many columns, means of rows of at least this coefficient of variation, so many times that
of the means of columns."""


@dataclass(frozen=True)
class Task:
    """What the data ask for.

    name: one of patches, transpose, separation, items, spectra, counts, table, alike (no direction stands out). text: a
    sentence with its reason. words: the overrides of the method. other: the overrides of a second method, and when it
    serves. then: a command after it.
    """

    name: str
    text: str
    words: tuple[str, ...] = ("solver=independence",)
    other: tuple[tuple[str, ...], str] | None = None
    then: str | None = None


OBLIQUE = (
    ("model=lica", "solver=independence"),
    "where the components of the first depend on each other, because causes share features (linear ICA)",
)
ORTHOGONAL = (("solver=independence",), "where filters are to be orthogonal, and ordered by variance")


def task_of(source: Source, raw: Array | None) -> Task:
    """Return the task of a source. raw (m, p): a sample of its rows as in the file; None for very many columns."""
    if source.patch_shape is not None:
        return Task("patches", "windows of pictures: filters that are independent and keep their variances")
    if (shape := picture_shape(source.grid)) is not None and raw is not None and is_picture(raw, shape):
        size = " × ".join(map(str, shape[:2] if shape[2] == 1 else shape))
        return Task(
            "patches", f"pictures of {size} numbers: filters that are independent and keep their variances"
        )
    smooth = smoothness(raw) if raw is not None and source.p > LEAST_ITEMS else 0.0
    wide = source.p > WIDER * source.n and source.sample_rate is None and not named_by_numbers(source.names)
    if wide and smooth > IN_TIME and (source.p > MUCH_WIDER * source.n or not rows_alike(raw)):
        return Task(
            "transpose",
            f"{source.n} rows of {source.p} numbers, each a curve of its own: channels × time; data.transpose=true",
        )
    order: RowOrder = order_in(source)
    # A column of dates alone makes no recording: daily returns do not correlate with those of yesterday.
    if order.in_time:
        return Task(
            "separation",
            f"rows in time, because {order.words}: separation of sources that mix in any way (linear ICA)",
            ("model=lica", "solver=independence"),
            other=ORTHOGONAL,
        )
    if raw is not None and is_questionnaire(raw):
        return Task(
            "items",
            f"{source.p} items of few whole numbers: common factors; the data fix their space, a rotation their axes",
            ("model=factor_analysis",),
            then="sigmapca loadings last --rotate varimax --halves",
        )
    if smooth > SMOOTH and (rows_alike(raw) or named_by_numbers(source.names)):
        return Task(
            "spectra",
            "rows are curves of one kind, such as spectra: components of their shapes. They are those of pure "
            "substances only where amounts do not depend on each other; shares that sum to one do, and no axis is "
            "reached: report the space of the components then, and their scores, at whose corners the purest rows lie",
            other=OBLIQUE,
            then="sigmapca plot last --what scores",
        )
    if raw is not None and is_counts(raw):
        if features_are_rows(raw):
            return Task(
                "transpose",
                "counts whose rows have means of very different sizes, and columns of one size: features × samples, "
                "such as genes × cells; data.transpose=true",
            )
        return Task(
            "counts", "whole numbers from 0 on, counts: components of what occurs together", other=OBLIQUE
        )
    rows = "rows of subjects, which are alike" if order.reason == "subjects" else "rows without an order"
    if order.by_time:
        rows = "rows in time whose values do not correlate with earlier ones"
    return Task("table", f"{rows}: components that are independent and keep their variances", other=OBLIQUE)


def is_picture(raw: Array, shape: tuple[int, int, int]) -> bool:
    """Return whether neighbours of rows of pixels (m, p) are alike down and across, as in pictures."""
    pictures = raw[:200].reshape(-1, *shape)
    across = pictures[:, :, :, 0].reshape(-1, shape[1])
    down = pictures[:, :, :, 0].transpose(0, 2, 1).reshape(-1, shape[0])
    return min(neighbours_alike(across), neighbours_alike(down)) > PICTURE


def neighbours_alike(rows: Array) -> float:
    """Return the correlation of neighbouring columns, over all rows (m, p)."""
    x = rows - rows.mean()
    spread = float(np.square(x).mean())
    return float((x[:, 1:] * x[:, :-1]).mean()) / spread if spread > 0 else 0.0


def smoothness(raw: Array) -> float:
    """Return the correlation of neighbouring columns along each row, the median over rows."""
    rows = raw[:200] - raw[:200].mean(axis=1, keepdims=True)
    energy = (rows**2).mean(axis=1)
    lagged = (rows[:, 1:] * rows[:, :-1]).mean(axis=1)
    varying = energy > 0
    return float(np.median(lagged[varying] / energy[varying])) if varying.any() else 0.0


def rows_alike(raw: Array | None) -> bool:
    """Return whether rows have the shape of the mean row: their median correlation with it is above ALIKE."""
    if raw is None or len(raw) < 2:
        return False
    rows = raw[:200] - raw[:200].mean(axis=1, keepdims=True)
    mean = rows.mean(axis=0)
    sizes = np.sqrt((rows**2).sum(axis=1) * (mean**2).sum())
    return bool(np.median(rows @ mean / np.where(sizes > 0, sizes, 1.0)) > ALIKE)


def is_questionnaire(raw: Array) -> bool:
    """Return whether almost all columns have 2 to ANSWERS consecutive whole numbers from -5 to 10."""
    if raw.shape[1] < LEAST_ITEMS or raw.shape[1] > WIDE:
        return False
    return sum(map(is_item, raw.T)) > 0.8 * raw.shape[1]


def beside_items(source: Source, raw: Array | None) -> list[str]:
    """Return the names of the columns of a questionnaire that hold no answers, such as an age or a coded sex."""
    if raw is None or source.names is None or not is_questionnaire(raw):
        return []
    whole = (column[column == np.rint(column)] if is_item(column) else [] for column in raw.T)
    answers = np.array([len(np.unique(numbers)) for numbers in whole])  # how many different ones
    two = answers == 2
    # A few columns of two values among items of many are groups; as many again are items of yes and no.
    grouping = np.median(answers[answers > 0]) >= SEVERAL and two.sum() <= max(1, len(answers) // 10)
    beside = (answers == 0) | (two & grouping)
    return [name for name, left_out in zip(source.names, beside.tolist(), strict=True) if left_out]


def is_item(column: Array) -> bool:
    """Return whether a column has answers: whole numbers from -5 to 10, at most ANSWERS of them.

    Up to a tenth may have been filled by the mean.
    """
    present = column[np.isfinite(column)]
    if len(present) < 2 or (present == np.rint(present)).mean() < 0.9:
        return False
    low, high = present.min(), present.max()
    return bool(-5 <= low < high <= 10 and high - low < ANSWERS)


def is_counts(raw: Array) -> bool:
    """Return whether almost all numbers are whole, none is negative, and some are zero: pixels hardly are."""
    present = raw[np.isfinite(raw)]
    whole = len(present) and present.min() >= 0 and (present == np.rint(present)).mean() > 0.999
    return bool(whole and (present == 0).mean() > SOME)


def features_are_rows(raw: Array) -> bool:
    """Return whether counts (n, p) have a feature in each row: some genes or words are much more frequent than others.

    Samples differ less in size, and no less in a table of few columns, where chance decides.
    """
    if min(raw.shape) < CELLS:
        return False
    rows, columns = (np.nanmean(raw, axis=axis) for axis in (1, 0))
    uneven = rows.std() / rows.mean()
    return bool(uneven > UNEVEN and uneven > MORE_UNEVEN * columns.std() / columns.mean())

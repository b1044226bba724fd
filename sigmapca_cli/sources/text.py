"""Reader of text tables: CSV, TSV, columns of numbers. A field that is no number is refused, with line and column."""

import re
import warnings
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.config import DataConfig
from sigmapca_cli.sources.table import Table, chosen, refuse_words
from sigmapca_cli.sources.text_layout import DECIMAL_COMMA, records, sniff
from sigmapca_cli.sources.text_values import Layout, is_missing, number

THOUSANDS = re.compile(r"[+-]?\d{1,3}([,.'\u00a0 ]\d{3})+([.,]\d+)?$")
WITH_UNIT = re.compile(r"[^\w\s]?\s?[+-]?\d[\d.,]*\s?([%‰°]|[a-zA-Zµ]{1,4})?$")
DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}|\d{1,2}:\d{2}")


@dataclass
class Word:
    """Fields of a column that are no numbers: line and text of the first, their count, and the count of numbers."""

    line: int
    text: str
    count: int = 0
    numbers: int = 0
    seen: list[str] = field(default_factory=list)


def read_text(path: Path, cfg: DataConfig) -> Table:
    """Return the numbers of a text file; raise InputError for columns of words that are not left out."""
    layout = sniff(path, cfg)
    keep = chosen(layout.names, layout.width, cfg, path, layout.left_out)
    labels: list[str] | None = None
    found = _quickly(path, layout)
    if found is None:
        found, labels = _thoroughly(path, layout, keep)
    elif keep != list(range(layout.width)):
        labels = None if layout.label is None else [f"{value:.17g}" for value in found[:, layout.label]]
        found = found[:, keep]
    if not len(found):
        what = f"a header ({', '.join(layout.names)[:60]})" if layout.names else "a line"
        raise InputError(f"{path} has {what} and no rows: give rows of numbers")
    names = None if layout.names is None else [layout.names[i] for i in keep]
    return Table(
        found,
        names,
        notes=[f"{path}: {note}" for note in layout.notes],
        line_of=lambda row: line_of(path, layout, row),
        labels=labels,
    )


def line_of(path: Path, layout: Layout, row: int) -> int:
    """Return the line, counted from 1, on which row `row`, counted from 0, begins."""
    place = layout.first + row
    found = next(islice(records(path, layout.encoding, layout.delimiter), place, None), (0, []))
    return found[0]


def _quickly(path: Path, layout: Layout) -> NDArray[np.float64] | None:
    """Read all columns by NumPy's reader, which is several times faster; return None if a field is no number."""
    if layout.decimal == "," and layout.delimiter == ",":
        return None
    start = next(islice(records(path, layout.encoding, layout.delimiter), layout.first, None), None)
    if start is None:
        return np.empty((0, layout.width))
    try:
        with path.open(encoding=layout.encoding) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            lines: Any = islice(file, start[0] - 1, None)
            if layout.decimal == ",":
                lines = (line.replace(",", ".") if "." not in line else "x" for line in lines)
            delimiter = None if layout.delimiter == " " else layout.delimiter
            return np.loadtxt(lines, delimiter=delimiter, ndmin=2, comments=None, quotechar='"')
    except (ValueError, UnicodeError):
        return None


def _thoroughly(
    path: Path, layout: Layout, keep: Sequence[int]
) -> tuple[NDArray[np.float64], list[str] | None]:
    """Read field by field; missing values become NaN; raise one InputError for all words."""
    words: dict[int, Word] = {}
    labels: list[str] = []
    values, rows = array("d"), 0
    numbers = dict.fromkeys(keep, 0)
    for line, fields in islice(records(path, layout.encoding, layout.delimiter), layout.first, None):
        if len(fields) != layout.width:
            raise InputError(
                f"{path}, line {line}: {len(fields)} fields, but the lines before have {layout.width}: correct the line"
            )
        rows += 1
        if layout.label is not None:
            labels.append(fields[layout.label])
        for i in keep:
            text = fields[i]
            try:
                values.append(number(text, layout.decimal))
                numbers[i] += 1
            except ValueError:
                values.append(np.nan)
                if not is_missing(text):
                    word = words.setdefault(i, Word(line, text))
                    word.count += 1
                    if len(word.seen) < 50:
                        word.seen.append(text)
    if words:
        for i, word in words.items():
            word.numbers = numbers[i]
        raise refusal(path, layout, words, keep)
    return np.frombuffer(values, np.float64).reshape(rows, len(keep)), labels or None


def refusal(path: Path, layout: Layout, words: dict[int, Word], keep: Sequence[int]) -> InputError:
    """Return the error for words: a number in another notation, a word among numbers, or columns of words."""
    stray = [i for i, word in words.items() if word.numbers or separator(word.text, layout)]
    if not stray:
        columns: list[tuple[str | int, str, str]] = [
            (i if layout.names is None else layout.names[i], kind_of(word), word.text)
            for i, word in words.items()
        ]
        return refuse_words(path, columns, have_numbers=len(words) < len(keep))
    second = min(word.line for word in words.values())
    if len(words) > 1 and all(w.line == second and w.count == 1 and w.numbers for w in words.values()):
        shown = ", ".join(word.text for word in list(words.values())[:4])
        return InputError(
            f"{path}, line {second}: words ({shown}) among rows of numbers: if it is a second header, join it with the "
            "first"
        )
    i = stray[0]
    word = words[i]
    named = f" ({layout.names[i]})" if layout.names else ""
    many = f" ({word.count} such fields in this column)" if word.count > 1 else ""
    advice = separator(word.text, layout) or "remove the column (data.drop=), or fill the field"
    return InputError(
        f"{path}, line {word.line}, column {i + 1}{named}: {word.text[:40]!r} is not a number{many}: {advice}"
    )


def separator(text: str, layout: Layout) -> str | None:
    """Return advice for a field that is a number with other separators; None for other words."""
    if layout.decimal == "." and DECIMAL_COMMA.match(text) and text.count(",") == 1:
        return "if the comma is a decimal sign, add data.decimal=comma"
    if layout.decimal == "," and re.fullmatch(r"[+-]?\d*\.\d+", text):
        return "if the point is a decimal sign, add data.decimal=point"
    if THOUSANDS.match(text):
        return "write numbers without thousands separators"
    if ";" in text or ("," in text and layout.delimiter != ","):
        return "if another character separates the columns, give it with data.delimiter="
    return None


def kind_of(word: Word) -> str:
    """Return the kind of a column of words from some of its fields: dates, numbers with a unit, ids or text."""
    seen = word.seen
    if all(is_date(text) for text in seen):
        return "dates"
    if all(WITH_UNIT.match(text) for text in seen):
        return "numbers with a unit or currency"
    distinct = len(set(seen)) == len(seen) > 3
    if distinct and all(any(c.isdigit() for c in text) for text in seen):
        return "ids"
    return "text"


def is_date(text: str) -> bool:
    """Return whether text is a date or time: ISO 8601, or day, month and year in any order."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return bool(DATE.match(text))
    return True

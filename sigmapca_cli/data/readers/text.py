"""Reader of text tables: CSV, TSV, columns of numbers. A field that is no number is refused, with line and column."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.on_disk.row_file import collected
from sigmapca_cli.data.readers.table import Table, chosen, place_of, refuse_words
from sigmapca_cli.data.readers.text_fields import (
    MISSING,
    amount_and_unit,
    is_missing,
    is_number,
    kind_of,
    number,
    with_unit,
)
from sigmapca_cli.data.readers.text_layout import DECIMAL_COMMA, Layout, fields_of, opened, sniff, split
from sigmapca_cli.system.errors import InputError

CHARACTERS_AT_ONCE = 4 << 20  # characters that are read at once
CHARACTERS_A_COLUMN = (
    500  # characters for each column at least: each call of pandas takes time for each column
)
MOST_SEEN = 50
# pandas compares as it is written; other spellings are found field by field.
NA_VALUES = sorted(
    {spell(word) for word in MISSING for spell in (str, str.upper, str.title)} | {"NaN", "-NaN"}
)
THOUSANDS = re.compile(r"[+-]?\d{1,3}([,.'\u00a0 ]\d{3})+([.,]\d+)?$")
Block = NDArray[np.float64]


def read_text(path: Path, cfg: DataConfig) -> Table:
    """Return the numbers of a text file, of a large one on disk; raise InputError for columns of words not left out."""
    layout = sniff(path, cfg)
    keep = chosen(layout.names, layout.width, cfg, path, layout.left_out)
    reader = TextReader(path, layout, keep)
    data = collected(reader.blocks(), len(keep))
    if reader.words:
        raise refusal(path, layout, reader.words, len(keep))
    if not len(data):
        what = f"a header ({', '.join(layout.names)[:60]})" if layout.names else "a line"
        raise InputError(f"{path} has {what} and no rows: give rows of numbers")
    if reader.comments:
        layout.notes.append(f"comments between the rows are left out ({reader.comments})")
    return Table(
        data,
        None if layout.names is None else [layout.names[i] for i in keep],
        units=layout.units | reader.units_of_columns(),
        notes=[f"{path}: {note}" for note in layout.notes],
        line_of=lambda row: line_of(path, layout, row),
        labels=reader.labels or None,
    )


def fields_in(path: Path, cfg: DataConfig, name: str | int) -> list[str]:
    """Return the fields of one column as they are written. Raise InputError if there is no such column."""
    layout = sniff(path, cfg)
    place = place_of(name, layout.names, layout.width, "subject", path)
    with opened(path, layout.encoding) as file:
        return [fields[place] for _, fields in islice(split(file, layout.delimiter), layout.first, None)]


def line_of(path: Path, layout: Layout, row: int) -> int:
    """Return the line, counted from 1, on which row `row`, counted from 0, begins; 0 if there is no such row."""
    with opened(path, layout.encoding) as file:
        records = islice(split(file, layout.delimiter), layout.first, None)
        rows = (record for record in records if not is_comment(record[1], layout.width))
        return next(islice(rows, row, None), (0, []))[0]


def is_comment(fields: Sequence[str], width: int) -> bool:
    """Return whether a record is a comment: it begins with # or %, and has another number of fields than the rows."""
    return len(fields) != width and fields[0][:1] in ("#", "%")


@dataclass
class Words:
    """Fields of a column that are no numbers: line and text of the first, their count, the first 50 of them."""

    line: int
    text: str
    count: int = 0
    seen: list[str] = field(default_factory=list)
    among_numbers: bool = False

    def add(self, text: str) -> None:
        self.count += 1
        if len(self.seen) < MOST_SEEN:
            self.seen.append(text)


class TextReader:
    """Reads the columns `keep` of a text table block by block; `words` and `labels` hold what else was met."""

    def __init__(self, path: Path, layout: Layout, keep: Sequence[int]) -> None:
        self._path, self._layout, self._keep = path, layout, list(keep)
        self._label = layout.label if layout.label not in keep else None
        self.words: dict[int, Words] = {}
        self.labels: list[str] = []
        self.comments = 0
        self._with_numbers: set[int] = set()
        self._units: dict[int, set[str]] = {}

    def units_of_columns(self) -> dict[str, str]:
        """Return the unit that stands behind every number of a column, by the name of the column."""
        names = self._layout.names or [str(i) for i in range(self._layout.width)]
        return {names[i]: next(iter(units)) for i, units in self._units.items()}

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of rows (m, number of columns), with NaN for missing values and words."""
        first = line_of(self._path, self._layout, 0)
        if not first:
            return
        with opened(self._path, self._layout.encoding) as file:
            before = sum(1 for _ in islice(file, first - 1))
            while lines := file.readlines(max(CHARACTERS_AT_ONCE, CHARACTERS_A_COLUMN * self._layout.width)):
                block = self._at_once(lines)
                if block is None:
                    block = self._by_field(lines, file, before)
                before += len(lines)
                yield block
        for i in [i for i, units in self._units.items() if i not in self._with_numbers and len(units) == 1]:
            del self.words[i]  # all with the same unit
        for i, words in self.words.items():
            words.among_numbers = i in self._with_numbers

    def _at_once(self, lines: Sequence[str]) -> Block | None:
        """Return the rows in lines by pandas; None where they may hold more than numbers, missing values and labels."""
        layout = self._layout
        if self._widths(lines) != {layout.width}:  # pandas would fill up short lines
            return None
        import pandas

        try:
            frame = pandas.read_csv(
                StringIO("".join(lines)), sep=layout.delimiter or r"\s+", decimal=layout.decimal, header=None,
                names=range(layout.width), index_col=False, usecols=self._keep, dtype=np.float64, engine="c",
                na_values=NA_VALUES, keep_default_na=False, skipinitialspace=True, low_memory=False,
            )  # fmt: skip
        except ValueError:  # words, or a notation of numbers that pandas does not know
            return None
        block: Block = frame.to_numpy()  # columns in the order of the file
        if sorted(self._keep) != self._keep:
            block = block[:, np.argsort(np.argsort(self._keep))]
        present = np.logical_not(np.isnan(block))
        if not present.any(axis=1).all():
            return None  # a row of delimiters only is no row
        self._with_numbers.update(np.array(self._keep)[present.any(axis=0)].tolist())
        if self._label is not None:
            self.labels += [fields[self._label] for _, fields in split(lines, layout.delimiter)]
        return block

    def _widths(self, lines: Sequence[str]) -> set[int]:
        """Return the numbers of fields of lines; none where a record may take several lines, or pandas stops at NUL."""
        delimiter = self._layout.delimiter
        if any("\0" in line for line in lines):
            return set()
        if delimiter is None:
            return {len(fields_of(line)) for line in lines if not line.isspace()}
        marks = [line.count('"') for line in lines]
        if not any(marks):
            return {line.count(delimiter) + 1 for line in lines if not line.isspace()}
        if any(count % 2 for count in marks):
            return set()
        records = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        return {len(fields) for fields in records if fields}

    def _by_field(self, lines: list[str], file: Iterable[str], before: int) -> Block:
        """Return the rows in lines, with `before` lines above them; the lines that the last row needs are added."""
        layout, rows, places = self._layout, [], []
        held = len(lines)

        def following() -> Iterator[str]:
            for line in file:
                lines.append(line)
                yield line

        for line, fields in split(chain(lines[:], following()), layout.delimiter):
            if is_comment(fields, layout.width):
                self.comments += 1
                continue
            if len(fields) != layout.width:
                raise InputError(
                    f"{self._path}, line {before + line}: {len(fields)} fields, but the lines before have "
                    f"{layout.width}: correct the line"
                )
            rows.append(fields)
            places.append(before + line)
            if line > held:
                break
        if self._label is not None:
            self.labels += [fields[self._label] for fields in rows]
        columns = [self._column(i, [fields[i] for fields in rows], places) for i in self._keep]
        return np.column_stack(columns)

    def _column(self, i: int, texts: Sequence[str], places: Sequence[int]) -> Block:
        """Return the numbers of a column, NaN for missing values and words; the words are counted."""
        if self._layout.decimal == "." and not any("_" in text for text in texts):
            with suppress(ValueError):
                return np.array(texts, np.float64)
        values = np.full(len(texts), np.nan)
        for row, text in enumerate(texts):
            try:
                values[row] = number(text, self._layout.decimal)
                self._with_numbers.add(i)
            except ValueError:
                if not is_missing(text):
                    self.words.setdefault(i, Words(places[row], text)).add(text)
                    values[row] = self._amount(i, text)
        return values

    def _amount(self, i: int, text: str) -> float:
        """Return the number in a field with a unit, and note the unit of the column; NaN, and no unit, for a word."""
        amount, unit = amount_and_unit(text) or ("", "")
        with suppress(ValueError):
            value = number(amount, self._layout.decimal)
            self._units.setdefault(i, set()).add(unit)
            return value
        self._units.setdefault(i, set()).update(("", "a word"))
        return np.nan


def refusal(path: Path, layout: Layout, words: dict[int, Words], width: int) -> InputError:
    """Return the error for words: a number in another notation, a word among numbers, or columns of words."""
    words = dict(sorted(words.items(), key=lambda item: (item[1].line, item[0])))
    stray = [i for i, word in words.items() if word.among_numbers or other_notation(word.text, layout)]
    if not stray:
        columns: list[tuple[str | int, str, str]] = [
            (i if layout.names is None else layout.names[i], kind_of(word.seen), word.text)
            for i, word in words.items()
        ]
        return refuse_words(path, columns, have_numbers=len(words) < width)
    second = min(word.line for word in words.values())
    if len(words) > 1 and all(w.line == second and w.count == 1 and w.among_numbers for w in words.values()):
        shown = ", ".join(word.text for word in list(words.values())[:4])
        return InputError(
            f"{path}, line {second}: words ({shown}) among rows of numbers: if it is a second header, join it with the "
            "first"
        )
    i, word = stray[0], words[stray[0]]
    named = f" ({layout.names[i]})" if layout.names else ""
    many = f" ({word.count} such fields in this column)" if word.count > 1 else ""
    advice = other_notation(word.text, layout) or "remove the column (data.drop=), or fill the field"
    return InputError(
        f"{path}, line {word.line}, column {i + 1}{named}: {word.text[:40]!r} is not a number{many}: {advice}"
    )


def other_notation(text: str, layout: Layout) -> str | None:
    """Return advice for a field that is a number with other separators; None for other words."""
    if layout.decimal == "." and DECIMAL_COMMA.match(text) and text.count(",") == 1:
        return "if the comma is a decimal sign, add data.decimal=comma"
    if layout.decimal == "," and re.fullmatch(r"[+-]?\d*\.\d+", text):
        return "if the point is a decimal sign, add data.decimal=point"
    if THOUSANDS.match(text):
        return "write numbers without thousands separators"
    if text[:1] + text[-1:] == "()" and is_number(text[1:-1], layout.decimal):
        return "write negative numbers with a minus instead of parentheses"
    if not with_unit(text) and (";" in text or ("," in text and layout.delimiter != ",")):
        return "if another character separates the columns, give it with data.delimiter="
    return None

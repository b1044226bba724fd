"""The layout of a text table, from its first lines: encoding, delimiter, decimal sign, names, index."""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TextIO

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.remembered import remembered
from sigmapca_cli.data.readers.text_fields import (
    amount_and_unit,
    is_missing,
    is_number,
    numbers_on_top,
    with_unit,
    words_on_top,
)
from sigmapca_cli.system.errors import InputError

SAMPLE_LINES, SAMPLE_LONG_LINES, SAMPLE_CHARACTERS = 200, 10, 1 << 18
CANDIDATES = ("\t", ";", ",", "|", None)  # None: white space
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?$")
MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+$")  # no number with separators begins with 0
QUOTED_OR_WORD = re.compile(r'"([^"]*)"(?=\s|$)|(\S+)')

Record = tuple[int, list[str]]


@dataclass
class Layout:
    """The layout of a text file, which `sniff` finds."""

    encoding: str
    delimiter: str | None  # None: white space
    decimal: str
    width: int
    first: int  # records before the first row
    names: list[str] | None = None
    left_out: list[int] = field(default_factory=list)
    label: int | None = None  # the column that holds the rows' labels
    units: dict[str, str] = field(default_factory=dict)  # by name, from a second line of the header
    notes: list[str] = field(default_factory=list)


def encoding_of(path: Path, given: str | None) -> tuple[str, str | None]:
    """Return (encoding, note or None): by the first bytes, else UTF-8 if the whole file is valid, else Windows-1252."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    marked = next((name for bom, name in BOMS if head.startswith(bom)), None)
    if given or marked:
        return given or marked or "", None
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd + even >= max(0.3 * len(head), 1):  # UTF-16 of mostly Latin letters: every second byte is 0
        return "utf-16-le" if odd > even else "utf-16-be", None
    if any(byte < 32 and byte not in b"\t\n\r\f\x0b\x1a" for byte in head):
        raise InputError(
            f"{path} has an unknown format: convert it to npy, npz, csv, h5, nc, parquet, feather or mat"
        )
    if _decodes(path, "utf-8"):
        return "utf-8", None
    note = "is not UTF-8: it is read as Windows-1252 (Western European); data.encoding= sets another encoding"
    return "cp1252" if _decodes(path, "cp1252") else "latin-1", note


def _decodes(path: Path, encoding: str) -> bool:
    try:
        with path.open(encoding=encoding) as file:
            return all(file.read(1 << 20) is not None for _ in iter(lambda: file.read(1 << 20), ""))
    except UnicodeDecodeError:
        return False


@contextmanager
def opened(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a table as text. Raise InputError for text in another encoding, and for unbalanced quotation marks."""
    try:
        with path.open(encoding=encoding, newline="") as file:
            yield file
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as a table ({error}): check its quotation marks") from None
    except (UnicodeError, LookupError):
        raise InputError(f"{path} is not {encoding} text: give its encoding as data.encoding=") from None


def split(lines: Iterable[str], delimiter: str | None) -> Iterator[Record]:
    """Yield (line, fields) of each record that is not blank; the line is its first one, counted from 1."""
    if delimiter is None:
        for line, text in enumerate(lines, start=1):
            if fields := fields_of(text):
                yield line, fields
        return
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    before = 0
    for fields in reader:
        if any(part.strip() for part in fields):
            yield before + 1, [part.strip() for part in fields]
        before = reader.line_num


def fields_of(text: str) -> list[str]:
    """Return the fields of a line between white space; a field in quotation marks may hold white space."""
    if '"' not in text:
        return text.split()
    return [quoted or word.strip('"') for quoted, word in QUOTED_OR_WORD.findall(text)]


def sniff(path: Path, cfg: DataConfig) -> Layout:
    """Return the layout of a text file, as configured or as its first lines show."""
    asked = (
        "layout", cfg.encoding, cfg.delimiter, cfg.decimal, cfg.header, cfg.recognise, cfg.columns is None,
    )  # fmt: skip
    return remembered(path, asked, lambda: _sniffed(path, cfg))


def _sniffed(path: Path, cfg: DataConfig) -> Layout:
    encoding, note = encoding_of(path, cfg.encoding)
    with opened(path, encoding) as file:
        lines = list(_first(file))
        if not any(line.strip() for line in lines):
            raise InputError(f"{path} is empty: give a file with numbers")
        skipped, comment = _preamble(lines)
        body = lines[skipped:]
        delimiter = cfg.delimiter
        if delimiter is None and lines[0].lower().startswith("sep=") and len(lines[0].strip()) == 5:
            delimiter = lines[0].strip()[4]  # a first line `sep=;` is for spreadsheets
        if delimiter is None:
            delimiter = best_delimiter(body)
        delimiter = None if delimiter == " " else delimiter
        sample = [fields for _, fields in split(body, delimiter)]
        before = len(list(split(lines[:skipped], delimiter)))
    if not sample:
        raise InputError(f"{path} has comments and no rows: give rows of numbers")
    rows = sample[1:] or sample
    decimal = decimal_of(path, [f for fields in rows for f in fields], cfg.decimal)
    widths = [len(fields) for fields in rows]
    layout = Layout(encoding, delimiter, decimal, max(widths, key=widths.count), before)
    layout.notes += [note] if note else []
    _header(path, layout, sample, cfg)
    if layout.names is None and comment and cfg.header != "no":
        named = next((fields for _, fields in split([comment], delimiter)), [])
        if len(named) == layout.width and not all(is_number(f, decimal) for f in named):
            layout.names = named
    return layout


def _first(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines: 200, or fewer if they are long."""
    size = 0
    for number, line in enumerate(islice(lines, SAMPLE_LINES)):
        if size > SAMPLE_CHARACTERS and number >= SAMPLE_LONG_LINES:
            return
        size += len(line)
        yield line


def _preamble(lines: Sequence[str]) -> tuple[int, str | None]:
    """Return the number of comment lines at the top, and the last of them without its mark."""
    count, last = 0, None
    for line in lines:
        if line.startswith(("#", "%")):
            last = line.lstrip("#%").lstrip(" ")
        elif line.strip() and not line.lower().startswith("sep="):
            break
        count += 1
    return count, last


def best_delimiter(lines: Sequence[str]) -> str | None:
    """Return the delimiter for which most lines have the same number of fields, and most fields are numbers."""

    def score(delimiter: str | None) -> float:
        try:
            rows = [fields for _, fields in split(lines, delimiter)]
        except csv.Error:
            return 0.0
        widths = [len(fields) for fields in rows[1:] or rows]
        width = max(widths, key=widths.count, default=0)
        if width < (2 if delimiter else 1):
            return 0.0
        fields = [field for row in rows[1:] or rows for field in row]
        decimals = "." if delimiter == "," else ",."
        numeric = sum(
            1.0 if any(is_number(f, d) for d in decimals) or is_missing(f) else 0.9 * with_unit(f)
            for f in fields
        )
        # Two columns are more probable than one decimal comma for `1,5` alone on a line.
        weight = 0.3 if width == 1 else 1.0
        return weight * widths.count(width) / len(widths) * (0.05 + numeric / len(fields))

    return max(CANDIDATES, key=score)


def decimal_of(path: Path, fields: Sequence[str], given: str) -> str:
    """Return the decimal sign: as given, or a comma if some numbers have one and none has a point."""
    if given != "auto":
        return {"point": ".", "comma": ","}.get(given, given)
    if not any("," in f for f in fields):
        return "."
    fields = [found[0] if (found := amount_and_unit(f)) else f for f in fields]
    commas = [f for f in fields if DECIMAL_COMMA.match(f)]
    if not commas or any("." in f and is_number(f) for f in fields):
        return "."
    if all(MAYBE_THOUSANDS.match(f) for f in commas):
        raise InputError(
            f"{path}: {commas[0]!r} may be a decimal comma or a thousands separator: give data.decimal=comma, or write "
            f"the numbers without separators"
        )
    return ","


def _header(path: Path, layout: Layout, sample: list[list[str]], cfg: DataConfig) -> None:
    """Find out whether the first record holds names and which leading columns are an index; store it in the layout."""
    first, rest = sample[0], sample[1:]
    has_words = words_on_top(first, rest, layout.decimal)
    of_numbers = cfg.header == "auto" and cfg.recognise and not has_words and numbers_on_top(first, rest)
    if cfg.header == "no" or (cfg.header == "auto" and not (has_words or of_numbers)):
        return
    layout.first += 1
    if of_numbers:
        layout.notes.append(
            f"the first line ({', '.join(first[:3])}, …) is read as names; data.header=no reads it as a row"
        )
    while rest and len(first) > layout.width and not first[-1]:
        first = first[:-1]
    if len(first) == layout.width - 1 and rest:
        first = ["", *first]  # R's way: the column of row names has no name
    if rest and len(first) != layout.width:
        above = next((i for i, row in enumerate(sample) if len(row) == layout.width), 0)
        if above and not any(is_number(f, layout.decimal) for f in sample[above]):
            raise InputError(
                f"{path}: the table, {layout.width} fields a line, begins below {above} other line{'s' * (above > 1)} "
                f"({first[0][:30]!r}): remove them, or begin each with #"
            )
        raise InputError(
            f"{path}: {len(first)} names in the first line, but {layout.width} fields in the lines below: correct it"
        )
    layout.names = [name or f"Unnamed: {i}" for i, name in enumerate(first)]  # as pandas calls them
    if has_words and cfg.header == "auto" and cfg.recognise and of_units(rest, layout.decimal):
        layout.first += 1
        units, rest = rest[0], rest[1:]
        layout.units = {name: unit for name, unit in zip(layout.names, units, strict=False) if unit}
        layout.notes.append(f"the second line ({', '.join(units[:3])}, …) is read as units")
    if cfg.recognise and cfg.columns is None:
        _index(layout, first, rest)


def of_units(rest: Sequence[Sequence[str]], decimal: str) -> bool:
    """Return whether the first of these records is a second line of a header: words above columns of numbers."""
    if len(rest) < 3 or len(rest[0]) != len(rest[1]) or any(is_number(f, decimal) for f in rest[0]):
        return False
    above = [i for i, f in enumerate(rest[0]) if not is_missing(f)]
    numeric = [
        i for i in above if all(is_number(row[i], decimal) for row in rest[1:] if i < len(row) and row[i])
    ]
    return bool(above) and len(numeric) > len(above) / 2 and not any(with_unit(rest[0][i]) for i in above)


def _index(layout: Layout, first: list[str], rest: list[list[str]]) -> None:
    """Leave out leading columns without a name, the index of pandas, R and spreadsheets, and an empty last column."""
    for i, name in enumerate(first[:-1]):
        if name and not re.fullmatch(r"Unnamed: \d+(\.\d+)?", name):
            break
        layout.left_out.append(i)
        layout.label = i
        shown = ", ".join(row[i] for row in rest[:2] if i < len(row))
        layout.notes.append(
            f"the first column has no name: it labels the rows ({shown}, …) and is left out; "
            "data.recognise=false reads it"
        )
    last = len(first) - 1
    if not first[last] and all(len(row) <= last or not row[last] for row in rest):
        layout.left_out.append(last)

"""The layout of a text table, from its first lines: encoding, delimiter, decimal sign, header."""

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.config import DataConfig
from sigmapca_cli.sources.table import unique
from sigmapca_cli.sources.text_header import find_header
from sigmapca_cli.sources.text_values import Layout, is_missing, is_number

SAMPLE_LINES = 200
CANDIDATES = ("\t", ";", ",", "|", None)  # None: white space
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?$")
MAYBE_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+$")

Record = tuple[int, list[str]]


def encoding_of(path: Path, given: str | None) -> tuple[str, str | None]:
    """Return (encoding, note or None): by the first bytes, else UTF-8 if the whole file is valid, else Windows-1252."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
        for bom, name in BOMS:
            if head.startswith(bom):
                return given or name, None
        if given is not None:
            return given, None
        if (wide := _utf_16_without_mark(head)) is not None:
            return wide, None
        if any(byte < 32 and byte not in b"\t\n\r\f\x0b\x1a" for byte in head):
            raise InputError(
                f"{path} has an unknown format: convert it to npy, npz, csv, h5, nc, parquet, feather or mat"
            )
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while head:
                decoder.decode(head)
                head = file.read(1 << 20)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            note = "is not UTF-8: it is read as Windows-1252 (Western European); data.encoding= sets another encoding"
            return "cp1252" if _decodes(path, "cp1252") else "latin-1", note
    return "utf-8", None


def _utf_16_without_mark(head: bytes) -> str | None:
    """Return the encoding of UTF-16 text of mostly Latin letters, where every second byte is 0; None for other text."""
    even, odd = head[::2], head[1::2]
    if not odd or (even + odd).count(0) < 0.3 * len(head):
        return None
    return "utf-16-le" if odd.count(0) > even.count(0) else "utf-16-be"


def _decodes(path: Path, encoding: str) -> bool:
    try:
        with path.open(encoding=encoding) as file:
            for _ in iter(lambda: file.read(1 << 20), ""):
                pass
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def records(path: Path, encoding: str, delimiter: str | None) -> Iterator[Record]:
    """Yield (line, fields) of each record that is not blank; the line is its first one, counted from 1."""
    try:
        with path.open(encoding=encoding, newline="") as file:
            yield from split(file, delimiter)
    except (UnicodeError, csv.Error) as error:
        if isinstance(error, csv.Error):
            raise InputError(
                f"{path} cannot be read as a table ({error}): check its quotation marks"
            ) from None
        raise InputError(f"{path} is not {encoding} text: give its encoding as data.encoding=") from None


def split(lines: Any, delimiter: str | None) -> Iterator[Record]:
    """Yield (line, fields) of each record in lines of text."""
    if delimiter in (None, " "):
        for line, text in enumerate(lines, start=1):
            if fields := [part.strip('"') for part in text.split()]:
                yield line, fields
        return
    assert delimiter is not None
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    before = 0
    for fields in reader:
        if any(part.strip() for part in fields):
            yield before + 1, [part.strip() for part in fields]
        before = reader.line_num


def sniff(path: Path, cfg: DataConfig) -> Layout:
    """Return the layout of a text file, as configured or as its first lines show."""
    encoding, note = encoding_of(path, cfg.encoding)
    lines = _first_lines(path, encoding)
    if not any(line.strip() for line in lines):
        raise InputError(f"{path} is empty: give a file with numbers")
    skipped, comment = _preamble(lines)
    body = lines[skipped:]
    delimiter = cfg.delimiter
    if delimiter is None and lines[0].lower().startswith("sep=") and len(lines[0].strip()) == 5:
        delimiter = lines[0].strip()[4]  # a first line `sep=;` is for spreadsheets
    if delimiter is None:
        delimiter = best_delimiter(body)
    try:
        sample = [fields for _, fields in split(body, delimiter)]
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as a table ({error}): check its quotation marks") from None
    if not sample:
        raise InputError(f"{path} has comments and no rows: give rows of numbers")
    decimal = decimal_of(path, [f for fields in sample[1:] or sample for f in fields], cfg.decimal)
    width = max((len(f) for f in sample[1:]), key=[len(f) for f in sample[1:]].count, default=len(sample[0]))
    before = len(list(split(lines[:skipped], delimiter)))
    layout = Layout(encoding, delimiter, decimal, width, before)
    if note:
        layout.notes.append(note)
    find_header(path, layout, sample, cfg)
    if layout.names is None and comment and cfg.header != "no":
        named = [fields for _, fields in split([comment], delimiter)]
        if named and len(named[0]) == width and not all(is_number(f, decimal) for f in named[0]):
            layout.names = unique(named[0])
    return layout


def _first_lines(path: Path, encoding: str) -> list[str]:
    try:
        with path.open(encoding=encoding, newline="") as file:
            return list(islice(file, SAMPLE_LINES))
    except (UnicodeError, LookupError):
        raise InputError(f"{path} is not {encoding} text: give its encoding as data.encoding=") from None


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

    def score(delimiter: str | None) -> tuple[float, float]:
        try:
            rows = [fields for _, fields in split(lines, delimiter)]
        except csv.Error:
            return 0.0, 0.0
        body = rows[1:] or rows
        if not body:  # nothing but delimiters
            return 0.0, 0.0
        widths = [len(fields) for fields in body]
        width = max(widths, key=widths.count)
        if width < 2 and delimiter is not None:
            return 0.0, 0.0
        same = widths.count(width) / len(widths)
        fields = [f for row in body for f in row]
        decimals = "." if delimiter == "," else ",."
        numeric = sum(any(is_number(f, d) for d in decimals) or is_missing(f) for f in fields) / len(fields)
        weight = (
            0.3 if width == 1 else 1.0
        )  # prefer two columns for `1,5` alone on a line to one decimal comma
        return weight * same * (0.05 + numeric), float(width)

    return max(CANDIDATES, key=lambda d: score(d)[0])


def decimal_of(path: Path, fields: Sequence[str], given: str) -> str:
    """Return the decimal sign: as given, or a comma if some numbers have one and none has a point."""
    if given != "auto":
        return {"point": ".", "comma": ","}.get(given, given)
    commas = [f for f in fields if DECIMAL_COMMA.match(f)]
    points = any("." in f and is_number(f) for f in fields)
    if not commas or points:
        return "."
    if all(MAYBE_THOUSANDS.match(f) for f in commas):
        raise InputError(
            f"{path}: {commas[0]!r} may be a decimal comma or a thousands separator: give data.decimal=comma, or write "
            f"the numbers without separators"
        )
    return ","

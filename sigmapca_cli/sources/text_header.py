"""The header of a text file: whether the first record holds names, and which columns are an index."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.config import DataConfig
from sigmapca_cli.sources.table import unique
from sigmapca_cli.sources.text_values import Layout, is_missing, is_number


def find_header(path: Path, layout: Layout, sample: list[list[str]], cfg: DataConfig) -> None:
    """Find out whether the first record holds names and which leading columns are an index; store it in the layout."""
    first, rest = sample[0], sample[1:]
    has_words = words_on_top(first, rest, layout.decimal)
    of_numbers = cfg.header == "auto" and cfg.recognise and not has_words and numbers_on_top(first, rest)
    if cfg.header == "no" or (cfg.header == "auto" and not (has_words or of_numbers)):
        layout.width = layout.width if rest else len(first)
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
        raise InputError(
            f"{path}: {len(first)} names in the first line, but {layout.width} fields in the lines below: correct it"
        )
    layout.names = unique(first)
    if twice := sorted({name for name in first if name and first.count(name) > 1}):
        layout.notes.append(
            f"several columns are named {twice[0]}: they are renamed {twice[0]}, {twice[0]}.1, …"
        )
    if cfg.recognise and cfg.columns is None:
        _index(layout, first, rest)


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


def words_on_top(first: Sequence[str], rest: Sequence[Sequence[str]], decimal: str) -> bool:
    """Return whether the first record has words where the others have numbers, or only words."""

    def word(text: str) -> bool:
        return not is_number(text, decimal) and not is_missing(text)

    if not rest or all(word(f) or not f for f in first):
        return any(word(f) for f in first)
    columns = [[row[i] for row in rest if i < len(row)] for i in range(len(first))]
    differs = [
        word(f) and any(is_number(v, decimal) for v in column)
        for f, column in zip(first, columns, strict=True)
    ]
    others = [is_number(f, decimal) for f in first]
    if any(differs) and (sum(differs) > 1 or not any(others)):
        return True  # a single word among numbers is an error in the row
    below = [row[1:] for row in rest]
    if not first[0]:  # an empty corner above an index
        return len(first) > 1 and rising(first[1:]) and all(row[0] for row in rest)
    return word(first[0]) and numbers_on_top(first[1:], below)


def rising(fields: Sequence[str]) -> bool:
    """Return whether all fields are whole numbers, each larger than the one before."""
    if not all(re.fullmatch(r"[+-]?\d+(\.0+)?", f) for f in fields):
        return False
    values = [float(f) for f in fields]
    return all(a < b for a, b in pairwise(values))


def numbers_on_top(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether the first record is a header of numbers: 0 … p−1, or rising numbers far from their columns."""
    if len(first) < 2 or len(rest) < 2 or not rising(first) or all(rising(row) for row in rest):
        return False
    if [float(f) for f in first] == list(range(len(first))):
        return True
    far = 0
    for i, text in enumerate(first):
        below = [float(row[i]) for row in rest if i < len(row) and is_number(row[i])]
        if below:
            low, high = min(below), max(below)
            far += not low - (high - low) <= float(text) <= high + (high - low)
    return len(first) > 2 and far == len(first)

"""Fields of a text table: which are numbers, missing values, dates or names, and what a column of words holds."""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

MISSING = {
    "", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "nil", "?", "-", "--", ".",
    "#div/0!", "#value!", "#num!", "#ref!", "#null!", "#name?",
}  # fmt: skip
TRUTH = {"true": 1.0, "false": 0.0}
MANY = 8  # so many numbers in order are hardly a row of measurements
LEAST_OF_AN_AXIS = 4  # so many numbers at equal distances are hardly a row of measurements
AMOUNT, UNIT = r"([+-]?\d+(?:[.,]\d+)*)", r"([%‰°€$£¥]|[a-zA-Zµ]{1,4})"
WITH_UNIT = re.compile(rf"(?:([^\w\s.,;+-])\s?{AMOUNT}\s?{UNIT}?|{AMOUNT}\s?{UNIT})$")
FORTRAN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[dD][+-]?\d+")  # 1.5D-03, double precision
DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}|\d{1,2}:\d{2}")
WHOLE = re.compile(r"[+-]?\d+(\.0+)?")


def is_missing(text: str) -> bool:
    """Return whether a field means a missing value."""
    return text.strip().lower() in MISSING


def number(text: str, decimal: str = ".") -> float:
    """Return the number in a field; raise ValueError if it is none."""
    if "_" in text or (decimal == "," and "." in text):
        raise ValueError(text)
    if text[:1] in "tTfF" and text.lower() in TRUTH:
        return TRUTH[text.lower()]  # like the booleans of a Parquet table
    if FORTRAN.fullmatch(text):
        text = text.upper().replace("D", "E")
    text = text.replace("−", "-")  # the sign of word processors
    return float(text.replace(",", ".") if decimal == "," else text)


def is_number(text: str, decimal: str = ".") -> bool:
    """Return whether a field holds a number."""
    try:
        float(text)  # first the usual notation: a page asks this of 100,000 fields
    except ValueError:
        try:
            number(text, decimal)
        except ValueError:
            return False
        return True
    return "_" not in text and (decimal != "," or "." not in text)


def with_unit(text: str) -> bool:
    """Return whether a field is a number with a unit or a currency."""
    return WITH_UNIT.match(text) is not None


def amount_and_unit(text: str) -> tuple[str, str] | None:
    """Return the number in a field, as it is written, and its unit or currency; None for another field."""
    if (found := WITH_UNIT.match(text)) is None:
        return None
    before, prefixed, after, plain, unit = found.groups()
    return (plain, unit) if before is None else (prefixed, before + (after or ""))


def same_unit(fields: Sequence[str]) -> bool:
    """Return whether all fields are numbers with the same unit."""
    found = [amount_and_unit(field) for field in fields]
    return len({unit and unit[1] for unit in found}) == 1 and found[0] is not None


def is_date(text: str) -> bool:
    """Return whether text is a date or time: ISO 8601, or day, month and year in any order."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return bool(DATE.match(text))
    return True


def kind_of(seen: Sequence[str]) -> str:
    """Return the kind of a column of words from some of its fields: dates, numbers with a unit, ids or text."""
    if all(is_date(text) for text in seen):
        return "dates"
    if all(with_unit(text) for text in seen):
        return "numbers with a unit or currency"
    distinct = len(set(seen)) == len(seen) > 3
    if distinct and all(any(c.isdigit() for c in text) for text in seen):
        return "ids"
    return "text"


def words_on_top(first: Sequence[str], rest: Sequence[Sequence[str]], decimal: str) -> bool:
    """Return whether the first record has words where the others have numbers, or only words."""

    def word(text: str) -> bool:
        return not is_number(text, decimal) and not is_missing(text)

    columns = [[row[i] for row in rest if i < len(row)] for i in range(len(first))]
    if rest and all(same_unit([f, *column]) for f, column in zip(first, columns, strict=True)):
        return False
    if not rest or all(word(f) or not f for f in first):
        return any(word(f) for f in first)
    differs = [
        word(f) and any(is_number(v, decimal) for v in column)
        for f, column in zip(first, columns, strict=True)
    ]
    others = [is_number(f, decimal) for f in first]
    if any(differs) and (sum(differs) > 1 or not any(others)):
        return True  # a single word among numbers is an error in the row
    if not first[0] and all(row[0] for row in rest):  # an empty corner above an index
        below = [row[1:] for row in rest]
        return len(first) > 2 and (rising(first[1:]) or numbers_on_top(first[1:], below))
    # Beside columns of words, such as a sample and a batch.
    named = [i for i, f in enumerate(first) if not word(f)]
    if len(named) == len(first):
        return False
    numbers = [first[i] for i in named]
    below = [[row[i] for i in named if i < len(row)] for row in rest]
    return numbers_on_top(numbers, below) or (len(numbers) >= MANY and on_axis(numbers, below))


def rising(fields: Sequence[str]) -> bool:
    """Return whether all fields are whole numbers, each larger than the one before."""
    return all(WHOLE.fullmatch(f) for f in fields) and all(a < b for a, b in pairwise(map(number, fields)))


def in_order(fields: Sequence[str]) -> bool:
    """Return whether all fields are numbers, each larger, or each smaller, than the one before."""
    if not all(is_number(f) for f in fields):
        return False
    steps = [b - a for a, b in pairwise(map(number, fields))]
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)


def on_axis(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether the first record is in order, as the values of an axis are, and no other one is."""
    return in_order(first) and not any(in_order(row) for row in rest)


def at_equal_distances(fields: Sequence[str]) -> bool:
    """Return whether all fields are numbers at equal distances, as far as their digits tell."""
    if len(fields) < LEAST_OF_AN_AXIS or not in_order(fields):
        return False
    unit = 10.0 ** -max(len(field.partition(".")[2]) for field in fields)
    steps = [b - a for a, b in pairwise(map(number, fields))]
    spread, least = max(steps) - min(steps), min(map(abs, steps))
    if spread < 1e-6 * least:
        return True
    # Each number may be off by half a unit of its last digit; of few numbers that must be small beside the distance.
    return spread <= 2.001 * unit < least and (len(fields) >= MANY or spread <= least / 10)


def turning(fields: Sequence[str]) -> bool:
    """Return whether a record goes up and down as unrelated numbers do: at every third of its fields or more."""
    if not all(is_number(f) for f in fields):
        return False
    steps = [b - a for a, b in pairwise(map(number, fields))]
    return sum(a * b < 0 for a, b in pairwise(steps)) >= len(steps) / 3


def numbers_on_top(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether the first record is a header of numbers, such as wavelengths, ppm or m/z.

    It is 0 … p−1; or numbers with decimals at equal distances; or many numbers in order above records that go up and
    down; or rising whole numbers, or many numbers in order, far from those below them. No other record is like it.
    """
    if len(first) < 2 or len(rest) < 2:
        return False
    whole = rising(first) and not all(rising(row) for row in rest)
    if whole and [float(f) for f in first] == list(range(len(first))):
        return True
    spaced = any("." in f for f in first) and at_equal_distances(first)
    if spaced and not any(at_equal_distances(row) for row in rest):
        return True
    many = len(first) >= MANY and on_axis(first, rest)
    if many and sum(map(turning, rest)) > len(rest) / 2:
        return True
    return (whole or many) and far_from(first, rest)


def far_from(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether each number of the first record, of three or more, lies outside twice the range below it."""
    far = 0
    for i, text in enumerate(first):
        below = [number(row[i]) for row in rest if i < len(row) and is_number(row[i])]
        if below:
            low, high = min(below), max(below)
            far += not low - (high - low) <= number(text) <= high + (high - low)
    return len(first) > 2 and far == len(first)

"""Fields of a text file as numbers, and the layout of the file."""

from dataclasses import dataclass, field

MISSING = {
    "", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "nil", "?", "-", "--", ".",
    "#div/0!", "#value!", "#num!", "#ref!", "#null!", "#name?",
}  # fmt: skip
TRUTH = {"true": 1.0, "false": 0.0}


@dataclass
class Layout:
    """The layout of a text file, which `sniff` finds."""

    encoding: str
    delimiter: str | None
    decimal: str
    width: int
    first: int  # records before the first row
    names: list[str] | None = None
    left_out: list[int] = field(default_factory=list)
    label: int | None = None  # the column that holds the rows' labels
    notes: list[str] = field(default_factory=list)


def is_missing(text: str) -> bool:
    """Return whether a field means a missing value."""
    return text.strip().lower() in MISSING


def number(text: str, decimal: str = ".") -> float:
    """Return the number in a field; raise ValueError if it is none."""
    if "_" in text or (decimal == "," and "." in text):
        raise ValueError(text)
    if text[:1] in "tTfF" and text.lower() in TRUTH:
        return TRUTH[text.lower()]  # like the booleans of a Parquet table
    return float(text.replace(",", ".") if decimal == "," else text)


def is_number(text: str, decimal: str = ".") -> bool:
    """Return whether a field holds a number."""
    try:
        number(text, decimal)
    except ValueError:
        return False
    return True

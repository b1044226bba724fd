"""A self-contained HTML page out of sections of text, verdicts, pictures, tables and galleries.

    write_page("page.html", "Title", [Section("Filters", [Picture.from_file("f.png", "12 filters"),
                                                          Verdicts([Verdict("they are ordered", True)])])])

Texts are plain and escaped; pictures are embedded. The page loads nothing, and its content security policy forbids it.
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sigmapca_cli import __version__
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment

TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Verdict:
    """One sentence that holds (True), does not hold (False), or was not decided (None).

    `label` replaces the words of the mark; `detail` is shown below in small print.
    """

    text: str
    holds: bool | None = None
    label: str = ""
    detail: str = ""

    @property
    def words(self) -> str:
        """The meaning of the mark, for screen readers."""
        return self.label or {True: "holds", False: "does not hold", None: "note"}[self.holds]


@dataclass(frozen=True)
class Verdicts:
    """A list of sentences with marks."""

    items: Sequence[Verdict]
    kind: ClassVar[str] = "verdicts"


@dataclass(frozen=True)
class Picture:
    """`source` is a data: URI, or SVG elements (`svg=True`); `alt` describes the picture in words."""

    source: str
    alt: str
    caption: str = ""
    svg: bool = False
    kind: ClassVar[str] = "picture"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], alt: str, caption: str = "") -> Picture:
        """Embed a PNG, JPEG or SVG file; raise InputError for another kind of file."""
        suffix = Path(path).suffix.lower()
        if suffix not in TYPES:
            raise InputError(f"{path}: not a picture that a page can embed; use {', '.join(TYPES)}")
        return cls(data_uri(Path(path).read_bytes(), TYPES[suffix]), alt, caption)


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side if the window is wide enough; `legend`: (CSS colour, words) pairs."""

    items: Sequence[Picture]
    legend: Sequence[tuple[str, str]] = ()
    kind: ClassVar[str] = "pictures"


@dataclass(frozen=True)
class Beside:
    """Columns of blocks, the first one wider, side by side if the window is wide enough."""

    columns: Sequence[Sequence[Any]]
    kind: ClassVar[str] = "beside"


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, the value to sort by, the target of its link, and the strength of its tint (0 to 1)."""

    text: str
    value: float | None = None
    href: str = ""
    tint: float | None = None

    @classmethod
    def of(cls, value: Any) -> Cell:
        """Return a cell for a value: numbers to five figures; nan and None as a dash."""
        if isinstance(value, Cell):
            return value
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return cls("–")
        if isinstance(value, bool | str):
            text = str(value)
            return cls(text, number(text))
        return cls(f"{value:,}" if isinstance(value, int) else f"{value:.5g}", float(value))


@dataclass(frozen=True)
class Table:
    """A table that a click on a column header sorts; rows of `Cell`, or of values that `Cell.of` accepts."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    sortable: bool = True
    kind: ClassVar[str] = "table"

    @property
    def cells(self) -> list[list[Cell]]:
        """All rows, as cells."""
        return [[Cell.of(value) for value in row] for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """For each column, whether it has only numbers and dashes."""
        columns = zip(*self.cells, strict=True)
        return [all(c.value is not None or c.text == "–" for c in column) for column in columns]


@dataclass(frozen=True)
class Axis:
    """A slider: the name of a setting, and its values in order."""

    name: str
    values: Sequence[str]


@dataclass(frozen=True)
class Panel:
    """The content of a gallery at one position of its sliders; `key`: one index per slider."""

    key: tuple[int, ...]
    heading: str
    blocks: Sequence[Any]
    run: int | None = None


@dataclass(frozen=True)
class Gallery:
    """Panels; the sliders choose the one that is shown."""

    axes: Sequence[Axis]
    panels: Sequence[Panel]
    kind: ClassVar[str] = "gallery"


@dataclass(frozen=True)
class Details:
    """Blocks that are shown after a click on the summary line; `anchor` is the target of links."""

    summary: str
    blocks: Sequence[Any]
    anchor: str = ""
    opened: bool = False
    kind: ClassVar[str] = "details"


@dataclass(frozen=True)
class Code:
    """Text in a fixed-width font, such as a configuration."""

    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it."""

    title: str
    blocks: Sequence[Any] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The id that the table of contents links to."""
        return "s-" + "".join(c if c.isalnum() else "-" for c in self.title.lower())


def write_page(
    path: str | os.PathLike[str], title: str, sections: Sequence[Section], subtitle: str = ""
) -> Path:
    """Write the page, replacing an earlier one in one step; return its path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, render(title, sections, subtitle).encode())
    return target


def render(title: str, sections: Sequence[Section], subtitle: str = "") -> str:
    """Return the page as HTML text."""
    template = _environment().get_template("page.html.j2")
    return template.render(title=title, subtitle=subtitle, sections=sections, version=__version__)


def data_uri(data: bytes, kind: str) -> str:
    """Return bytes as a data: URI."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def number(text: str) -> float | None:
    """Return the text as a finite number, or None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

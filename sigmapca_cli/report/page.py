"""A self-contained HTML page out of sections of text, verdicts, pictures, tables and galleries.

    write_page("page.html", "Title", [Section("Filters", [Picture.from_file("f.png", "12 filters"),
                                                          Verdicts([Verdict("they are ordered", True)])])])

Texts are plain and are escaped; pictures are embedded. The page loads nothing, and its content policy forbids it to.
"""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sigmapca_cli import __version__
from sigmapca_cli.atomic import replace_file
from sigmapca_cli.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Verdict:
    """One sentence that holds (True), does not (False), or was not decided (None).

    `label` replaces the mark's words, `detail` stands below in small print.
    """

    text: str
    holds: bool | None = None
    label: str = ""
    detail: str = ""

    @property
    def words(self) -> str:
        """What the mark means, for who cannot see it."""
        return self.label or {True: "holds", False: "does not hold", None: "note"}[self.holds]


@dataclass(frozen=True)
class Verdicts:
    """A list of sentences with marks."""

    items: Sequence[Verdict]
    kind: ClassVar[str] = "verdicts"


@dataclass(frozen=True)
class Picture:
    """`source` is a data: URI, or SVG elements (`svg=True`); `alt` says in words what is to be seen."""

    source: str
    alt: str
    caption: str = ""
    svg: bool = False
    kind: ClassVar[str] = "picture"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], alt: str, caption: str = "") -> Picture:
        """Embed a PNG, JPEG or SVG file; InputError for another kind of file."""
        suffix = Path(path).suffix.lower()
        if suffix not in TYPES:
            raise InputError(f"{path}: not a picture that a page can hold; use {', '.join(TYPES)}")
        return cls(data_uri(Path(path).read_bytes(), TYPES[suffix]), alt, caption)

    @classmethod
    def from_figure(cls, figure: Figure, alt: str, caption: str = "", dpi: int = 110) -> Picture:
        """Embed a matplotlib figure as PNG."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=dpi)
        return cls(data_uri(buffer.getvalue(), "image/png"), alt, caption)


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side where the window is wide enough; `legend` names colours: (CSS colour, words)."""

    items: Sequence[Picture]
    legend: Sequence[tuple[str, str]] = ()
    kind: ClassVar[str] = "pictures"


@dataclass(frozen=True)
class Beside:
    """Columns of blocks, the first one wider, side by side where the window is wide enough."""

    columns: Sequence[Sequence[Any]]
    kind: ClassVar[str] = "beside"


@dataclass(frozen=True)
class Cell:
    """A table's cell: what it shows, what it is sorted by, where it leads, and how strongly it is tinted (0 to 1)."""

    text: str
    value: float | None = None
    href: str = ""
    tint: float | None = None

    @classmethod
    def of(cls, value: Any) -> Cell:
        """Numbers to five figures; nan and None as a dash."""
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
    """Columns that a click on their header sorts; rows of `Cell`, or of values that `Cell.of` knows."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    sortable: bool = True
    kind: ClassVar[str] = "table"

    @property
    def cells(self) -> list[list[Cell]]:
        """All rows as cells."""
        return [[Cell.of(value) for value in row] for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """Whether a column holds numbers and gaps only."""
        columns = zip(*self.cells, strict=True)
        return [all(c.value is not None or c.text == "–" for c in column) for column in columns]


@dataclass(frozen=True)
class Axis:
    """A slider: the name of a setting and its values in order."""

    name: str
    values: Sequence[str]


@dataclass(frozen=True)
class Panel:
    """What a gallery shows at one position of its sliders; `key` is one index an axis."""

    key: tuple[int, ...]
    heading: str
    blocks: Sequence[Any]
    run: int | None = None


@dataclass(frozen=True)
class Gallery:
    """Panels of which sliders choose one."""

    axes: Sequence[Axis]
    panels: Sequence[Panel]
    kind: ClassVar[str] = "gallery"


@dataclass(frozen=True)
class Details:
    """Blocks behind a line that opens them; `anchor` lets a link lead here."""

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
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Any] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The id that the table of contents leads to."""
        return "s-" + "".join(c if c.isalnum() else "-" for c in self.title.lower())


def write_page(
    path: str | os.PathLike[str], title: str, sections: Sequence[Section], subtitle: str = ""
) -> Path:
    """Write the page, replacing an earlier one in one step; returns its path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, render(title, sections, subtitle).encode())
    return target


def render(title: str, sections: Sequence[Section], subtitle: str = "") -> str:
    """The page as text."""
    template = _environment().get_template("page.html.j2")
    return template.render(title=title, subtitle=subtitle, sections=sections, version=__version__)


def data_uri(data: bytes, kind: str) -> str:
    """Bytes as an address that needs no file."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def number(text: str) -> float | None:
    """The text as a number, where it is one."""
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

"""How figures are drawn and written: the one set of options of every figure of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sigmapca_cli.settings.checks import choice
from sigmapca_cli.solution.loadings import ROTATIONS
from sigmapca_cli.system.errors import InputError

FORMATS = ("png", "pdf")
"""What is written unless a user says otherwise."""
KNOWN_FORMATS = ("png", "pdf", "svg")
NARROWEST, WIDEST = 1.0, 50.0


@dataclass(frozen=True)
class Style:
    """What a user may choose of a figure.

    width: inches, None for the size that suits the content. titled: whether a title stands above it, where a caption
    below would say the same. formats: suffixes of the files. dpi: pixels per inch of a PNG. x_label: what the numbers
    that name the columns are. colour: the column that colours scores. components: the two that scores are drawn of,
    counted from 0. rotate: the rotation of loadings, one of `solution.loadings.ROTATIONS`.
    """

    width: float | None = None
    titled: bool = True
    formats: tuple[str, ...] = FORMATS
    dpi: int = 150
    x_label: str | None = None
    colour: str | None = None
    components: tuple[int, int] = (0, 1)
    rotate: str | None = None

    def title(self, text: str) -> str:
        """Return a title, empty where none is wanted."""
        return text if self.titled else ""


def style_of(formats: str | None = None, components: str | None = None, **options: Any) -> Style:
    """Return a style from the words of a command: formats "pdf,svg", components "1,2". Raise InputError for others."""
    width, dpi = options.get("width"), options.get("dpi", 150)
    if width is not None and not NARROWEST <= width <= WIDEST:
        raise InputError(f"--width {width:g}: give inches from {NARROWEST:g} to {WIDEST:g}")
    if not 10 <= dpi <= 2400:
        raise InputError(f"--dpi {dpi}: give pixels per inch from 10 to 2400")
    kinds = FORMATS if formats is None else tuple(dict.fromkeys(part.strip() for part in formats.split(",")))
    for kind in kinds:
        choice("--format", kind, KNOWN_FORMATS)
    if options.get("rotate") is not None:
        choice("--rotate", options["rotate"], ROTATIONS)
    given = {name: value for name, value in options.items() if value is not None}
    if components is not None:
        given["components"] = pair_in(components)
    return Style(formats=kinds, **given)


def pair_in(words: str) -> tuple[int, int]:
    """Return two components that a user numbers from 1, counted from 0. Raise InputError for other words."""
    parts = [part.strip() for part in words.split(",")]
    if (
        len(parts) != 2
        or not all(part.isdecimal() and int(part) > 0 for part in parts)
        or parts[0] == parts[1]
    ):
        raise InputError(f"--components {words}: give two of them, counted from 1, as in --components 1,2")
    return int(parts[0]) - 1, int(parts[1]) - 1

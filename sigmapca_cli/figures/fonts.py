"""Fonts for names in any script: one that is installed and has the letters, or one line that says which is missing."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextlib.contextmanager
def drawn_in_all_scripts(figure: Figure) -> Iterator[None]:
    """Let a figure be drawn with fonts that have all letters of its texts; warn in one line where none has.

    matplotlib draws a box for a letter that its font lacks, and warns for each.
    """
    from matplotlib.text import Text

    lacking: set[str] = set()
    for text in figure.findobj(Text):
        if isinstance(text, Text) and (missing := letters_lacking(text)):
            lacking |= missing
            if found := font_with(frozenset(missing)):
                text.set_fontfamily([*text.get_fontfamily(), found])
                lacking -= missing
    if lacking:
        shown = "".join(sorted(lacking)[:8])
        logging.getLogger("sigmapca").warning(
            "no installed font has the letters %s: boxes are drawn in their place; install one, for example "
            "Noto Sans CJK (Debian: fonts-noto-cjk)",
            shown,
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph ", category=UserWarning)
        yield


def letters_lacking(text: object) -> set[str]:
    """Return the letters of a matplotlib Text beyond Latin that none of its fonts has."""
    from matplotlib import font_manager

    letters = {letter for letter in text.get_text() if ord(letter) > 0x24F}  # type: ignore[attr-defined]
    if not letters:
        return letters
    properties = text.get_fontproperties()  # type: ignore[attr-defined]
    font = font_manager.get_font(font_manager.findfont(properties))
    return {letter for letter in letters if not font.get_char_index(ord(letter))}


def font_with(letters: frozenset[str]) -> str | None:
    """Return the family of an installed font that has all these letters; None if there is none."""
    from matplotlib import font_manager

    for entry in font_manager.fontManager.ttflist:
        if "LastResort" in entry.name.replace(" ", ""):
            continue  # it draws boxes for all letters
        with contextlib.suppress(OSError, RuntimeError):
            font = font_manager.get_font(entry.fname)
            if all(font.get_char_index(ord(letter)) for letter in letters):
                return str(entry.name)
    return None

"""Figures without pyplot: no global state, no display, fonts for any script; files are written whole or not at all."""

from __future__ import annotations

import contextlib
import logging
import os
import textwrap
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.figures.style import FORMATS, KNOWN_FORMATS
from sigmapca_cli.system.atomic import replacing
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, GREEN, RED, BLACK = "#0072B2", "#009E73", "#D55E00", "#000000"
"""Colours of Okabe and Ito, which differ for people with any common colour blindness."""
GREY = "#777777"
IN_FILES: Any = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.hashsalt": "sigmapca",
                 "figure.autolayout": False, "figure.constrained_layout.use": False}  # fmt: skip
"""TrueType in PDF, as publishers ask: matplotlib's own choice, Type 3, is refused by many. One name for all parts of an
SVG, so that it is the same at every save. No layout that a user's settings would add to one that is fixed."""


def new_figure(width: float = 6.0, height: float = 4.0, fit: float | None = None) -> Figure:
    """Return a figure of width × height inches, without global state; its layout prevents overlapping labels.

    fit: the width in its place, with a height in proportion.
    """
    from matplotlib.figure import Figure

    own_style()
    size = (width, height) if fit is None else (fit, height * fit / width)
    return Figure(figsize=size, layout="constrained")


def panels_across(count: int, least: float, usual: int, fit: float | None) -> int:
    """Return how many panels of at least `least` inches stand side by side: `usual`, or what fits in `fit` inches."""
    most = usual if fit is None else max(1, int(fit / least))
    return max(1, min(count, most))


def heading(figure: Figure, title: str) -> None:
    """Write a title above a figure, in as many lines as its width asks for."""
    if title:
        figure.suptitle(textwrap.fill(title, max(int(figure.get_figwidth() * 13), 12)), fontsize=9)


@cache
def own_style() -> None:
    """In a command, replace the user's matplotlib settings by the defaults.

    Figures are then the same on every machine, also without LaTeX. A program that imports this package keeps its own
    settings.
    """
    if os.environ.get("SIGMAPCA_OWN_STYLE"):
        import matplotlib

        matplotlib.rcdefaults()


def save(figure: Figure, path: str | Path, formats: tuple[str, ...] = FORMATS, dpi: int = 150) -> list[Path]:
    """Write the figure to `path` in each format (its suffix is replaced); return the files, each replaced in one step.

    Two saves of one figure give the same bytes, because no date is stored. All formats have the layout of the first.
    """
    from matplotlib import rc_context

    written = targets(path, formats)
    make_folder(written[0].parent)
    with drawn_in_all_scripts(figure), rc_context(IN_FILES), laid_out(figure, dpi):
        for kind, target in zip(formats, written, strict=True):
            metadata = {"CreationDate": None} if kind == "pdf" else {"Date": None} if kind == "svg" else None
            with replacing(target) as aside:
                figure.savefig(aside, format=kind, dpi=dpi, metadata=metadata)
    return written


@contextlib.contextmanager
def laid_out(figure: Figure, dpi: int) -> Iterator[None]:
    """Fix the layout of a figure for all formats: matplotlib finds it anew for each, by a drawing of its own."""
    layout, own_dpi = figure.get_layout_engine(), figure.dpi
    if layout is not None:
        figure.set_dpi(dpi)
        layout.execute(figure)
        figure.set_dpi(own_dpi)
        figure.set_layout_engine(None)
    yield
    figure.set_layout_engine(layout)


def targets(path: str | Path, formats: tuple[str, ...] = FORMATS) -> list[Path]:
    """Return the files that `save` writes: `path` with each format as its suffix, in the place of one it has."""
    stem = Path(path)
    stem = stem.with_suffix("") if stem.suffix.lstrip(".") in KNOWN_FORMATS else stem
    return [stem.parent / f"{stem.name}.{kind}" for kind in formats]


def make_folder(folder: Path) -> None:
    """Create a folder for figures; raise InputError if that is not possible."""
    advice = "give another folder with -o"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder}: is a file, but figures need a folder; {advice}") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be created ({error.strerror}); {advice}") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: cannot be written to; {advice}")


def literal(text: str) -> str:
    """Return a name with its dollar signs escaped: matplotlib would read text between them as a formula."""
    return text.replace("$", r"\$")


def named(axes: Any, x: str, y: str) -> None:
    """Name both axes."""
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)


def scale_beside(axes: Any, image: Any, label: str, size: int = 8, **options: Any) -> None:
    """Draw the scale of the colours of an image beside its axes."""
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, **options)
    bar.set_label(label, fontsize=size)
    bar.ax.tick_params(labelsize=7)


def tidy(axes: Any) -> None:
    """Remove the top and right spines and use small tick labels."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


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

"""Figures without pyplot: nothing global, no display, and files that are either whole or absent."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.atomic import replacing
from sigmapca_cli.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, which people with any common colour blindness can tell apart.
BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000",
)  # fmt: skip
GREY = "#777777"
FORMATS = ("png", "pdf")


def new_figure(width: float = 6.0, height: float = 4.0) -> Figure:
    """A figure of width × height inches that no global state knows; its layout keeps labels apart."""
    from matplotlib.figure import Figure

    own_style()
    return Figure(figsize=(width, height), layout="constrained")


@cache
def own_style() -> None:
    """In a command, matplotlib's own settings instead of a user's: LaTeX may be missing, and pictures are to be alike
    on every machine. A program that imports this package keeps its own.
    """
    if os.environ.get("SIGMAPCA_OWN_STYLE"):
        import matplotlib

        matplotlib.rcdefaults()


def save(figure: Figure, path: str | Path, formats: tuple[str, ...] = FORMATS, dpi: int = 150) -> list[Path]:
    """Write `path` in each format (its suffix is replaced) and return the files, each replaced in one step.

    Two saves of one figure give the same bytes: no date is stored.
    """
    stem = Path(path)
    stem = stem.with_suffix("") if stem.suffix.lstrip(".") in {*FORMATS, "svg"} else stem
    make_folder(stem.parent)
    written = []
    for kind in formats:
        target = stem.parent / f"{stem.name}.{kind}"
        metadata = {"CreationDate": None} if kind == "pdf" else {"Date": None} if kind == "svg" else None
        with replacing(target) as aside:
            figure.savefig(aside, format=kind, dpi=dpi, metadata=metadata)
        written.append(target)
    return written


def make_folder(folder: Path) -> None:
    """Make a folder for figures, or say in one line why it cannot be one."""
    advice = "give another folder with -o"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder}: is a file, figures need a folder; {advice}") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); {advice}") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: cannot be written to; {advice}")


def literal(text: str) -> str:
    """A name as it is: between dollar signs matplotlib would read a formula."""
    return text.replace("$", r"\$")


def tidy(axes: Any) -> None:
    """Only the two spines that carry a scale, and small ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)

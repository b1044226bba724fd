"""The typed schema of the `data` group: one flat dataclass for every kind of source, its ranges checked."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sigmapca_cli.settings.checks import choice, in_range
from sigmapca_cli.settings.sealed import Sealable
from sigmapca_cli.system.errors import InputError

CHOICES: dict[str, tuple[str, ...]] = {
    "standardise": ("feature", "none"),
    "whiten": ("none", "pca", "zca"),
    "half": ("all", "even", "odd"),
    "padding": ("same", "valid"),
    "select": ("first", "random"),
    "split": ("train", "test", "all"),
    "sources": ("laplace", "uniform", "mixed"),
    "variant": ("distinct_variance", "two_same_variance", "same_variance", "non_orthogonal"),
    "distribution": ("uniform", "laplace"),
    "header": ("auto", "yes", "no"),
    "decimal": ("auto", "point", "comma", ".", ","),
    "missing": ("refuse", "drop", "mean", "ppca"),
}


Forecast = Callable[[int, int], str]
"""What a run on n rows of p features will need, in words; it raises InputError where that is too much."""


@dataclass(frozen=True)
class Kind:
    """One kind of data.

    module: the module of `data` whose `build(cfg)` makes it. standardise: what is divided by its standard deviation
    unless data.standardise says otherwise: pixels ("feature"), as in the paper; a matrix is centred only ("none"), as
    PCA's users and `SigmaPCA` expect; prepared data (None) stay as they were prepared. holds: pixels, signals or rows;
    made: rows whose truth is known. reads_files: whether data.path means something. forecasts: whether
    `build(cfg, forecast)` asks what the run will need before a long pass over the rows.
    """

    module: str
    standardise: str | None = "none"
    holds: str = "rows"
    reads_files: bool = True
    forecasts: bool = False


# `data=NAME` for each; the files of `conf/data` and the class go by this table.
KINDS: dict[str, Kind] = {
    "natural": Kind("images.natural", "feature", "pixels", reads_files=False),
    "planted": Kind("synthetic.planted", holds="made", reads_files=False),
    "cifar10": Kind("images.cifar", "feature", "pixels"),
    "cifar100": Kind("images.cifar", "feature", "pixels"),
    "mnist": Kind("images.mnist", "feature", "pixels"),
    "images": Kind("images.folder", "feature", "pixels"),
    "signals": Kind("synthetic.signals", holds="signals"),
    "points": Kind("synthetic.points", holds="made", reads_files=False),
    "array": Kind("matrix.arrays", forecasts=True),
    "prepared": Kind("cache.prepared", None),
    "moments": Kind("matrix.sums", holds="sums"),
}


def kinds_of(holds: str) -> list[str]:
    """Return the names of the kinds of data that hold pixels, signals, made rows or other rows."""
    return [name for name, kind in KINDS.items() if kind.holds == holds]


def usual_standardise(name: str) -> str | None:
    """Return data.standardise of a kind where nothing is said, "none" for a kind that is not known."""
    return KINDS[name].standardise if name in KINDS else "none"


# Fields that some older stored configurations lack, with the value that keeps the old behaviour; `recognise` has none.
YOUNGER_DATA: dict[str, Any] = {
    "rows": None,
    "missing_codes": None,
    "columns": None,
    "drop": None,
    "decimal": "auto",
    "delimiter": None,
    "encoding": None,
    "missing": "refuse",
    "clip": None,
    "max_pixels": None,
    "whiten_rank": None,
    "centre": True,
    "ordered": "auto",
    "part": None,
    "subject": None,
}
# Field: (smallest, largest allowed value). Optional fields may also be null.
RANGES: dict[str, tuple[float, float]] = {
    "n": (2, math.inf),
    "seed": (0, 2**32 - 1),
    "epsilon": (0, math.inf),
    "patch": (0, math.inf),
    "stride": (1, math.inf),
    "images": (1, math.inf),
    "p": (1, math.inf),
    "k": (1, math.inf),
    "group": (1, math.inf),
    "noise": (0, math.inf),
    "duration": (1e-9, math.inf),
    "angle": (-360, 360),
    "clip": (0, 0.499999),
    "max_pixels": (1, math.inf),
    "whiten_rank": (1, math.inf),
}


@dataclass
class DataConfig(Sealable):
    """The data x. `name` is the kind of source; the comment of a field names the kinds that use it."""

    name: str = "natural"
    path: Any = None  # cifar10, cifar100, mnist, images, array, signals (WAV): file or folder; array: several
    seed: int = 0  # planted, signals, points, select=random
    n: int | None = None  # planted, signals, points: samples (null: the kind's own number)
    # every kind
    standardise: str | None = None  # feature: (x − mean)/√(var + ε); none: x − mean; null: see KINDS
    epsilon: float | None = None  # ε; null: relative to the data's scale
    whiten: str = "none"
    whiten_rank: int | None = None  # so many leading eigenvectors are whitened, the others 0; null: all
    centre: bool = (
        True  # subtract the mean; false: only scale, for model.centring=noncentred, noncentred_mean
    )
    scale_input: float = 1.0  # multiplies the standardised rows
    half: str = "all"  # every second image or row
    part: str | None = None  # a stretch of the images, subjects or rows: 1/2, 2/5
    ordered: Any = "auto"  # whether rows are in time: true, false, or auto, found by their values
    offline: bool = False  # never download
    # image kinds
    patch: int = 11  # 0: each whole image is a row
    stride: int = 1
    padding: str = "same"
    images: int | None = None  # how many images; null: all
    select: str = "first"
    grey: bool = False
    max_pixels: int | None = None  # of one picture; null: Pillow's limit against decompression bombs
    split: str = "train"  # cifar10, cifar100, mnist
    # planted
    p: int = 64
    k: int = 12
    group: int = 3
    sources: str = "laplace"
    noise: float = 0.05  # planted and signals
    # signals
    variant: str = "distinct_variance"
    duration: float = 8.0  # seconds of t
    mix: bool = True  # WAV files hold sources to be mixed; false: they are mixtures already
    # points
    distribution: str = "uniform"
    angle: float = 45.0  # degrees
    # array
    key: str | None = None  # npz, mat: which variable
    dataset: str | None = None  # h5: which data set
    transpose: bool = False  # rows are features
    rows: Any = None  # of an array of three or more dimensions: names or numbers of those that count the rows
    header: str = "auto"  # csv, tsv: whether the first line holds names
    columns: Any = None  # names (or numbers, counted from 0) of the columns to read; null: all
    drop: Any = None  # names of columns to leave out
    decimal: str = "auto"  # csv, tsv: point or comma
    delimiter: str | None = None  # csv, tsv: one character, tab or space; null: recognised
    encoding: str | None = None  # csv, tsv: a name that Python knows; null: recognised
    missing: str = "refuse"  # missing values: refuse, drop (their rows), mean (of their column), ppca
    subject: Any = None  # column that says whose row it is: a subject's rows stay together
    missing_codes: Any = None  # values that stand for missing ones, such as 99 and -9
    clip: float | None = None  # each column is clipped to its quantiles clip and 1 − clip
    # Whether to interpret what a file says about its content: index columns, headers of numbers, fill values,
    # orientation and pages of pictures. False: take every value as stored.
    recognise: bool = True

    def __post_init__(self) -> None:
        if self.standardise is None:
            self.standardise = usual_standardise(self.name)
        self.path = _path(self.name, self.path)
        self.columns, self.drop, self.rows = (
            name_list(key, getattr(self, key)) for key in ("columns", "drop", "rows")
        )
        codes = _listed("missing_codes", self.missing_codes, int | float, "numbers, as in data.{key}=[99,-9]")
        self.missing_codes = None if codes is None else list(map(float, codes))
        for field, allowed in CHOICES.items():
            if field == "standardise" and self.standardise is None:
                continue
            choice(f"data.{field}", getattr(self, field), allowed)
        for field, (low, high) in RANGES.items():
            in_range(f"data.{field}", getattr(self, field), low, high)
        if self.whiten_rank is not None and self.whiten == "none":
            raise InputError(
                f"data.whiten_rank={self.whiten_rank}: set data.whiten=zca or data.whiten=pca with it"
            )
        in_range("data.scale_input", self.scale_input, 0, open_low=True)
        self.ordered = _ordered(self.ordered, self.name)
        _check_part(self)
        self.delimiter = _delimiter(self.delimiter)
        if self.encoding is not None:
            _check_encoding(self.encoding)


def _ordered(given: Any, kind: str) -> bool | str:
    """Return data.ordered as a truth value, or auto."""
    word = str(given).lower()
    choice("data.ordered", word, ("auto", "true", "false"))
    value = word if word == "auto" else word == "true"
    if value is True and kind in kinds_of("pixels"):
        raise InputError(
            f"data.ordered=true: windows of pictures are in no order of time; leave it out for data={kind}"
        )
    return value


def _check_part(cfg: "DataConfig") -> None:
    """Raise InputError for a part that is none, or that contradicts another key."""
    if cfg.part is not None:
        found = re.fullmatch(r"(\d+)/(\d+)", str(cfg.part))
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(
                f"data.part={cfg.part}: give a number and how many there are, as in data.part=1/2 or 2/5"
            )
        if cfg.half != "all":
            raise InputError(f"data.part={cfg.part}: not with data.half={cfg.half}; leave one of them out")
    if cfg.subject is not None and cfg.half != "all":
        raise InputError(
            f"data.subject={cfg.subject}: data.half={cfg.half} would part a subject; use data.part=1/2"
        )


def as_stored(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data group of a stored configuration; one without `recognise` (older) is read as it was then."""
    return {"recognise": False, **data} if "name" in data else data


def name_list(key: str, value: Any) -> list[str | int] | None:
    """Return columns as a list, from one name or several; raise InputError for anything else."""
    return _listed(key, value, str | int, "names, as in data.{key}=[height,weight]")


def _listed(key: str, value: Any, kinds: Any, wanted: str) -> list[Any] | None:
    """Return one value, or several, as a list; raise InputError where one is not of these kinds."""
    if value is None:
        return None
    found = list(value) if isinstance(value, list | tuple) else [value]
    if not found or not all(isinstance(one, kinds) and not isinstance(one, bool) for one in found):
        raise InputError(f"data.{key}={value}: give {wanted.format(key=key)}")
    return found


def _path(kind: str, given: Any) -> Any:
    """Return a path as text, or for data=array a list of paths."""
    if isinstance(given, list | tuple):
        if kind not in ("array", "moments") or not given or not all(isinstance(one, str) for one in given):
            raise InputError(
                f"data.path={list(given)}: give one path; only data=array and data=moments take a list of files"
            )
        return [str(one) for one in given]
    if isinstance(given, dict):
        raise InputError(f"data.path={given}: give the name of a file or folder")
    return None if given is None else str(given)


def _delimiter(given: str | None) -> str | None:
    """Return the delimiter as a character, also if it is given as a word such as tab."""
    meant = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|"}.get(
        given or "", given
    )
    if meant is not None and (len(meant) != 1 or meant in '"\r\n'):
        raise InputError(
            f"data.delimiter={given}: give one character, or a word: comma, semicolon, tab, space, bar"
        )
    return meant


def _check_encoding(name: str) -> None:
    try:
        "a".encode(name)  # from text to bytes: `hex` and its like are refused
    except (LookupError, ValueError):
        raise InputError(f"data.encoding={name}: no such encoding; try utf-8, cp1252 or utf-16") from None

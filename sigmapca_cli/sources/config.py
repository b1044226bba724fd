"""The typed schema of the `data` group: one flat dataclass for every kind of source, its ranges checked."""

from dataclasses import dataclass

from sigmapca_cli.errors import InputError
from sigmapca_cli.limits import is_finite, shown

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
}
# Field: (least allowed, most allowed); None is unbounded. Optional fields may also be null.
RANGES: dict[str, tuple[float | None, float | None]] = {
    "n": (2, None),
    "seed": (0, 2**32 - 1),
    "epsilon": (0, None),
    "patch": (0, None),
    "stride": (1, None),
    "images": (1, None),
    "p": (1, None),
    "k": (1, None),
    "group": (1, None),
    "noise": (0, None),
    "duration": (1e-9, None),
    "angle": (-360, 360),
}


@dataclass
class DataConfig:
    """Where x comes from. `name` picks the kind of source; each kind uses the fields its comment names."""

    name: str = "natural"
    path: str | None = None  # cifar10, cifar100, mnist, images, array, signals (WAV): file or folder
    seed: int = 0  # planted, signals, points, select=random
    n: int | None = None  # planted, signals, points: samples (null: the kind's own number)
    # every kind
    standardise: str = "feature"  # feature: (x − mean)/√(var + ε); none: x − mean
    epsilon: float | None = None  # ε; null: relative to the data's scale
    whiten: str = "none"
    scale_input: float = 1.0  # multiplies the standardised rows
    half: str = "all"  # disjoint halves of images or rows
    offline: bool = False  # never download
    # image kinds
    patch: int = 11  # 0: each whole image is a row
    stride: int = 1
    padding: str = "same"
    images: int | None = None  # how many images; null: all
    select: str = "first"
    grey: bool = False
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
    header: str = "auto"  # csv, tsv

    def __post_init__(self) -> None:
        for field, allowed in CHOICES.items():
            if getattr(self, field) not in allowed:
                raise InputError(f"data.{field}={getattr(self, field)}: choose one of {', '.join(allowed)}")
        for field, (low, high) in RANGES.items():
            _check_range(field, getattr(self, field), low, high)
        if not is_finite(self.scale_input) or self.scale_input <= 0:
            raise InputError(f"data.scale_input={self.scale_input}: give a finite number above 0")


def _check_range(field: str, value: float | None, low: float | None, high: float | None) -> None:
    if value is None:
        return
    if not is_finite(value):
        raise InputError(f"data.{field}={shown(value)}: give a finite number")
    if low is not None and value < low:
        raise InputError(f"data.{field}={value}: give at least {low:g}")
    if high is not None and value > high:
        raise InputError(f"data.{field}={value}: give at most {high:g}")

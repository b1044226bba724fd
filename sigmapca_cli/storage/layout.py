"""What stands where in run.h5: another program may have put a group, a text or another shape there."""

from collections.abc import Mapping

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.system.untrusted_hdf5 import Item

TEXTS = ("config", "overrides")
GROUPS = ("metrics", "evaluation", "evaluation/identifiability")
NAMES = ("feature_name", "grid_name")
NUMBERS = "biuf"


def check_layout(items: Mapping[str, Item]) -> None:
    """Raise ValueError, for `reading` to put into words, where an item has another kind or shape than the format says.

    items: the data sets and groups of the file by name. Arrays that share an axis (`format.ARRAYS`) have the same
    length along it. What the format does not name may be anything.
    """
    lengths: dict[str, tuple[int, str]] = {}
    for name, axes in fmt.ARRAYS.items():
        if name not in items:
            continue
        array = _data_set(items, name, len(axes), "" if name in NAMES else NUMBERS)
        for axis, length in zip(axes, array.shape or (), strict=True):
            known, first = lengths.setdefault(axis, (length, name))
            if length != known:
                raise ValueError(f"{name} has {length} {axis}s, {first} has {known}")
    for axis in (*lengths, "step"):
        if axis in items:
            _data_set(items, axis, 1, NUMBERS)
    for name in TEXTS:
        if name in items and _data_set(items, name, 0).dtype.kind not in "SO":
            raise ValueError(f"{name} holds no text")
    for name in GROUPS:
        if name in items and items[name].dtype is not None:
            raise ValueError(f"{name} is an array, where a group belongs")
    for name, dimensions in fmt.EVALUATION.items():
        if f"evaluation/{name}" in items:
            _data_set(items, f"evaluation/{name}", dimensions, NUMBERS)
    verdict, components = (
        items.get("evaluation/identifiability/verdict"),
        lengths.get("component", (0, ""))[0],
    )
    if verdict is not None and verdict.shape != (components, components):
        raise ValueError(f"evaluation/identifiability/verdict is not of {components} components")
    # Metrics are columns of one table.
    columns = [_data_set(items, name, 1, NUMBERS) for name in items if name.startswith("metrics/")]
    if len({column.shape for column in columns}) > 1:
        raise ValueError("the metrics differ in length")


def _data_set(items: Mapping[str, Item], name: str, dimensions: int | None, kinds: str = "") -> Item:
    """Return a data set that has so many dimensions, and values of one of NumPy's `kinds`."""
    item = items[name]
    if item.dtype is None:
        raise ValueError(f"{name} is a group, where an array belongs")
    if item.shape is None or dimensions not in (None, len(item.shape)):
        shape = "no values" if item.shape is None else f"{len(item.shape)} dimensions"
        raise ValueError(f"{name} has {shape}, where {dimensions} belong")
    if kinds and item.dtype.kind not in kinds:
        raise ValueError(f"{name} holds no numbers")
    return item

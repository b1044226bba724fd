"""Search for a data set: at the given path, in ./data, in $SIGMAPCA_DATA, else by download."""

import os
from pathlib import Path

from sigmapca_cli.system.errors import InputError, RunFailed
from sigmapca_cli.system.untrusted_files import refuse_special

ENVIRONMENT = "SIGMAPCA_DATA"


def existing(path: str, what: str) -> Path:
    """Return the given path; raise InputError if no file or folder is there. what: words for the expected data."""
    place = Path(path).expanduser()
    if not place.exists():
        raise InputError(f"data.path={path}: no such file or folder ({what})")
    refuse_special(place, f"data.path={path}")
    return place


def data_roots() -> list[Path]:
    """Return the folders to search, in order: ./data, then $SIGMAPCA_DATA."""
    named = os.environ.get(ENVIRONMENT)
    return [Path("data"), *([Path(named).expanduser()] if named else [])]


def search(names: tuple[str, ...]) -> Path | None:
    """Return the first of `names` that exists in a data root, or None."""
    for root in data_roots():
        for name in names:
            if (root / name).exists():
                return root / name
    return None


def locate(dataset: str, path: str | None, names: tuple[str, ...], offline: bool) -> Path:
    """Return the path of a data set; download it into the data folder if it is not found and `offline` is false."""
    if path is not None:
        return existing(path, dataset)
    found = search(names)
    if found is not None:
        return found
    places = " and ".join(str(root) for root in data_roots())
    ways = "give data.path=FOLDER_OR_ARCHIVE, or use data=natural, which needs no files"
    if offline:
        raise InputError(f"{dataset} is not in {places}, and data.offline=true forbids a download: {ways}")
    from sigmapca_cli.data.download import fetch_dataset

    try:
        return fetch_dataset(dataset, data_roots()[-1])
    except RunFailed as problem:
        raise InputError(
            f"{dataset} is not in {places} and could not be downloaded, {problem}; or {ways}"
        ) from None

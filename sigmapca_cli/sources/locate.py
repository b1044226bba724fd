"""Finding a data set: where the user says, in ./data, in $SIGMAPCA_DATA, else by download."""

import os
from pathlib import Path

from sigmapca_cli.errors import InputError, RunFailed

ENVIRONMENT = "SIGMAPCA_DATA"


def existing(path: str, what: str) -> Path:
    """The path the user gave, or an error that says what is missing."""
    found = Path(path).expanduser()
    if not found.exists():
        raise InputError(f"data.path={path}: no such file or folder ({what})")
    return found


def data_roots() -> list[Path]:
    """Folders searched, in order: ./data, then $SIGMAPCA_DATA."""
    named = os.environ.get(ENVIRONMENT)
    return [Path("data"), *([Path(named).expanduser()] if named else [])]


def search(names: tuple[str, ...]) -> Path | None:
    """The first of `names` that exists in a data root."""
    for root in data_roots():
        for name in names:
            if (root / name).exists():
                return root / name
    return None


def locate(dataset: str, path: str | None, names: tuple[str, ...], offline: bool) -> Path:
    """Where a data set lies; downloads it into the data folder when it is nowhere and `offline` is false."""
    if path is not None:
        return existing(path, dataset)
    found = search(names)
    if found is not None:
        return found
    places = " and ".join(str(root) for root in data_roots())
    ways = "give data.path=FOLDER_OR_ARCHIVE, or take data=natural, which needs nothing"
    if offline:
        raise InputError(f"{dataset} is not in {places}, and offline means no download: {ways}")
    from sigmapca_cli.sources.download import fetch_dataset

    try:
        return fetch_dataset(dataset, data_roots()[-1])
    except RunFailed as problem:
        raise InputError(
            f"{dataset} is not in {places} and could not be downloaded, {problem}; or {ways}"
        ) from None

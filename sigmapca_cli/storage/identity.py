"""What makes two runs the same run: the hash of everything that can change the result."""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from typing import Any

from sigmapca_cli.settings.gone_keys import GONE
from sigmapca_cli.settings.identity import AS_BEFORE, BY_THE_DATA, VOLATILE, YOUNGER
from sigmapca_cli.storage.find import UNREADABLE, RunSummary, summarise_folder
from sigmapca_cli.storage.folders import FOLDER_NAME, age_key, run_folders


def config_hash(config: Mapping[str, Any], volatile: Collection[str] | None = None) -> str:
    """SHA-256 (hex) of a resolved configuration in canonical JSON, without its volatile keys.

    Volatile keys say where and how a run is computed, not what; one with dots is nested. Keys that came later
    (YOUNGER) do not count at their defaults, keys that are GONE do not count at all, and a value that stands for an
    older one counts as that. The order of keys does not count, and lists and tuples are the same; 1 and 1.0 differ, as
    the typed schema makes one of them out of either. None takes the list that stands beside the schema.
    """
    left_out = {*GONE, *((*VOLATILE, *BY_THE_DATA) if volatile is None else volatile)}
    text = json.dumps(
        _without(config, left_out, ""),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        default=str,
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _without(value: Any, left_out: Collection[str], prefix: str) -> Any:
    if isinstance(value, dict | Mapping):  # dict first: asking an abstract class takes longer
        return {
            str(key): _without(_as_before(dotted, item), left_out, f"{dotted}.")
            for key, item in value.items()
            if (dotted := f"{prefix}{key}") not in left_out
            and not (dotted in YOUNGER and item == YOUNGER[dotted])
        }
    if isinstance(value, list | tuple):
        return [_without(item, GONE, "") for item in value]
    return value


def _as_before(key: str, value: Any) -> Any:
    stands_for = AS_BEFORE.get(key)
    return stands_for[1] if stands_for is not None and value == stands_for[0] else value


def find_by_hash(
    root: str | os.PathLike[str] | None, wanted: str, data_hash: str | None = None
) -> list[RunSummary]:
    """The runs of this configuration (and data, where given) under the outputs folder, oldest first.

    A folder's name carries the beginning of the hash, so only likely folders are opened. A run that was
    stopped before it wrote run.h5 is found by its name alone.
    """
    found = []
    for folder in sorted(run_folders(root), key=age_key):
        match = FOLDER_NAME.match(folder.name)
        if match and not wanted.startswith(match.group(2)):
            continue
        run = summarise_folder(folder)
        young = not run.attrs and match is not None and run.status != UNREADABLE
        same = young or run.attrs.get("config_hash") == wanted
        if same and (data_hash is None or run.attrs.get("data_hash", data_hash) == data_hash):
            found.append(run)
    return found

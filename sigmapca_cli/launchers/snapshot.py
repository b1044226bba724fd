"""A copy of the configuration folder in the sweep's folder.

Launchers compose the configuration in the job, which may be hours after the sweep was started: `conf/` edited while
jobs wait would change those jobs. So jobs compose from a copy, named by its content: an edited `conf/` gives the
jobs submitted from then on another copy, and what waits already keeps its own.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import read_bytes, refuse_link

FOLDER = ".conf"
DIGITS = 32  # hexadecimal digits of a name: too many for another content of the same name to be found


def snapshot(conf: Path, sweep: Path) -> Path:
    """Return the copy of `conf` in the sweep's folder, made if it is not there yet; it appears whole or not at all.

    A copy that is there is hashed again: the sweep's folder may come from a stranger, and a configuration is code.
    Raise InputError where it does not hold what its name says.
    """
    copies = sweep / FOLDER
    refuse_link(copies)
    name = content_hash(conf)
    if not (copies / name).is_dir():
        name = _make_copy(conf, copies)
    if content_hash(copies / name, ours=False) != name:
        raise InputError(
            f"{copies / name}: is not the copy of {conf} that its name says; remove it, and run again"
        )
    return copies / name


def content_hash(folder: Path, *, ours: bool = True) -> str:
    """Return the hash of the names and contents of the YAML files below a folder; only in `ours` links are followed."""
    digest = hashlib.sha256()
    found: list[Path] = []
    for place, folders, files in os.walk(folder, followlinks=ours):
        for name in () if ours else folders:
            refuse_link(Path(place, name))
        found += [Path(place, name) for name in files if name.endswith(".yaml")]
    for path in sorted(found):
        content = path.read_bytes() if ours else read_bytes(path)
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:DIGITS]


def _make_copy(conf: Path, copies: Path) -> str:
    """Copy the YAML files of `conf` to a new folder in one step and return its name; another process may be quicker."""
    copies.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".aside-", dir=copies) as aside:
        made = Path(shutil.copytree(conf, Path(aside, "conf"), ignore=_not_yaml))
        name = content_hash(made)
        with contextlib.suppress(OSError):
            made.rename(copies / name)
    return name


def _not_yaml(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".yaml") and not Path(folder, name).is_dir()]

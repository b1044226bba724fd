"""A copy of `conf/` in the sweep's folder.

Launchers compose the configuration in the job, which may be hours after the sweep was started: `conf/` edited while
jobs wait would change those jobs. So jobs compose from a copy, named by its content: an edited `conf/` gives the
jobs submitted from then on another copy, and what waits already keeps its own.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from sigmapca_cli.errors import InputError
from sigmapca_cli.untrusted_files import read_bytes, refuse_irregular, refuse_link

FOLDER = ".conf"
DIGITS = 32  # hexadecimal digits of a name: too many for another content of the same name to be found


def content_hash(folder: Path, *, only_yaml: bool = False) -> str:
    """Return the hash of the names and contents of the YAML files below a folder.

    With `only_yaml`, for a copy that somebody else may have written, raise InputError where the folder holds anything
    but plain YAML files and folders of them.
    """
    digest = hashlib.sha256()
    for path in _files(folder, only_yaml):
        if path.suffix == ".yaml":
            content = read_bytes(path) if only_yaml else path.read_bytes()
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + content + b"\0")
        elif only_yaml:
            raise InputError(f"{path}: is no configuration; remove it")
    return digest.hexdigest()[:DIGITS]


def _files(folder: Path, only_plain: bool) -> list[Path]:
    """Return all files below a folder, sorted; links are followed, or refused with `only_plain`."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder, followlinks=not only_plain):
        for name in [*folders, *files] if only_plain else []:
            (refuse_link if name in folders else refuse_irregular)(Path(place, name))
        found += [Path(place, name) for name in files]
    return sorted(found)


def snapshot(conf: Path, sweep: Path) -> Path:
    """Return the copy of `conf` in the sweep's folder, made if it is not there yet; it appears whole or not at all.

    A copy that is there is hashed again: the sweep's folder may come from a stranger, and a configuration can name
    code that Hydra runs. Raises InputError where it does not hold what its name says.
    """
    copies = sweep / FOLDER
    refuse_link(copies)
    name = content_hash(conf)
    if not (copies / name).is_dir():
        name = _make_copy(conf, copies)
    if content_hash(copies / name, only_yaml=True) != name:
        raise InputError(
            f"{copies / name}: is not the copy of {conf} that its name says; remove it, and run again"
        )
    return copies / name


def _make_copy(conf: Path, copies: Path) -> str:
    """Copy the YAML files of `conf` to a new folder in one step and return its name; another process may be quicker."""
    copies.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=copies))
    shutil.copytree(conf, aside, dirs_exist_ok=True, ignore=ignored)
    os.chmod(aside, 0o755)
    name = content_hash(aside)
    try:
        aside.rename(copies / name)
    except OSError:
        shutil.rmtree(aside)
        if not (copies / name).is_dir():
            raise
    return name


def ignored(folder: str, names: list[str]) -> list[str]:
    """Return all names of files that are not YAML."""
    return [name for name in names if not name.endswith(".yaml") and not Path(folder, name).is_dir()]

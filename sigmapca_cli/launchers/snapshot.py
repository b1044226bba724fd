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

FOLDER = ".conf"


def content_hash(folder: Path) -> str:
    """Hash of the names and contents of the YAML files below a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.yaml")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def snapshot(conf: Path, sweep: Path) -> Path:
    """The copy of `conf` in the sweep's folder, made if it is not there yet; it appears whole or not at all."""
    copy = sweep / FOLDER / content_hash(conf)
    if copy.is_dir():
        return copy
    copy.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=copy.parent))
    shutil.copytree(conf, aside, dirs_exist_ok=True, ignore=lambda folder, names: ignored(folder, names))
    os.chmod(aside, 0o755)
    try:
        aside.rename(copy)
    except OSError:  # another process was quicker
        shutil.rmtree(aside)
        if not copy.is_dir():
            raise
    return copy


def ignored(folder: str, names: list[str]) -> list[str]:
    """All files that are not YAML."""
    return [name for name in names if not name.endswith(".yaml") and not Path(folder, name).is_dir()]

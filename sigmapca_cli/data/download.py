"""Download of the public data sets: resumable, verified by a checksum, and moved into place in one step."""

import hashlib
import http.client
import logging
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from sigmapca_cli.data.build_once import made_once
from sigmapca_cli.system.atomic import move_whole, write_failed
from sigmapca_cli.system.errors import InputError, RunFailed

MIRROR = "SIGMAPCA_MIRROR"
Progress = Callable[[int, int | None], None]
CHUNK = 1 << 16

# Data set: base address, folder below the data root, {file: MD5 sum as published}.
DATASETS: dict[str, tuple[str, str, dict[str, str]]] = {
    "cifar10": (
        "https://www.cs.toronto.edu/~kriz",
        "",
        {"cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a"},
    ),
    "cifar100": (
        "https://www.cs.toronto.edu/~kriz",
        "",
        {"cifar-100-python.tar.gz": "eb9058c3a382ffc7106e4002c42a8d85"},
    ),
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "mnist",
        {
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
    ),
}


class _Interrupted(Exception):
    """The connection ended early or stalled; the received part is kept and the rest requested again."""


def file_md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _receive(url: str, part: Path, timeout: float, progress: Progress | None) -> None:
    """Append the missing bytes to `part`; start again if the server cannot resume."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            if response.status != 206:
                have = 0  # the server sends the whole file: start again
            length = response.headers.get("Content-Length")
            total = have + int(length) if length and length.strip().isdigit() else None
            with part.open("ab" if have else "wb") as file:
                while chunk := response.read(CHUNK):
                    file.write(chunk)
                    have += len(chunk)
                    if progress is not None:
                        progress(have, total)
            if total is not None and have < total:
                raise _Interrupted(f"it ended after {have} of {total} bytes")
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the part is complete already: the checksum decides
            return
        if error.code < 500 and error.code != 429:
            raise RunFailed(
                f"{url}: the server answers {error.code} {error.reason}: download it yourself and give data.path="
            ) from None
        raise _Interrupted(f"the server answers {error.code}") from None
    except (OSError, http.client.HTTPException) as error:  # refused, reset, timed out, cut off
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise _Interrupted(str(reason)) from None


def _receive_all(url: str, part: Path, timeout: float, attempts: int, progress: Progress | None) -> None:
    for attempt in range(1, attempts + 1):
        try:
            return _receive(url, part, timeout, progress)
        except _Interrupted as error:
            if attempt == attempts:
                raise RunFailed(f"{url} failed {attempts} times ({error}); run it again to resume") from None
            logging.getLogger("sigmapca").info("%s: %s, resuming", url, error)
            time.sleep(min(2.0 ** (attempt - 1), 30.0) * min(timeout, 1.0))


def download(
    url: str,
    target: Path,
    md5: str,
    progress: Progress | None = None,
    timeout: float = 30.0,
    attempts: int = 5,
) -> Path:
    """Download `url` to `target` unless `target` exists, and verify its MD5 sum; return `target`.

    An interrupted download leaves NAME.part, which the next call resumes. If the sum of a resumed file is wrong, the
    download starts once more from the beginning; if it is wrong again, the part is removed. Existing files never
    change. Raise RunFailed if the download fails, InputError for an address that is not http or https.
    """
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: the address must begin with http:// or https://")
    part = target.with_name(target.name + ".part")
    with made_once(target) as ours:
        if not ours:
            return target
        resumed = part.exists()
        try:
            _receive_all(url, part, timeout, attempts, progress)
            found = file_md5(part)
            if found != md5 and resumed:
                part.unlink()
                _receive_all(url, part, timeout, attempts, progress)
                found = file_md5(part)
            if found != md5:
                part.unlink()
                raise RunFailed(f"{url}: MD5 sum is {found}, must be {md5}: try again, or use another mirror")
            move_whole(part, target)
        except OSError as error:
            raise write_failed(target, error) from None
    return target


def fetch_dataset(dataset: str, root: Path, progress: Progress | None = None) -> Path:
    """Download a data set into `root`; return the path to read it from. $SIGMAPCA_MIRROR replaces the address."""
    if dataset not in DATASETS:
        raise InputError(f"{dataset} cannot be downloaded: choose one of {', '.join(DATASETS)}")
    base, folder, files = DATASETS[dataset]
    base = os.environ.get(MIRROR, base).rstrip("/")
    logging.getLogger("sigmapca").info("%s is not here: downloading from %s", dataset, base)
    for name, md5 in files.items():
        download(f"{base}/{name}", root / folder / name, md5, progress)
    return root / folder if folder else root / next(iter(files))

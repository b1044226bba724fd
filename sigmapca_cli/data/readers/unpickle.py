"""Safe reader of CIFAR's pickles: only arrays of bytes are rebuilt, and no code of the file runs.

A pickle is a program. Here it may name only five functions, each replaced by a harmless one. NumPy's own unpickling,
which takes field offsets and flags from the stream, is never called.
"""

import io
import pickle
from typing import Any

import numpy as np

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import reason

TYPES = {"u1": np.uint8, "i8": np.int64, "i4": np.int32}


class _ArrayMarker:
    """Replaces numpy.ndarray in the stream: it can be named, but not called."""


class _Array:
    """Replaces an array, until its state (version, shape, dtype, Fortran, bytes) is set."""

    value: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, content = state
        if not isinstance(kind, _Type) or not isinstance(content, bytes):
            raise pickle.UnpicklingError("an array that numpy would not have written")
        values = np.frombuffer(content, kind.dtype)
        self.value = values.reshape(tuple(int(side) for side in shape), order="F" if fortran else "C")


class _Type:
    """Replaces a dtype; of its state only the byte order matters for whole numbers."""

    def __init__(self, code: str) -> None:
        self.dtype = np.dtype(TYPES[code])

    def __setstate__(self, state: Any) -> None:
        if state[1] in (">", b">"):
            self.dtype = self.dtype.newbyteorder(">")


def _reconstruct(kind: Any, shape: Any, typecode: Any) -> _Array:
    if kind is not _ArrayMarker or tuple(shape) != (0,):
        raise pickle.UnpicklingError("an array that numpy would not have written")
    return _Array()


def _dtype(code: Any, *flags: Any) -> _Type:
    text = code.decode("ascii", "replace") if isinstance(code, bytes) else str(code)
    if text.lstrip("|") not in TYPES:
        raise pickle.UnpicklingError(f"an array of type {text[:20]!r}")
    return _Type(text.lstrip("|"))


def _encode(text: Any, encoding: Any) -> bytes:
    """Return a byte string that Python 3 wrote with protocol 2."""
    return str(text).encode("latin1")


_ADMITTED = {
    ("_codecs", "encode"): _encode,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _ArrayMarker,
    ("numpy", "dtype"): _dtype,
}


class RestrictedUnpickler(pickle.Unpickler):
    """Admits only the names that CIFAR's batches use, each as a harmless replacement."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _ADMITTED[module, name]


def restricted_load(content: bytes, where: str) -> dict[bytes, Any]:
    """Return the dictionary (bytes keys) in a CIFAR batch; raise InputError for other content, before any code runs."""
    try:
        loaded = RestrictedUnpickler(io.BytesIO(content), encoding="bytes").load()
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{where} is not a CIFAR batch and was not loaded ({reason(error)}): fetch it again"
        ) from None
    except Exception as error:  # a truncated or hostile stream can raise nearly anything
        text = f"{type(error).__name__}: {reason(error)}"
        raise InputError(f"{where} is truncated or damaged ({text}): fetch it again") from None
    if not isinstance(loaded, dict):
        raise InputError(f"{where} holds a {type(loaded).__name__}, not a CIFAR batch: fetch it again")
    found = {k.encode() if isinstance(k, str) else k: v for k, v in loaded.items()}
    if odd := next((k for k, v in found.items() if not _is_plain(v)), None):
        raise InputError(
            f"{where} has lists within lists at {str(odd)[:20]}: not a CIFAR batch, fetch it again"
        )
    return {k: v.value if isinstance(v, _Array) else v for k, v in found.items()}


def _is_plain(value: Any) -> bool:
    """Return whether a value is an array, a single value, or a list of these: a few bytes can nest a list 2ⁿ times."""
    single = (_Array, bytes, str, int, float, type(None))
    return isinstance(value, single) or (
        isinstance(value, list | tuple) and all(isinstance(item, single) for item in value)
    )

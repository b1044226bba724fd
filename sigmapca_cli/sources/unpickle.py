"""Reading CIFAR's pickles without trusting them: only a numpy byte array may be rebuilt, nothing may run."""

import io
import pickle
from typing import Any

import numpy as np

from sigmapca_cli.errors import InputError

_real_reconstruct: Any = np.zeros(0).__reduce__()[0]


class _ArrayMarker:
    """Stands for numpy.ndarray in the stream: it can be named, but not called."""


def _reconstruct(kind: Any, shape: Any, typecode: Any) -> Any:
    if kind is not _ArrayMarker or tuple(shape) != (0,):
        raise pickle.UnpicklingError("an array that numpy would not have written")
    return _real_reconstruct(np.ndarray, (0,), typecode)


def _dtype(code: Any, *flags: Any) -> Any:
    text = code.decode("ascii", "replace") if isinstance(code, bytes) else str(code)
    if text.lstrip("|") not in ("u1", "i8", "i4"):
        raise pickle.UnpicklingError(f"an array of type {text!r}")
    return np.dtype(text, *flags)


def _encode(text: Any, encoding: Any) -> bytes:
    """How Python 3 writes byte strings with protocol 2."""
    return str(text).encode("latin1")


_ADMITTED = {
    ("_codecs", "encode"): _encode,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _ArrayMarker,
    ("numpy", "dtype"): _dtype,
}


class RestrictedUnpickler(pickle.Unpickler):
    """Admits the names that CIFAR's batches hold, each as a harmless stand-in, and no other global."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _ADMITTED[module, name]


def restricted_load(content: bytes, where: str) -> dict[bytes, Any]:
    """The dictionary (bytes keys) in a CIFAR batch; InputError for anything else, before anything is run."""
    try:
        loaded = RestrictedUnpickler(io.BytesIO(content), encoding="bytes").load()
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{where} is not a CIFAR batch and was not loaded ({error}): fetch it again"
        ) from None
    except Exception as error:  # a truncated or hostile stream can raise nearly anything
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"{where} is truncated or damaged ({reason}): fetch it again") from None
    if not isinstance(loaded, dict):
        raise InputError(f"{where} holds a {type(loaded).__name__}, not a CIFAR batch: fetch it again")
    return {k.encode() if isinstance(k, str) else k: v for k, v in loaded.items()}

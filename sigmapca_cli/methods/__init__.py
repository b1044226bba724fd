"""The methods: losses, updates, the pieces they are composed of, and the catalogue that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigmapca_cli.methods.method import Method, make_method
    from sigmapca_cli.methods.notation import sg
    from sigmapca_cli.methods.solution import Solution, finalise

_WHERE = {
    "Method": "method",
    "make_method": "method",
    "Solution": "solution",
    "finalise": "solution",
    "sg": "notation",
}


def __getattr__(name: str) -> Any:
    # Looked up on first use: the catalogue must be importable without torch.
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


__all__ = ["Method", "Solution", "finalise", "make_method", "sg"]

"""σ-PCA: learning identifiable linear transformations, from the command line and from Python.

`import sigmapca_cli as sp` offers train, Run, runs, SigmaPCA, nn and the errors; docs/python.md shows them. Each is
imported when it is first used, so that importing the package takes no time.
"""

__version__ = "0.1.0"

__all__ = ["InputError", "Run", "RunFailed", "SigmaPCA", "SigmapcaError", "Stopped", "nn", "runs", "train"]

# The types of these names are in __init__.pyi.
_WHERE = {
    "train": "api.training",
    "Run": "api.run",
    "runs": "api.listing",
    "SigmaPCA": "sklearn",
    "SigmapcaError": "system.errors",
    "InputError": "system.errors",
    "RunFailed": "system.errors",
    "Stopped": "system.errors",
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # takes as long as all the rest

    if name == "nn":
        return import_module(f"{__name__}.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

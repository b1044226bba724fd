"""Matrices whose file annotates them: AnnData (.h5ad), 10x Genomics (.h5), and cells of labels in MATLAB 7.3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.readers.sparse_files import csr
from sigmapca_cli.system.untrusted_files import need_memory
from sigmapca_cli.system.untrusted_hdf5 import as_text, stored

TENX = {"barcodes", "data", "indices", "indptr", "shape"}


def is_anndata(file: Any) -> bool:
    """Return whether an HDF5 file is an h5ad file, of any version."""
    return as_text(file.attrs.get("encoding-type", "")) == "anndata" or {"X", "obs", "var"} <= set(file)


def features_of(file: Any, place: str, width: int) -> list[str] | None:
    """Return the names of the columns of one array of an h5ad file: the index of the var that belongs to it.

    That of raw/X is raw/var, that of X and of the layers is var; arrays of obsm and varm have none.
    """
    place = place.strip("/")
    owner = "raw/var" if place.startswith("raw/") else "var" if place.split("/")[0] in ("X", "layers") else ""
    return _index(file.get(owner), width) if owner else None


def samples_of(file: Any, count: int) -> list[str] | None:
    """Return the names of the rows of an h5ad file: the index of obs."""
    return _index(file.get("obs"), count)


def _index(frame: Any, length: int) -> list[str] | None:
    """Return the index of a data frame in an h5ad file as text; None if it is not there in full."""
    import h5py

    if not isinstance(frame, h5py.Group):
        return None
    found = frame.get(as_text(frame.attrs.get("_index", "_index")))
    names = None if found is None else list(_texts(found))
    return names if names is not None and len(names) == length else None


def _texts(found: Any) -> Iterator[str]:
    """Yield the strings of an array, of a categorical one, and of one with a mask of missing values."""
    import h5py

    if isinstance(found, h5py.Dataset):
        if found.ndim == 1 and found.dtype.kind in "SO":
            yield from (as_text(value) for value in stored(found)[...])
    elif {"codes", "categories"} <= set(found):
        words = list(_texts(found["categories"]))
        yield from (words[code] if 0 <= code < len(words) else "" for code in stored(found["codes"])[...])
    elif {"values", "mask"} <= set(found):
        yield from _texts(found["values"])


def tenx_group(file: Any) -> Any:
    """Return the group of counts of a 10x file, or None: genes × cells by columns, which is cells × genes by rows."""
    import h5py

    group = file.get("matrix")
    return group if isinstance(group, h5py.Group) and set(group) >= TENX else None


def from_tenx(path: Path, group: Any) -> tuple[Any, list[str] | None, list[str] | None]:
    """Return the counts (cells, genes) of a 10x file as compressed rows, the names of the genes, and the barcodes."""
    parts = [stored(group[name]) for name in ("data", "indices", "indptr")]
    need_memory(3.0 * sum(part.size * part.dtype.itemsize for part in parts), path, "save a part of it")
    genes, cells = (int(side) for side in stored(group["shape"])[...])
    data, indices, indptr = (part[...] for part in parts)
    matrix = csr(data, indices, indptr, (cells, genes), path)
    barcodes = list(_texts(group["barcodes"]))
    names = [list(_texts(group[key])) for key in ("features/name", "features/id") if key in group]
    names = [found for found in names if len(found) == genes]
    unique = next((found for found in names if len(set(found)) == genes), None)
    return matrix, unique, barcodes if len(barcodes) == cells else None


def cells_of_labels(file: Any) -> dict[str, list[str]]:
    """Return the cell arrays of texts in a MATLAB 7.3 file, by name: references to characters in #refs#."""
    import h5py

    found = {}
    for name, item in file.items():
        if not isinstance(item, h5py.Dataset) or as_text(item.attrs.get("MATLAB_class", "")) != "cell":
            continue
        texts = [_characters(file, reference) for reference in np.ravel(stored(item)[...])]
        if all(text is not None for text in texts):
            found[name] = [text or "" for text in texts]
    return found


def _characters(file: Any, reference: Any) -> str | None:
    """Return the text behind a reference of MATLAB; None if it is no text."""
    item = file[reference] if reference else None
    if item is None or as_text(item.attrs.get("MATLAB_class", "")) != "char" or item.size > 1 << 16:
        return None
    if item.attrs.get("MATLAB_empty", 0):
        return ""
    return bytes(np.ravel(stored(item)[...], "A").astype("<u2")).decode("utf-16-le", "replace")

"""python with_anndata.py FOLDER: cells × genes as scanpy writes them, which is by anndata; names may be missing."""

import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
from scipy import sparse

folder = Path(sys.argv[1])
anndata.settings.allow_write_nullable_strings = True  # names as pandas 3 has them
counts = np.floor(np.abs(np.arange(8)[:, None] * 1.5 + np.arange(3) * 0.25 - 4))
var = pd.DataFrame(index=["ENSG1", "ENSG2", "ENSG3"])
cells = anndata.AnnData(sparse.csr_matrix(counts), pd.DataFrame(index=[f"cell{i}" for i in range(8)]), var)
cells.raw = cells.copy()
cells = cells[:, ["ENSG3", "ENSG1"]].copy()
cells.layers["dense"] = cells.X.toarray() + 0.5
cells.write_h5ad(folder / "scanpy.h5ad")

"""python with_polars.py FOLDER: embeddings as polars writes them, and a table."""

import sys
from pathlib import Path

import numpy as np
import polars as pl

folder = Path(sys.argv[1])
values = np.arange(8)[:, None] * 1.5 + np.arange(3) * 0.25 - 4
columns = {"id": list(range(8)), "embedding": values.tolist()}
pl.DataFrame(columns, schema={"id": pl.Int64, "embedding": pl.Array(pl.Float64, 3)}).write_parquet(
    folder / "polars-array.parquet"
)
pl.DataFrame(values, schema=["height", "weight", "age"]).write_csv(folder / "polars.csv")

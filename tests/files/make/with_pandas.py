"""python with_pandas.py FOLDER: tables as pandas writes them."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

folder = Path(sys.argv[1])
values = np.arange(8)[:, None] * 1.5 + np.arange(3) * 0.25 - 4
frame = pd.DataFrame(values, columns=["height", "weight", "age"])
frame.to_csv(folder / "pandas.csv")
frame.to_csv(folder / "pandas-german.csv", sep=";", decimal=",", index=False, encoding="utf-8-sig")
people = pd.Index([3, 1, 4, 15, 9, 2, 6, 5], name="person")
frame.set_axis(people).to_parquet(folder / "pandas-index.parquet")
frame.assign(when=pd.date_range("2024", periods=8)).set_index("when").to_parquet(
    folder / "pandas-dates.parquet"
)

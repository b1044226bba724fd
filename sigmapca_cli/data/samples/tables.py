"""Tables with known components: a questionnaire, spectra, returns, embeddings, counts of cells, sensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sound:
    """Tracks recorded at once, one a microphone, at `rate` numbers a second, between -1 and 1."""

    rate: int
    tracks: dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Sample:
    """Data of a field and the components they were made of.

    content: a table, tracks, or windows of pictures (n, rows, columns). truth: features × components, in the units of
    the data: component j adds truth[:, j] times its value to a row. words: sizes, for a line of the terminal.
    """

    content: pd.DataFrame | Sound | NDArray[np.uint8]
    truth: pd.DataFrame
    words: str


def frame(values: NDArray[Any], features: list[str], components: list[str]) -> pd.DataFrame:
    """Return true directions (p, k) as a table."""
    return pd.DataFrame(values, index=pd.Index(features, name="feature"), columns=components)


def questionnaire(rng: np.random.Generator) -> Sample:
    """Return answers of 400 people: four factors of six items each, with an id, sex and age, and 99 for no answer."""
    factors = ["calm", "social", "careful", "curious"]
    items = [f"{name}{i}" for name in factors for i in range(1, 7)]
    loadings = np.kron(np.eye(4), np.linspace(0.8, 0.6, 6)[:, None])
    people = rng.standard_normal((400, 4))
    sex = rng.choice(["female", "male"], 400)
    people[:, 1] += np.where(sex == "female", 0.6, -0.6)
    people[:, 1] /= people[:, 1].std()
    noise = np.sqrt(1 - (loadings**2).sum(axis=1))
    answers = people @ loadings.T + noise * rng.standard_normal((400, 24))
    table = pd.DataFrame(np.clip(np.rint(3 + 1.1 * answers), 1, 5).astype(int), columns=items)
    table = table.mask(rng.random(table.shape) < 0.01, 99)
    table.insert(0, "id", [f"P{i:03d}" for i in range(1, 401)])
    table.insert(1, "sex", sex)
    table.insert(2, "age", rng.integers(18, 80, 400))
    return Sample(table, frame(loadings, items, factors), "400 people × 24 answers from 1 to 5 for 4 factors")


def spectra(rng: np.random.Generator) -> Sample:
    """Return 80 infrared spectra, mixtures of four compounds with two bands each, named by wavenumbers."""
    at = np.arange(4000, 640, -10)
    bands = {"water": (3400, 1640), "fat": (2920, 1745), "protein": (3070, 1545), "sugar": (1150, 1030)}

    def band(centre: float) -> Array:
        return np.asarray(np.exp(-0.5 * ((at - centre) / (90 if centre > 3200 else 35)) ** 2))

    pure = np.stack([band(a) + 0.8 * band(b) for a, b in bands.values()], axis=1)
    shares = rng.gamma(2.0, 0.5, (80, 4)) * [1.6, 1.2, 1.0, 0.8]
    rows = shares @ pure.T + 0.3 + 0.01 * rng.standard_normal((80, len(at)))
    names = [str(number) for number in at]
    table = pd.DataFrame(rows.round(5), columns=names)
    table.insert(0, "sample", [f"S{i:02d}" for i in range(1, 81)])
    table.insert(1, "batch", np.where(np.arange(80) < 40, "north", "south"))
    return Sample(table, frame(pure, names, list(bands)), "80 spectra of 4 compounds at 336 wavenumbers")


def returns(rng: np.random.Generator) -> Sample:
    """Return 1500 daily returns of 30 shares: a market and three long-short factors with heavy tails."""
    shares = [f"{sector}{i:02d}" for sector in ("BNK", "TEC", "OIL") for i in range(1, 11)]
    sign = np.tile([1.0, -1.0], 15)
    sectors = np.repeat(np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -2.0]]), 10, axis=0)
    styles = np.column_stack([np.ones(30), sectors, sign])
    directions = styles / np.linalg.norm(styles, axis=0)
    sizes = np.array([0.055, 0.030, 0.022, 0.016])
    factors = rng.standard_t(4, (1500, 4)) / np.sqrt(2) * sizes
    rows = factors @ directions.T + 0.006 * rng.standard_normal((1500, 30))
    table = pd.DataFrame(rows.round(6), columns=shares)
    table.insert(0, "date", pd.bdate_range("2018-01-01", periods=1500).strftime("%Y-%m-%d"))
    names = ["market", "bank-tech", "oil", "style"]
    return Sample(table, frame(directions, shares, names), "1500 days × 30 shares, 4 factors")


def embeddings(rng: np.random.Generator) -> Sample:
    """Return 2000 sentence vectors of 128 numbers: ten sparse concepts of different strength, and noise."""
    directions = np.linalg.qr(rng.standard_normal((128, 10)))[0]
    concepts = rng.laplace(scale=np.sqrt(0.5), size=(2000, 10)) * np.repeat([0.30, 0.22], 5)
    rows = concepts @ directions.T + 0.03 * rng.standard_normal((2000, 128))
    names = [f"e{i}" for i in range(128)]
    table = pd.DataFrame(rows.round(6), columns=names)
    table.insert(0, "text", [f"sentence {i}" for i in range(2000)])
    concept = [f"concept{i + 1}" for i in range(10)]
    return Sample(table, frame(directions, names, concept), "2000 texts × 128 numbers, 10 concepts")


def counts(rng: np.random.Generator) -> Sample:
    """Return counts of 90 genes in 600 cells: five programs of twelve genes each, switched on in some cells."""
    genes = [f"gene{i:02d}" for i in range(90)]
    programs = np.zeros((90, 5))
    for j in range(5):
        programs[12 * j : 12 * (j + 1), j] = rng.uniform(0.5, 1.5, 12)
    on = rng.random((600, 5)) < 0.3
    rates = 0.5 + (on * rng.gamma(3.0, 1.0, (600, 5)) * [8.0, 7.0, 6.0, 5.0, 4.0]) @ programs.T
    table = pd.DataFrame(rng.poisson(rates), columns=genes)
    table.insert(0, "cell", ["".join(rng.choice(list("ACGT"), 12)) for _ in range(600)])
    table.insert(1, "type", [f"type{i}" for i in np.where(on.any(axis=1), on.argmax(axis=1) + 1, 0)])
    names = [f"program{j + 1}" for j in range(5)]
    return Sample(table, frame(programs, genes, names), "600 cells × 90 genes, 5 programs")


def sensors(rng: np.random.Generator) -> Sample:
    """Return 800 rows of twelve sensors for four causes, with a class and the number of the row."""
    directions = np.linalg.qr(rng.standard_normal((12, 4)))[0]
    rows = rng.laplace(size=(800, 4)) * [2.0, 2.0, 1.2, 1.2] @ directions.T + 0.1 * rng.standard_normal(
        (800, 12)
    )
    names = [f"sensor{i}" for i in range(1, 13)]
    table = pd.DataFrame(rows.round(5), columns=names)
    table.insert(0, "id", range(1, 801))
    table["machine"] = rng.integers(1, 4, 800)
    causes = [f"cause{j}" for j in range(1, 5)]
    return Sample(table, frame(directions, names, causes), "800 rows × 12 sensors, 4 causes")

"""What the page of a file makes of data of each field: the task, the number of components, what is no data."""

import shlex

import numpy as np
import pandas as pd
import pytest
from array_sources import source_of
from scipy.io import wavfile

from sigmapca_cli.data.cleaning.codes import codes_in
from sigmapca_cli.data.cleaning.outliers import scales_in_words
from sigmapca_cli.data.describe.adequacy import bartlett, kmo
from sigmapca_cli.data.describe.describe import describe
from sigmapca_cli.data.n_components import advised

RNG = np.random.default_rng(0)


def recording():
    """Five channels of three sources, one channel in a row."""
    t = np.arange(5000) / 250
    sources = np.stack(
        [np.sin(20 * np.pi * t), np.sign(np.sin(8 * t)), np.cumsum(RNG.standard_normal(5000)) / 30]
    )
    return pd.DataFrame(RNG.standard_normal((5, 3)) @ sources + 0.05 * RNG.standard_normal((5, 5000)))


def sensors():
    """800 rows of twelve sensors for four sources, with seconds and a class."""
    rows = RNG.laplace(size=(800, 4)) @ RNG.standard_normal((4, 12)) + 0.1 * RNG.standard_normal((800, 12))
    return (
        pd.DataFrame(rows).add_prefix("s").assign(seconds=np.arange(800) * 0.5, kind=RNG.integers(0, 3, 800))
    )


def measurements():
    """500 rows with -9999 for 5 % of the values."""
    rows = pd.DataFrame(RNG.standard_normal((500, 6)) @ RNG.standard_normal((6, 6)) * 3 + 10).add_prefix("m")
    return rows.mask(RNG.random(rows.shape) < 0.05, -9999)


FIELDS = {
    # a table: (task, k, words of the command)
    recording: ("separation", (3,), ("data.transpose=true", "solver=independence")),
    sensors: ("table", (4,), ("data.drop=[kind,seconds]", "solver=independence")),
    measurements: ("table", (4, 5, 6), ("data.missing_codes=-9999", "data.missing=mean")),
}


@pytest.mark.parametrize("field", FIELDS, ids=lambda make: make.__name__)
def test_a_field_gets_its_task_its_k_and_its_command(tmp_path, field):
    task, ks, words = FIELDS[field]
    bare = field is recording
    field().to_csv(tmp_path / "a.csv", index=False, header=not bare)
    facts, _ = describe(tmp_path / "a.csv", **({"header": "no"} if bare else {}))
    assert facts["task"] == task and facts["k"] in ks
    assert set(words) <= set(shlex.split(facts["command"]))
    assert ("data.standardise=feature" in facts["command"]) == ("data.standardise=feature" in words)
    assert ("model=lica" in facts["command"]) != ("model=lica" in facts["other"])


def test_a_coded_sex_is_no_item_and_items_of_yes_and_no_are(tmp_path):
    answers = pd.DataFrame(RNG.integers(1, 6, (300, 12))).add_prefix("q")
    answers.assign(sex=RNG.integers(1, 3, 300)).to_csv(tmp_path / "a.csv", index=False)
    assert "data.drop=sex" in shlex.split(describe(tmp_path / "a.csv")[0]["command"])
    yes = (answers.iloc[:, :6] > 3).astype(int)
    pd.concat([yes, answers.iloc[:, 6:]], axis=1).to_csv(tmp_path / "b.csv", index=False)
    assert "drop" not in describe(tmp_path / "b.csv")[0]["command"]


def test_many_channels_of_few_sources_get_few_components(tmp_path):
    for count, k in ((8, 3), (3, 3)):
        sound = RNG.laplace(size=(8000, 3)) @ RNG.standard_normal((3, count))
        sound += 0.01 * RNG.standard_normal(sound.shape)
        for i, track in enumerate(sound.T):
            (tmp_path / f"{count}").mkdir(exist_ok=True)
            wavfile.write(
                tmp_path / f"{count}" / f"{i}.wav", 8000, (track / np.abs(sound).max()).astype("f4")
            )
        assert describe(tmp_path / f"{count}")[0]["k"] == k


@pytest.mark.parametrize("colours", [(), (3,)])
def test_arrays_of_pixels_are_pictures_and_no_counts(tmp_path, colours):
    seen = RNG.standard_normal((500, 8, 8, *colours)).cumsum(axis=1).cumsum(axis=2)
    pixels = np.clip(128 + 20 * seen, 0, 255).astype(np.uint8)
    np.save(tmp_path / "a.npy", pixels)
    facts, found = describe(tmp_path / "a.npy")
    assert found is not None and facts["task"] == "patches" and found.cfg.rows == [0]
    noise = RNG.standard_normal(pixels.shape)
    np.save(tmp_path / "b.npy", noise)
    assert describe(tmp_path / "b.npy")[0]["task"] == "alike"


def test_rows_without_any_structure_keep_their_rows(tmp_path):
    np.save(tmp_path / "a.npy", RNG.standard_normal((40, 900)))  # few rows, many columns: no curves
    facts, _ = describe(tmp_path / "a.npy")
    assert facts["task"] == "alike" and "transpose" not in facts["command"]


def genes():
    """Counts of 400 genes in 150 cells of three kinds, each with 30 genes of its own."""
    random = np.random.default_rng(5)
    rate = random.gamma(0.6, 1.5, (1, 400)) * np.ones((3, 1))
    for kind in range(3):
        rate[kind, 30 * kind : 30 * kind + 30] += 6
    return random.poisson(rate[random.integers(0, 3, 150)] * random.lognormal(0, 0.3, (150, 1)))


def test_counts_with_a_gene_in_each_row_are_transposed(tmp_path):
    np.save(tmp_path / "cells.npy", genes())
    np.save(tmp_path / "genes.npy", genes().T)
    facts, _ = describe(tmp_path / "genes.npy")
    assert "data.transpose=true" in facts["command"] and facts["features"] == 400
    facts, _ = describe(tmp_path / "cells.npy")
    assert "transpose" not in facts["command"] and facts["task"] == "counts"
    few = np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(0.5, 2, (900, 1)) * np.ones(12))
    np.save(tmp_path / "few.npy", few)  # a common cause in few columns
    assert "transpose" not in describe(tmp_path / "few.npy")[0]["command"]


def test_a_gap_before_the_last_directions_is_no_number_of_components():
    values = np.exp(-0.01 * np.arange(100))
    values[:4], values[-1] = [50.0, 20.0, 12.0, 6.0], 0.3
    found = {"eigenvalues": values, "mdl": 40, "95 %": 80, "parallel": 4}
    assert advised(found, 100, 1000)[0] == 4
    assert advised({**found, "parallel": 1}, 100, 1000)[0] == 4


def test_curves_over_wavelengths_have_one_scale(tmp_path):
    waves = np.linspace(400, 700, 40)
    table = RNG.standard_normal((60, 40)) * np.exp(-0.5 * ((waves - 550) / 40) ** 2)
    assert scales_in_words(source_of(saved(tmp_path / "a.csv", table, waves))) is None
    words = [f"w{wave:.0f}" for wave in waves]
    assert scales_in_words(source_of(saved(tmp_path / "b.csv", table, words)))


def test_rows_that_are_copies_of_others_are_named(tmp_path):
    rows = np.random.default_rng(0).standard_normal((100, 5))
    for name, table in {
        "once": rows,
        "copied": np.repeat(rows, 6, axis=0),
        "answers": RNG.integers(1, 4, (600, 3)),
    }.items():
        np.save(tmp_path / f"{name}.npy", table)
    found = {name: describe(tmp_path / f"{name}.npy")[0]["copies"] for name in ("once", "copied", "answers")}
    assert found["copied"].startswith("500 of 600 rows") and not found["once"] and not found["answers"]


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y"])
def test_dates_count_the_time_however_they_are_written(tmp_path, written):
    days = pd.bdate_range("2019-01-02", periods=300).strftime(written)
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 4))).add_prefix("r")
    table.insert(0, "Date", days)
    table.to_csv(tmp_path / "a.csv", index=False)
    source = source_of(tmp_path / "a.csv", drop=["Date"])
    assert source.timed and not source.pieces


def saved(path, table, names):
    pd.DataFrame(table, columns=names).to_csv(path, index=False)
    return str(path)


def test_values_far_away_are_codes_only_if_they_return():
    x = RNG.integers(1, 6, (200, 4)).astype(float)
    assert codes_in(x) == []
    x[0, 0] = 1000.0  # one error
    assert codes_in(x) == []
    x[:3, 1] = x[5:8, 2] = 77.0
    assert codes_in(x) == [77.0]
    x[:3, 3] = -9.0
    assert codes_in(x) == [-9.0, 77.0]
    x[20:23, 2:], x[25:29, 2:], x[30:32, 2:] = 97.0, 98.0, 99.0  # reasons why there is no answer
    assert codes_in(x) == [-9.0, 77.0, 97.0, 98.0, 99.0]
    heavy = RNG.standard_t(1.5, (500, 5)).round(6)
    assert codes_in(heavy) == []


def test_codes_become_missing_values(tmp_path):
    x = RNG.integers(1, 6, (50, 3))
    x[3, 1] = x[7, 2] = 99
    np.save(tmp_path / "a.npy", x)
    source = source_of(tmp_path / "a.npy", missing_codes=[99], missing="drop")
    assert source.n == 48 and max(block.max() for block in source.blocks(raw=True)) == 5


def test_kmo_and_bartlett_are_those_of_factor_analyzer():
    peer = pytest.importorskip("factor_analyzer.factor_analyzer")
    x = RNG.standard_normal((200, 2)) @ RNG.standard_normal((2, 7)) + RNG.standard_normal((200, 7))
    R = np.corrcoef(x.T)
    assert kmo(R) == pytest.approx(peer.calculate_kmo(x)[1])
    statistic, _, p = bartlett(R, 200)
    np.testing.assert_allclose((statistic, p), peer.calculate_bartlett_sphericity(x), rtol=1e-2)


def test_of_noise_the_page_says_that_no_direction_stands_out(tmp_path):
    rng = np.random.default_rng(0)
    noise, place = rng.standard_normal((400, 8)), tmp_path / "rows.npy"
    np.save(place, noise)
    facts, _ = describe(place)
    assert facts["task"] == "alike" and facts["k"] == 8 and facts["other"] is None
    np.save(place, noise + rng.standard_normal((400, 2)) @ rng.standard_normal((2, 8)))
    facts, _ = describe(place)
    assert facts["task"] == "table" and facts["k"] == 2


def test_weekdays_months_and_hours_count_the_rows_and_answers_do_not(tmp_path):
    """Days of which some are missing; a column of seven numbers in no order may be a measurement among counts."""
    rng, days = np.random.default_rng(0), pd.date_range("2022-01-01", periods=1200)
    counts = pd.DataFrame(rng.poisson(40, (1200, 6)), columns=list("abcdef"))
    calendar = {"weekday": days.weekday, "month": days.month, "level": rng.integers(0, 7, 1200)}
    table = counts.assign(**calendar)[rng.random(1200) > 0.05]
    table.to_csv(tmp_path / "days.csv", index=False)
    facts, found = describe(tmp_path / "days.csv")
    assert facts["rising"] == ["weekday", "month"] and found.cfg.drop == ["weekday", "month"]


def test_a_column_of_subjects_keeps_their_rows_together(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.repeat(2 * rng.normal(size=(20, 4)), 30, axis=0) + 0.5 * rng.normal(size=(600, 4))
    pd.DataFrame(rows).add_prefix("m").assign(person=np.repeat(np.arange(20), 30)).to_csv(tmp_path / "a.csv")
    facts, found = describe(tmp_path / "a.csv")
    assert facts["subject"] == "person" and found.cfg.subject == "person" and facts["rising"] == []
    assert found.source.by_subject and "person" not in found.source.names

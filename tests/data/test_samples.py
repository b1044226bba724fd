"""Data of each field whose truth is known: the command that the page prints reaches it, run as printed."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mechanisms import every
from scipy.io import wavfile

from sigmapca_cli.cli.sample import FIELDS
from sigmapca_cli.data.describe.describe import describe
from sigmapca_cli.data.samples import fields
from sigmapca_cli.evaluation.matching import cosines, match
from sigmapca_cli.solution.loadings import loadings_of, rotated
from sigmapca_cli.system.frames import write_frame

FOUND = {
    # a field: (file, task, k, words of the command)
    "questionnaire": (
        "a.csv",
        "items",
        4,
        {
            "data.drop=[id,sex,age]",
            "data.missing_codes=99",
            "data.standardise=feature",
            "model=factor_analysis",
        },
    ),
    "spectra": ("a.csv", "spectra", 4, {"data.drop=[sample,batch]", "solver=independence"}),
    "eeg": ("a.csv", "separation", 4, {"data.drop=time", "model=lica", "solver=independence"}),
    "sound": ("a", "separation", 3, {"data=signals", "data.mix=false", "model=lica"}),
    "returns": ("a.csv", "table", 4, {"data.drop=date", "solver=independence"}),
    "embeddings": ("a.parquet", "table", 10, {"data.drop=text", "solver=independence"}),
    "counts": ("a.csv", "counts", 5, {"data.drop=[cell,type]", "solver=independence"}),
    "patches": ("a.npy", "patches", 12, {"data.rows=0", "solver=independence"}),
    "table": ("a.csv", "table", 4, {"data.drop=machine", "solver=independence"}),
}


@pytest.mark.parametrize("field", every(FIELDS, ["questionnaire", "spectra", "sound"]))
def test_the_printed_command_reaches_the_truth(field, tmp_path, monkeypatch, train):
    monkeypatch.chdir(tmp_path)
    name, task, k, words = FOUND[field]
    made = fields.make(field, seed=1)
    fields.write(made, Path(name))
    facts, _ = describe(name)
    printed = shlex.split(facts["command"])[2:]
    assert (facts["task"], facts["k"]) == (task, k) and words <= set(printed), facts["command"]
    run = train(*printed)
    loadings = loadings_of(run)
    if facts["task"] == "items":
        pytest.importorskip("factor_analyzer")
        assert facts["then"].endswith("--rotate varimax --halves")
        loadings = rotated(loadings, "varimax")
    features = run.names or list(made.truth.index)
    found = cosines(loadings.values * np.asarray(run.scale)[:, None], made.truth.loc[features].to_numpy())
    rows, columns = match(found)
    assert len(columns) == k and found[rows, columns].min() > 0.95


def test_every_field_has_a_sample_and_another_seed_other_numbers():
    assert set(fields.FIELDS) == set(FIELDS) == set(FOUND)
    one, two = fields.make("table"), fields.make("table", seed=1)
    assert not one.content.equals(two.content) and one.content.equals(fields.make("table").content)


def test_the_command_writes_data_and_truth_and_the_next_command(sigmapca, tmp_path):
    done = sigmapca("sample", "sound", "room")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "  sigmapca data room"
    assert sorted(path.name for path in (tmp_path / "room").iterdir()) == [
        f"microphone{i}.wav" for i in (1, 2, 3)
    ]
    truth = pd.read_csv(tmp_path / "room_truth.csv", index_col=0)
    pd.testing.assert_frame_equal(truth, fields.make("sound").truth)
    assert sigmapca("sample", "sound", "room").returncode == 2  # they exist


def test_uncorrelated_tracks_are_sources_and_are_mixed(tmp_path):
    for i in range(2):
        track = np.random.default_rng(i).laplace(size=4000)
        wavfile.write(tmp_path / f"{i}.wav", 8000, (3000 * track).clip(-32768, 32767).astype(np.int16))
    facts, _ = describe(tmp_path)
    assert facts["tracks"].startswith("hardly") and "mix" not in facts["command"]


def test_names_in_a_row_of_numbers_beside_columns_of_words_are_names(tmp_path):
    made = fields.make("spectra").content
    write_frame(made, tmp_path / "s.csv", index=False)
    facts, _ = describe(tmp_path / "s.csv")
    assert facts["samples"] == 80 and list(facts["left_out"]) == ["sample", "batch"]


def test_causes_that_share_features_are_dependent_components_and_the_second_command_finds_them(
    tmp_path, monkeypatch, train, capsys
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    exposures = np.column_stack([np.ones(12), np.repeat([1.0, 0.0], 6), np.tile([1.0, 0.0], 6)])
    factors = rng.laplace(size=(3000, 3)) * [1.0, 0.9, 0.8]
    pd.DataFrame(factors @ exposures.T + 0.2 * rng.standard_normal((3000, 12))).add_prefix("s").to_csv(
        "a.csv", index=False
    )
    facts, _ = describe("a.csv")
    least = []
    for name in ("command", "other"):
        run = train(*shlex.split(facts[name])[2:])
        assert ("model=lica" in capsys.readouterr().out) == (name == "command")
        found = cosines(loadings_of(run).values, exposures)
        least.append(found[match(found)].min())
    assert least[0] < 0.9 and least[1] > 0.98

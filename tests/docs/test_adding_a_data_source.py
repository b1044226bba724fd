"""The source that docs/adding-a-data-source.md builds: tested as all are, and trained on."""

import sys
from types import ModuleType

import numpy as np
import pytest
import yaml
from adding_pages import battery, blocks_of, copied_conf, first_test, lines_of, mistyped, train, unformatted

from sigmapca_cli import data
from sigmapca_cli.data import config
from sigmapca_cli.data.cache.preparing import prepare
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.storage.identity import config_hash
from sigmapca_cli.system.errors import InputError

BLOCKS = blocks_of("adding-a-data-source.md")
MODULE, ROW, SETTINGS, TEST = BLOCKS


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Put the pieces of the page where it says; the fields of its file."""
    monkeypatch.chdir(tmp_path)
    conf = copied_conf(tmp_path, monkeypatch)
    (conf / "data" / "bars.yaml").write_text(SETTINGS, encoding="utf-8")
    module = ModuleType("sigmapca_cli.data.synthetic.bars")
    exec(MODULE, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name, kind in eval("{" + ROW + "}", vars(config)).items():
        monkeypatch.setitem(config.KINDS, name, kind)
    return yaml.safe_load(SETTINGS)["data"]


def test_the_page_makes_a_source_in_under_45_lines(added):
    assert lines_of(BLOCKS) < 45
    first_test(TEST)(train)


def test_it_passes_the_tests_of_all_sources(added, tmp_path):
    tests = battery("data", "test_config.py")
    tests.FILES["bars"] = added
    tests.test_every_yaml_holds_every_field_its_builder_reads("bars", tmp_path, tmp_path)
    tests.test_the_command_and_the_class_have_the_same_defaults("bars")
    tests.FILES["bars"] = {name: value for name, value in added.items() if name != "patch"}
    with pytest.raises(AssertionError):
        tests.test_every_yaml_holds_every_field_its_builder_reads("bars", tmp_path, tmp_path)


def test_its_rows_are_bars_and_its_truth_says_which(added):
    source = data.build(DataConfig(**{**added, "n": 500}))
    raw = source.take(np.arange(500), raw=True).reshape(500, 8, 8)
    on = source.truth.sources.astype(bool)
    assert source.patch_shape == (8, 8, 1) and on.mean() == pytest.approx(1 / 8, abs=0.01)
    expected = on[:, :8, None] | on[:, None, 8:]
    np.testing.assert_allclose(raw, expected, atol=1e-6)


def test_its_hash_names_the_data(added):
    """The same settings, the same hash; another seed, half or scale, another one."""
    made = {
        repr(change): data.build(DataConfig(**{**added, "n": 200, **change})).hash
        for change in ({}, {"seed": 1}, {"half": "odd"}, {"scale_input": 2.0}, {"patch": 9})
    }
    assert len(set(made.values())) == len(made)
    assert data.build(DataConfig(**{**added, "n": 200})).hash == made["{}"]


def test_it_is_prepared_completed_and_refused_as_others_are(added, tmp_path):
    from sigmapca_cli.cli.completion import overrides

    prepared = prepare(DataConfig(**{**added, "n": 200}), tmp_path / "bars.h5")
    again = data.build(DataConfig(name="prepared", path=str(prepared)))
    assert again.hash and again.truth.sources.shape == (200, 16)
    assert ("data=bars", "") in list(overrides("data=b"))
    with pytest.raises(InputError, match="data=bars reads no file"):
        data.build(DataConfig(**{**added, "path": "x.npy"}))
    with pytest.raises(InputError, match="data=bars needs"):
        data.build(DataConfig(**{**added, "n": 10**13}))


def test_a_field_that_is_not_among_the_younger_ones_changes_every_hash(monkeypatch):
    """What the page warns of."""
    from sigmapca_cli.settings.identity import YOUNGER

    stored = {"data": {"name": "planted", "seed": 0}}
    young = {"data": {**stored["data"], "thickness": 1}}
    assert config_hash(young) != config_hash(stored)
    monkeypatch.setitem(YOUNGER, "data.thickness", 1)
    assert config_hash(young) == config_hash(stored)


def test_what_the_page_writes_is_formatted_and_typed(tmp_path):
    assert not unformatted(MODULE, tmp_path)
    assert not mistyped(MODULE, tmp_path)
    assert "incompatible type" in mistyped(MODULE.replace("np.float64)", "np.float32)"), tmp_path)
    assert not unformatted("KINDS = {\n    " + ROW + "}\n", tmp_path)

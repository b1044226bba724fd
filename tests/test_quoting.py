"""Any value passes through a suggested command, a shell and Hydra's grammar unchanged."""

import shlex

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from sigmapca_cli.settings.quoting import override, shell_word
from sigmapca_cli.system.errors import InputError

PARSER = OverridesParser.create()
SIGNS = st.text(st.sampled_from("ab1./\\'\"$${}[],=: \t-~_+#%*@?|éNuUlLtTrR"), max_size=8).filter(
    lambda t: t != "???"
)


def read(word: str) -> object:
    """Return the value of an override as a composed configuration has it."""
    parsed = PARSER.parse_override(word)
    assert not parsed.is_sweep_override()
    resolved = OmegaConf.to_container(OmegaConf.create({"value": parsed.value()}), resolve=True)
    return resolved["value"]


@settings(max_examples=40, deadline=None)
@given(SIGNS | st.lists(SIGNS, max_size=3) | st.integers() | st.booleans() | st.none())
def test_every_value_comes_back(value):
    (word,) = shlex.split(shell_word("data.path", value))
    assert word == override("data.path", value) and read(word) == value


@pytest.mark.parametrize(
    "value", ["null", "True", "inf", "${a}", "\\${a}", "a\\", "\\\\server\\x", "la\\bel", "1e5"]
)
def test_words_that_mean_something_else_stay_words(value):
    assert read(override("note", value)) == value


def test_numbers_and_dictionaries():
    assert read(override("k", np.int64(5))) == 5 and read(override("a", np.float32(0.5))) == 0.5
    assert read(override("regularisers", {"symmetric": 1.0})) == {"symmetric": 1.0}
    with pytest.raises(InputError, match="a=object"):
        override("a", object())


def test_a_suggested_command_works_for_a_name_with_a_backslash(tmp_path, sigmapca):
    (tmp_path / "t.csv").write_text("x,la\\bel\n" + "".join(f"{i % 7}.5,word{i}\n" for i in range(40)))
    train = ["train", "data=array", f"data.path={tmp_path}/t.csv", "model=pca_svd", f"outputs={tmp_path}/o"]
    refused = sigmapca(*train)
    assert refused.returncode == 2
    suggested = next(word for word in shlex.split(refused.stderr) if word.startswith("data.drop="))
    assert sigmapca(*train, suggested).returncode == 0

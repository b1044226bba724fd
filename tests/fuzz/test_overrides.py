"""What is typed behind `sigmapca train`: any text is a configuration, or one line that says why not."""

import contextlib
import io
import os

import pytest
from fuzz_corpus import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sigmapca_cli.cli.completion import candidates
from sigmapca_cli.composition.compose import compose_job
from sigmapca_cli.settings.keys import known_keys
from sigmapca_cli.system.errors import SigmapcaError

KEYS = st.sampled_from(
    [*known_keys(), "model", "hydra/launcher", "hydra.run.dir", "+x", "~data", "", "data.", "a.b.c"]
)
VALUES = st.one_of(
    st.sampled_from([
        "1", "-1", "0", "nan", "inf", "1e999", "1e-300", "null", "''", "[]", "{}", "[1,2", "{a:1}", "${a}", "${b}",
        "${oc.env:HOME}", "true", "auto", "choice(1,2)", "range(3)", "a,b", "'", '"', "\\", "=", "???", "9" * 400,
        "${${a}}", "nlpca", "../x", "!!python/x",
    ]),
    st.text(max_size=12),
    st.integers().map(str),
    st.floats().map(str),
)  # fmt: skip
OVERRIDE = st.one_of(
    st.tuples(KEYS, VALUES).map("=".join),
    st.sampled_from([value.rstrip("=") for value, _ in candidates(["train"], "")]),
    st.text(max_size=20),
)


@pytest.mark.filterwarnings("ignore")
def test_any_override_is_taken_or_refused_in_one_line(tmp_path, monkeypatch, watched):
    monkeypatch.chdir(tmp_path)

    @settings(
        max_examples=examples(40),
        deadline=None,
        database=None,
        derandomize=not os.environ.get("SIGMAPCA_FUZZ"),
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(OVERRIDE, min_size=1, max_size=3))
    def one(overrides: list[str]) -> None:
        overrides = [text for text in overrides if not text.startswith("-")]  # an option, which Typer judges
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                compose_job(overrides)
        except SigmapcaError as problem:
            assert problem.exit_status == 2 and str(problem).strip()
        assert not said.getvalue()

    one()

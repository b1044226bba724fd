"""docs/glossary.md: the words that it must have, each with a place that exists and holds what it names."""

import re

import pytest
from adding_pages import REPOSITORY

DOCS = REPOSITORY / "docs"
ROW = re.compile(r'^\| <a id="([\w-]+)"></a>([^|]+) \| ([^|]+) \| ([^|]+) \|$', re.M)
ROWS = {
    word.strip(): (meaning, where)
    for _, word, meaning, where in ROW.findall((DOCS / "glossary.md").read_text("utf-8"))
}
WORDS = {
    "run", "job", "sweep", "group", "rank", "component", "filter", "encoder", "decoder", "direction", "optimizer state",
    "checkpoint", "step", "stage", "epoch", "window", "recipe", "solver", "source", "truth", "verdict", "certificate",
    "converged", "identified",
}  # fmt: skip


def missing(where: str) -> list[str]:
    """Return what a place names and is not there: a page, a file, a name in the file."""
    found = [page for page in re.findall(r"\]\(([^)#]+)", where) if not (DOCS / page).exists()]
    names, paths = [], []
    for word in re.findall(r"`([^`]+)`", where):
        (paths if "/" in word or word.endswith(".py") else names).append(word)
    files = [
        REPOSITORY / path if path.startswith("conf/") else REPOSITORY / "sigmapca_cli" / path
        for path in paths
    ]
    found += [str(file) for file in files if not file.exists()]
    text = "".join(file.read_text("utf-8") for file in files if file.is_file())
    return found + [
        name for name in names if not re.search(rf"\b(class|def) {name.rpartition('.')[2]}\b", text)
    ]


def test_it_has_the_words_of_the_field_and_of_the_program():
    assert set(ROWS) >= WORDS


def test_a_word_has_one_or_two_facts_and_a_place_that_exists():
    for word, (meaning, where) in ROWS.items():
        assert not missing(where), word
        plain = re.sub(r"\([^)]*\)", "", meaning)  # what is said of another use of the word
        assert 1 <= len(re.findall(r"[.:](?= |$)", plain)) <= 4, word


def test_a_place_that_is_not_there_is_found():
    assert (
        missing(
            "[x](nowhere.md), `Truth` in `data/synthetic/planted.py`, `storage/nowhere.py`, `conf/nowhere/`"
        )
        != []
    )
    assert missing("`Truth` in `data/synthetic/planted.py`") == ["Truth"] and not missing(
        "`Truth` in `data/truth.py`"
    )


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/concepts.md"])
def test_the_pages_for_beginners_link_it(page):
    assert "glossary.md)" in (REPOSITORY / page).read_text("utf-8")


@pytest.mark.parametrize("page", ["a-nonlinearity", "a-data-source", "a-method", "an-experiment"])
def test_the_pages_on_adding_things_are_linked(page):
    for place in ("README.md", "CONTRIBUTING.md"):
        assert f"docs/adding-{page}.md)" in (REPOSITORY / place).read_text("utf-8")

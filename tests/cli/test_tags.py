"""Tags and notes of runs: shown, filtered, and no part of what makes two runs the same."""

import json

import pytest

from sigmapca_cli.cli.runs import select, text_of
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.system.errors import InputError

SMALL = ("data=planted", "data.n=500", "data.p=6", "data.k=2", "data.group=1", "k=2", "model=pca_svd")


@pytest.fixture
def outputs(train, tmp_path):
    train(*SMALL, "tags=[pilot,v2]", "note='[red]the first one'")
    train(*SMALL, "tags=pilot")
    train(*SMALL)
    return str(tmp_path / "outputs")


def test_runs_are_found_by_their_tags(outputs):
    rows, columns = select(outputs, None, None, None)
    assert [row["tags"] for row in rows] == [["pilot", "v2"], ["pilot"], None]
    assert columns[3] == "tags" and columns[-1] == "note"
    assert len({row["run"].split("_")[2] for row in rows}) == 1  # one configuration, three folders
    assert "pilot,v2" in text_of(rows, columns, True) and "[red]the first one" in text_of(rows, columns, True)
    for tags, where, count in (
        (["pilot"], None, 2),
        (["pilot", "v2"], None, 1),
        (["v3"], None, 0),
        ((), "tags==v2", 1),
        ((), "tags!=v2", 2),
        ((), "tags==pilot and tags!=v2", 1),
        ((), "tags>v2", 0),
        (["pilot"], "note=='[red]the first one'", 1),
    ):
        assert len(select(outputs, where, None, None, tags)[0]) == count, (tags, where)
    json.dumps(rows)
    assert text_of([], columns, False, filtered=True) == "no run matches"


def test_tables_without_tags_are_as_before(train, tmp_path):
    train(*SMALL)
    assert not {"tags", "note"} & set(select(str(tmp_path / "outputs"), None, None, None)[1])


@pytest.mark.parametrize("tags", [["a,b"], [""], ["x" * 65], ["two\nlines"], ["\x1b[31m"]])
def test_what_is_no_tag(tags):
    with pytest.raises(InputError, match="a tag has 1 to 64 signs"):
        Config(tags=tags)

"""docs/architecture.md names files, functions and tests: they are there."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "sigmapca_cli"
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")


def places():
    """Return every path that the page names, as `runner/lifecycle.py` or `conf/model/`."""
    named = re.findall(r"`([\w./]+(?:\.py|/))`", PAGE)
    return sorted(set(named) - {".py"})


@pytest.mark.parametrize("place", places())
def test_every_place_exists(place):
    found = [root / place for root in (PACKAGE, REPOSITORY) if (root / place).exists()]
    assert found or list(PACKAGE.rglob(place)), place


@pytest.mark.parametrize(
    ("names", "place"), re.findall(r"((?:`\w+`(?: and )?)+) in `([\w/]+\.py)`", PAGE), ids=str
)
def test_every_function_is_where_the_page_says(names, place):
    tree = ast.parse((PACKAGE / place).read_text("utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert set(re.findall(r"\w+", names)) - {"and"} <= defined


def test_every_room_is_drawn():
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    drawn = set(re.findall(r"<b>(\w+)/</b>", PAGE))
    assert rooms == drawn

"""docs/architecture.md names files, functions and tests: they are there."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "sigmapca_cli"
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")


def places():
    """Return every path that the page names, as `runner/lifecycle.py` or `conf/model/`."""
    named = re.findall(r"`([\w./]+(?:\.py|/))`", PAGE)
    return sorted(set(named) - {".py"})


def test_every_place_exists():
    missing = [
        place
        for place in places()
        if not any((root / place).exists() for root in (PACKAGE, REPOSITORY))
        and not list(PACKAGE.rglob(place))
    ]
    assert not missing


def test_every_function_is_where_the_page_says():
    for names, place in re.findall(r"((?:`\w+`(?: and )?)+) in `([\w/]+\.py)`", PAGE):
        file = next(PACKAGE.rglob(place))
        tree = ast.parse(file.read_text("utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert set(re.findall(r"\w+", names)) - {"and"} <= defined, place


def test_every_room_is_drawn():
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    drawn = set(re.findall(r"<b>(\w+)/</b>", PAGE))
    assert rooms == drawn

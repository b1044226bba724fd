"""A page is whole in itself, and what it is given stays text."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sigmapca_cli.figures.save import new_figure
from sigmapca_cli.report.page import (
    Axis,
    Cell,
    Code,
    Details,
    Gallery,
    Panel,
    Picture,
    Pictures,
    Section,
    Table,
    Text,
    Verdict,
    Verdicts,
    data_uri,
    render,
    write_page,
)
from sigmapca_cli.system.errors import InputError

HOSTILE = "<script>alert('1')</script> & \"quoted\" {{ 7 * 7 }}"
VOID = {"meta", "link", "input", "img"}


class Reader(HTMLParser):
    """Collects the elements and their text; fails where one is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.addresses += [
            value for name, value in attrs if name in ("src", "href", "action", "data", "srcset")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(page: str) -> Reader:
    """The page's elements, all of them closed."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def everything(text: str) -> list[Section]:
    """One of each block, with a text wherever a text can stand."""
    svg = Picture('<svg viewBox="0 0 1 1"></svg>', "", text, svg=True)
    return [
        Section(
            text, [Text(text), Verdicts([Verdict(text, True), Verdict(text, False, text), Verdict(text)])]
        ),
        Section(
            "b", [Picture(data_uri(b"PNG", "image/png"), text, text), Pictures([svg, svg], [("#000", text)])]
        ),
        Section("c", [Table(text, [text, "n"], [[text, 1.5], [Cell(text, 2.0, "#s-b", 0.5), None]])]),
        Section("d", [Gallery([Axis(text, [text, "2"])], [Panel((0,), text, [Text(text)], 1)])]),
        Section("e", [Details(text, [Code(text)], "here")]),
    ]


def test_texts_are_escaped_everywhere():
    page = render(HOSTILE, everything(HOSTILE), HOSTILE)
    reader = read(page)
    plain = read(render("x", everything("x"), "x"))
    assert reader.names == plain.names  # no element came out of a text
    assert "49" not in page
    assert sum(HOSTILE in text for text in reader.texts) > 15


def test_nothing_is_loaded_from_elsewhere():
    page = render("t", everything("x"))
    for address in read(page).addresses:
        assert address.startswith(("data:", "#"))
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|https?://", page)


def test_every_link_inside_leads_somewhere():
    page = render("t", everything("x y"))
    anchors = set(re.findall(r' id="([^"]*)"', page))
    assert {a[1:] for a in read(page).addresses if a.startswith("#")} <= anchors


def test_pictures_from_files_are_embedded(tmp_path: Path):
    file = tmp_path / "f.png"
    new_figure(1, 1).savefig(file)
    picture = Picture.from_file(file, "an empty figure")
    file.unlink()
    assert picture.source.startswith("data:image/png;base64,iVBOR")
    with pytest.raises(InputError, match="not a picture"):
        Picture.from_file(tmp_path / "f.pdf", "")


def test_cells_show_numbers_and_gaps():
    assert Cell.of(float("nan")) == Cell("–")
    assert Cell.of(None) == Cell("–")
    assert Cell.of(0.123456789) == Cell("0.12346", 0.123456789)
    assert Cell.of(12345) == Cell("12,345", 12345.0)
    assert Cell.of("10") == Cell("10", 10.0)
    assert Cell.of("nlpca") == Cell("nlpca")
    assert Table("", ["a", "b"], [["1", "x"], ["–", "2"]]).numeric == [True, False]


def test_a_page_replaces_the_one_before(tmp_path: Path):
    target = tmp_path / "new folder" / "page.html"
    write_page(target, "first", [])
    assert write_page(target, "second", [Section("s", [Text("t")])]) == target
    assert "<title>second</title>" in target.read_text()
    assert [file.name for file in target.parent.iterdir()] == ["page.html"]

"""Pages made from the catalogue and the commands are what these say; the site is strict and loads nothing else."""

import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sigmapca_cli.methods.catalogue import CATALOGUE

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
LARGEST = 1_500_000  # bytes of all pictures of methods


def script(name, folder=DOCS / "make"):
    """Return a script of docs/make as a module."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = script("pages")


def test_made_pages_are_up_to_date():
    """Else: make pages."""
    stale = [
        path for path, text in PAGES.pages().items() if not path.exists() or path.read_text("utf-8") != text
    ]
    assert not stale
    assert {path.stem for path in (DOCS / "methods").glob("*.md")} == {*CATALOGUE, "index"}


def test_another_equation_or_option_makes_another_page(monkeypatch, capsys):
    from sigmapca_cli.cli import runs

    monkeypatch.setitem(CATALOGUE, "nlpca", replace(CATALOGUE["nlpca"], identifies="nothing|at all"))
    assert r"| identifies | nothing\|at all |" in PAGES.pages()[DOCS / "methods" / "nlpca.md"]
    assert PAGES.main(["--check"]) == 1
    assert capsys.readouterr().out.split() == ["docs/methods/index.md", "docs/methods/nlpca.md"]
    *others, watch = runs.runs.__defaults__
    changed = type(watch)(default=False, param_decls=["--look"], help="Look again.")
    monkeypatch.setattr(runs.runs, "__defaults__", (*others, changed))
    assert "| `--look` | Look again. |" in PAGES.commands_page()


def test_every_command_and_option_is_in_the_reference():
    from typer.main import get_command

    from sigmapca_cli.cli.app import app

    text = (DOCS / "commands.md").read_text("utf-8")
    for name, command in get_command(app).commands.items():
        section = text.partition(f"## sigmapca {name}\n")[2].partition("\n## ")[0]
        for option in (flag for p in command.params for flag in p.opts if flag.startswith("--")):
            assert f"`{option}" in section, (name, option)


def test_every_method_has_a_picture_and_all_are_small():
    pictures = {path.stem: path.stat().st_size for path in (DOCS / "methods").glob("*.png")}
    assert set(pictures) == set(CATALOGUE)
    assert sum(pictures.values()) < LARGEST


def test_a_page_shows_the_settings_of_its_method():
    text = (DOCS / "methods" / "rica.md").read_text("utf-8")
    assert "| `model.beta_0` | `0.14` |" in text and "| `nonlinearity` | `identity` |" in text


def test_a_picture_shows_filters_with_the_brightness_of_their_weights(tmp_path):
    import io

    import numpy as np
    from PIL import Image

    drawing = script("method_pictures")

    class Stored:
        """A run's directions; the first filter is +1 and −1, the second one is zero."""

        directions = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
        patch_shape = (2, 2, 1)

    page = np.asarray(Image.open(io.BytesIO(drawing.picture(Stored()))).convert("L"))
    z = drawing.ZOOM
    assert page.shape == (2 * z, 5 * z)
    assert [page[0, 0], page[0, z], page[z, 0], page[0, 2 * z], page[0, 3 * z]] == pytest.approx(
        [255, 0, 128, 255, 128], abs=1
    )


def test_links_out_of_docs_lead_to_pages_of_the_site_or_are_names():
    hooks = script("hooks")
    text = "[a](../README.md) [b](data.md#x) [c](../examples/slurm/one_run.sh) [d](https://x.org/y)"
    assert hooks.relinked(text, DOCS, at_root=False) == (
        "[a](index.md) [b](data.md#x) c (`examples/slurm/one_run.sh`) [d](https://x.org/y)"
    )
    assert (
        hooks.relinked("[m](../../CONTRIBUTING.md)", DOCS / "methods", at_root=False)
        == "[m](../contributing.md)"
    )
    assert hooks.relinked("[q](docs/quickstart.md)", REPOSITORY, at_root=True) == "[q](quickstart.md)"


def test_the_drawing_of_the_rooms_has_their_layers():
    drawn = script("hooks").drawn('    a["<b>A</b>"]\n    b["B"]\n    c["C"]\n    a --> b & c\n    b --> c\n')
    assert [re.findall(r">(<b>A</b>|B|C)<", line) for line in drawn.splitlines()] == [
        ["<b>A</b>"],
        ["B"],
        ["C"],
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built strictly."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason=f"skipped: {package} is not installed (the extra docs)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_loads_nothing_from_elsewhere(site):
    loading = re.compile(r"""<(?:script|img|iframe)\b[^>]*\bsrc=["']?(?:https?:)?//|"""
                         r"""<link\b(?![^>]*rel=["']?canonical)[^>]*\bhref=["']?(?:https?:)?//""")  # fmt: skip
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(CATALOGUE)
    assert not [page.name for page in pages if loading.search(page.read_text("utf-8"))]
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"""(?:url\(|@import\s*)["']?(?:https?:)?//""", styles)


def test_the_site_is_searchable_and_has_every_public_name(site):
    entries = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    places = {entry["location"] for entry in entries}
    assert {f"methods/{name}.html" for name in CATALOGUE} <= places and "commands.html" in places
    public = script("test_docstrings", Path(__file__).parent)
    said = " ".join(entry["text"] for entry in entries if entry["location"].startswith("fields.html"))
    assert all(word in said for word in ("EEG", "loading", "scree", "topography", "exposures"))
    missing = [name for name in public.public_names() if f"api.html#{name}" not in places]
    assert not missing


@pytest.mark.full
def test_steps_with_code_between_them_keep_their_numbers(site):
    page = (site / "adding-a-method.html").read_text("utf-8")
    assert [f'<ol start="{number}">' in page for number in (2, 3, 4, 5)] == [True] * 4

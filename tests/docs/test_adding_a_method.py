"""The method that docs/adding-a-method.md builds: it is built from that page, trained, and its test is run."""

import importlib
import textwrap

import pytest
from adding_pages import battery, blocks_of, copied_conf, first_test, lines_of, train, unformatted

from sigmapca_cli.methods import catalogue, objectives, registry
from sigmapca_cli.reproduce import tables

BLOCKS = blocks_of("adding-a-method.md")
EQUATION, REFERENCE, SETTINGS, TOLD, TEST = BLOCKS


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Put the pieces of the page where it says."""
    monkeypatch.chdir(tmp_path)
    space = vars(objectives)
    before = set(space)
    exec(EQUATION, space)
    names = set(space) - before
    row = eval(TOLD, vars(catalogue))
    monkeypatch.setitem(catalogue.CATALOGUE, row.name, row)
    conf = copied_conf(tmp_path, monkeypatch)
    (conf / "model" / f"{row.name}.yaml").write_text(SETTINGS, encoding="utf-8")
    yield
    for name in names:
        del space[name]
        registry.OBJECTIVES.pop(name, None)


def test_the_page_makes_a_method_in_under_40_lines(added):
    assert lines_of(BLOCKS) < 40
    first_test(TEST)(train)


def test_its_equation_passes_the_battery(added):
    """The written-out equation of the page against the function of the page; a wrong sign in either must fail."""
    equations = battery("methods", "test_equations.py")
    references = importlib.import_module("methods_references")
    space = {"np": references.np}
    exec(REFERENCE, space)
    references.Reference.main_robust = space["main_robust"]
    batch = equations.batch.__wrapped__()
    equations.test_value_and_gradient_are_those_of_the_written_out_equation("main_robust", batch)
    references.Reference.main_robust = lambda self, W: -space["main_robust"](self, W)
    with pytest.raises(AssertionError):
        equations.test_value_and_gradient_are_those_of_the_written_out_equation("main_robust", batch)


def test_what_the_page_writes_is_formatted(tmp_path):
    """As ruff formats it where the page says that it goes."""
    indented = textwrap.indent(TOLD, "    ").rstrip()
    text = f"_ROWS = [\n{indented},\n]\n\n\n{EQUATION.rstrip()}\n\n\nclass Reference:\n"
    text += textwrap.indent(REFERENCE, "    ")
    assert not unformatted(text, tmp_path)


def test_a_method_of_ones_own_is_no_row_of_the_paper_s_table(added):
    """`reproduce nonlinear-summary` shows the paper's twenty-four, whatever else the catalogue holds."""
    assert "nlpca_robust" in catalogue.CATALOGUE
    assert len(tables.rows_of(catalogue.NONLINEAR)) == 24 and len(tables.rows_of(catalogue.LINEAR)) == 14

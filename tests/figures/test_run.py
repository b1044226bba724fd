"""The figures of a run, from objects like those that a run file gives."""

from types import SimpleNamespace

import numpy as np
import pytest
from shell import run_command

from sigmapca_cli.cli.plot import FIGURES
from sigmapca_cli.figures import plot_run
from sigmapca_cli.figures.curves import plot_curves, running_mean
from sigmapca_cli.figures.run import NAMES
from sigmapca_cli.figures.save import new_figure, save
from sigmapca_cli.figures.style import Style
from sigmapca_cli.system.errors import InputError


@pytest.fixture
def run():
    generator = np.random.default_rng(0)
    return SimpleNamespace(
        filters=generator.standard_normal((12, 3)),
        sigma=np.array([30.0, 2.0, 1.0]),
        patch_shape=np.array([2, 2, 3]),
        metrics={"step": np.arange(500), "loss": generator.random(500), "mcc": np.full(500, np.nan)},
        evaluation={"pca_sigma": np.array([31.0, 2.0, 0.9])},
        attrs={"model": "nlpca", "seed": 0},
    )


def test_everything_that_suits_is_written_as_png_and_pdf(run, tmp_path):
    written = plot_run(run, tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in written)
    assert {"filters.png", "filters.pdf", "curves.png", "spectrum.pdf"} <= {p.name for p in written}


def test_what_is_asked_for_and_only_that(run, tmp_path):
    assert [p.name for p in plot_run(run, tmp_path, ["spectrum"])] == ["spectrum.png", "spectrum.pdf"]
    with pytest.raises(InputError, match="no figure named 'filtres'"):
        plot_run(run, tmp_path, ["filtres"])


def test_the_command_names_the_figures_there_are():
    assert FIGURES == NAMES


def test_a_run_without_metrics_has_no_curves(run, tmp_path):
    run.metrics = {}
    written = plot_run(run, tmp_path, style=Style(formats=("png",)))
    assert written and not any(p.name.startswith("curves") for p in written)
    with pytest.raises(InputError, match="curves cannot be drawn for the run"):
        plot_run(run, tmp_path, ["curves"])


def test_curves_leave_out_what_is_never_finite(run):
    figure = plot_curves(run.metrics)
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss (square of units of x)"]


def test_running_mean_keeps_a_line_a_line():
    np.testing.assert_allclose(running_mean(np.arange(10.0), 3), np.arange(1.0, 9.0))


def test_a_failed_save_leaves_the_old_file(tmp_path):
    figure = new_figure()
    save(figure, tmp_path / "a", ("png",))
    before = (tmp_path / "a.png").read_bytes()
    with pytest.raises(ValueError):
        save(figure, tmp_path / "a", ("png",), dpi=-1)
    assert (tmp_path / "a.png").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


def test_the_same_figure_is_the_same_file(run, tmp_path):
    first, second = (plot_run(run, tmp_path / name, ["curves"]) for name in "12")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_no_pyplot_is_loaded(tmp_path):
    code = """
import sys
from sigmapca_cli.figures.filters import plot_filters
from sigmapca_cli.figures.save import save
save(plot_filters([[1.0], [2.0]], [1.0]), "a")
open("loaded", "w").write(str("matplotlib.pyplot" in sys.modules))
"""
    run_command(("--version",), tmp_path, {}, before=code)
    assert (tmp_path / "loaded").read_text() == "False"

"""The nonlinearity that docs/adding-a-nonlinearity.md builds: tested as all are, trained, and solved with."""

import numpy as np
import pytest
from adding_pages import battery, blocks_of, copied_conf, first_test, lines_of, train, unformatted

from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.methods import config, nonlinearities
from sigmapca_cli.solvers.newton import scores
from sigmapca_cli.system.errors import InputError

BLOCKS = blocks_of("adding-a-nonlinearity.md")
FUNCTION, SETTINGS, SCALED, SCORE, ROW, TEST = BLOCKS
DATA = ("data=planted", "data.n=4000", "data.p=16", "data.k=4", "data.group=2", "k=4")


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Put the pieces of the page where it says."""
    monkeypatch.chdir(tmp_path)
    conf = copied_conf(tmp_path, monkeypatch)
    (conf / "nonlinearity" / "arctan.yaml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.setattr(nonlinearities, "REGISTRY", nonlinearities.REGISTRY.copy())
    monkeypatch.setattr(nonlinearities, "arctan", None, raising=False)
    exec(FUNCTION, vars(nonlinearities))
    space = dict(vars(config))
    exec(SCALED, space)
    new = space["SCALED"] - config.SCALED
    config.SCALED |= new
    monkeypatch.setattr(scores, "arctan", None, raising=False)
    exec(SCORE, vars(scores))
    for key, score in eval("{" + ROW + "}", vars(scores)).items():
        monkeypatch.setitem(scores.SCORES, key, score)
    yield
    config.SCALED -= new


def test_the_page_makes_a_nonlinearity_in_under_30_lines(added):
    assert lines_of(BLOCKS) < 30
    first_test(TEST)(train)


def test_its_derivatives_pass_the_tests_of_all(added, monkeypatch):
    """A wrong sign in h′ or in φ′ must fail."""
    equations = battery("methods", "test_equations.py")
    solver = battery("solvers", "test_newton.py")
    key = ("arctan", "true")
    equations.test_dh_is_the_derivative_of_h("arctan")
    solver.test_scores_state_their_derivatives(key)
    h, phi = nonlinearities.REGISTRY["arctan"], scores.SCORES[key]
    monkeypatch.setitem(nonlinearities.REGISTRY, "arctan", lambda *of: (h(*of)[0], -h(*of)[1]))
    monkeypatch.setitem(scores.SCORES, key, lambda *of: (phi(*of)[0], -phi(*of)[1]))
    with pytest.raises(AssertionError):
        equations.test_dh_is_the_derivative_of_h("arctan")
    with pytest.raises(AssertionError):
        solver.test_scores_state_their_derivatives(key)


def test_its_score_is_that_of_its_function(added):
    """φ = (z − h)h′ of the same h, at more than one a."""
    z = np.linspace(-4, 4, 41)[:, None]
    for a in (0.7, 3.0):
        h, slope = (
            np.asarray(v) for v in nonlinearities.REGISTRY["arctan"](nonlinearities.torch.tensor(z), a)
        )
        found = scores.lookup("arctan", "true")(z, np.full(1, a))[0]
        np.testing.assert_allclose(found, (z - h) * slope, atol=1e-12)


def test_the_solver_and_training_agree_and_a_counts(added):
    trained = train("nonlinearity=arctan", "a=3", "epochs=40", *DATA)
    solved, other = (train("nonlinearity=arctan", f"a={a}", "solver=newton", *DATA) for a in (3, 0.3))
    assert agreement(trained.filters, solved.filters).mean > 0.999
    assert solved.evaluation["a"].tolist() == [3.0] * 4
    assert not np.allclose(solved.filters, other.filters, atol=1e-3)


def test_without_its_file_the_name_is_refused_and_without_its_score_the_solver(added, monkeypatch):
    with pytest.raises(InputError, match=r"nonlinearity=arctann: .*did you mean arctan"):
        config.NonlinearityConfig("arctann")
    monkeypatch.delitem(scores.SCORES, ("arctan", "true"))
    with pytest.raises(InputError, match="no score for nonlinearity=arctan"):
        train("nonlinearity=arctan", "a=3", "solver=newton", *DATA)


def test_completion_and_help_know_it(added):
    from sigmapca_cli.cli.completion import overrides
    from sigmapca_cli.cli.static_help import group_lines

    assert ("nonlinearity=arctan", "") in list(overrides("nonlinearity=ar"))
    assert "arctan" in " ".join(group_lines())


def test_what_the_page_writes_is_formatted(tmp_path):
    text = f"{SCALED}\n\n{FUNCTION.rstrip()}\n\n\n{SCORE.rstrip()}\n\n\nSCORES = {{\n    {ROW}}}\n"
    assert not unformatted(text, tmp_path)


def test_every_registered_nonlinearity_has_a_file_and_every_file_a_function():
    from sigmapca_cli.settings.conf_files import choices_of

    assert set(choices_of("nonlinearity")) == set(nonlinearities.REGISTRY)
    assert set(nonlinearities.REGISTRY) >= config.SCALED

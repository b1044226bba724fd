"""Several starts of the Newton solver: one solution where there is one, several named where there are several."""

import numpy as np
import pytest
from mechanisms import every
from solver_helpers import components, matched, sources

from sigmapca_cli.evaluation.words import answers
from sigmapca_cli.solvers.main_loss import several
from sigmapca_cli.solvers.main_loss.several import solve_from
from sigmapca_cli.solvers.newton.solve import solve
from sigmapca_cli.system.errors import InputError


def dependent(n=3000, k=10, seed=0):
    """Rows whose components are not independent: a few heavy-tailed sources over-complete in k dimensions."""
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(n, 3 * k)) @ rng.normal(size=(3 * k, k))
    X -= X.mean(0)
    return X @ np.linalg.eigh(X.T @ X / n)[1][:, ::-1]


def test_planted_sources_have_one_solution():
    Y, truth = components(sources("laplace", 20_000, 8, 4), p=20)
    found = solve_from(Y, 7, a=4.0)
    assert (found.starts, found.agreeing, found.solutions) == (7, 7, 1)
    assert found.farthest == found.nearest == 1.0 and found.result.notes == []
    assert matched(found.result.R, truth) > 0.999


def test_rows_with_several_solutions_say_so_and_keep_the_greatest_J():
    Y = dependent()
    found = solve_from(Y, 8, a=2.0)
    assert found.solutions > 1 and found.agreeing < 8 and found.farthest < several.SAME
    assert any(f"{found.solutions} different solutions" in note for note in found.result.notes)
    ends = [solve(Y, a=2.0, start=R) for _, R in several.rotations(Y, 8, None, {"a": 2.0})]
    values = several.common_J(Y, ends, {})
    best = max(value for value, end in zip(values, ends, strict=True) if end.converged)
    kept = [value for value, end in zip(values, ends, strict=True) if matched(end.R, found.result.R) > 0.9999]
    assert max(kept) == best


def test_an_unconverged_start_is_not_kept_before_a_converged_one():
    ends = [solve(dependent(), a=2.0, max_iter=limit) for limit in (2, 200)]
    assert [end.converged for end in ends] == [False, True]
    assert several.chosen(ends, np.array([2.0, 1.0])) == 1
    found = several.compared(["a", "b"], ends, 1, np.array([2.0, 1.0]))
    assert found.solutions == 1 and "1 of 2 starts did not converge" in found.result.notes


def test_of_unconverged_starts_the_nearest_is_kept_and_there_is_no_solution():
    found = solve_from(dependent(), 3, a=2.0, max_iter=2)
    assert not found.result.converged and found.solutions == 0


@pytest.mark.parametrize("kind", every(["laplace", "mixed"], ["mixed"]))
def test_linear_ica_from_several_starts(kind):
    Y, truth = components(sources(kind, 20_000, 6, 3))
    found = solve_from(Y / Y.std(0), 6, nonlinearity="logcosh")
    assert found.solutions == 1 and found.agreeing == 6
    axes = Y.std(0)[:, None] * found.result.R  # the filters in the space of Y, up to their norms
    assert matched(axes / np.linalg.norm(axes, axis=0), truth) > 0.999


def test_one_start_is_the_solver_itself():
    Y, _ = components(sources("laplace", 5_000, 4, 2))
    np.testing.assert_array_equal(solve_from(Y, 1, a=3.0).result.R, solve(Y, a=3.0).R)


def test_no_common_J_for_a_auto():
    with pytest.raises(InputError, match=r"solver\.starts.*a=auto"):
        solve_from(dependent(), 2, a="auto")


def test_the_sentence_on_the_solutions():
    facts = {"starts": 5, "starts_agreeing": 2, "solutions": 3, "solutions_cosine": 0.87}
    assert answers(facts).startswith("5 starts ended in 3 different solutions")
    assert answers(facts | {"starts_agreeing": 5, "solutions": 1}) == "5 of 5 starts ended in one solution"
    assert answers({}) == "" and answers(facts | {"solutions": [1, 2]}) == ""

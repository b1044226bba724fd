"""Sentences about what is known of a run: did it converge, does it match the truth, which axes can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from sigmapca_cli.evaluation.identifiability import ARBITRARY, IDENTIFIED, REPELLED
from sigmapca_cli.evaluation.words import groups
from sigmapca_cli.report.gather import scalar
from sigmapca_cli.report.page import Verdict
from sigmapca_cli.runs.read import Run

WORDS = "identifiability/words"  # the certificate's own sentences, a line each, where they are stored


def verdicts(run: Run) -> list[Verdict]:
    """What the run's file says about it."""
    found: list[Verdict] = []
    if run.attrs.get("error"):
        found.append(Verdict(str(run.attrs["error"]), False, run.status))
    elif run.status != "finished":
        found.append(Verdict(f"this run is {run.status}", None))
    return [*found, *_converged(run), *_truth(run), *certificate(run.evaluation)]


def _converged(run: Run) -> list[Verdict]:
    converged = run.attrs.get("converged", run.evaluation.get("converged"))
    if converged is None or converged == "":
        return []
    angle, tol = scalar(run, "angle"), run.config.get("tol")
    if math.isnan(angle):
        gradient = scalar(run, "relative_gradient")
        detail = "" if math.isnan(gradient) else f": relative gradient {gradient:.2g}"
    else:
        detail = f": at most {angle:.2g} rad to go"
        detail += f", tol={tol:g}" if isinstance(tol, int | float) else ""
        if pairs := len(np.atleast_2d(run.evaluation.get("unstable_pairs", np.zeros((0, 2))))):
            detail += f"; at a saddle: {pairs} ways lead away"
    good: bool | None = bool(converged)
    # Where the truth is known, it says whether the run is good, not whether it has come to rest.
    if good and not math.isnan(scalar(run, "mcc")) and not _found_truth(run):
        good = None
    return [Verdict(("converged" if converged else "not converged") + detail, good, "convergence")]


def _found_truth(run: Run) -> bool:
    """Whether every true direction is found, above 0.95."""
    each = np.atleast_1d(run.evaluation.get("truth_similarity", []))
    return bool(len(each) and (each > 0.95).all())


def _truth(run: Run) -> list[Verdict]:
    mcc, chance = scalar(run, "mcc"), scalar(run, "mcc_chance")
    if math.isnan(mcc):
        return []
    level = "" if math.isnan(chance) else f"; chance gives {chance:.2f}"
    each = np.atleast_1d(run.evaluation.get("truth_similarity", []))
    good = (
        f"; {int((each > 0.95).sum())} of {len(each)} true directions are found (above 0.95)"
        if len(each)
        else ""
    )
    words = f"mean matched similarity with the truth (MCC) {mcc:.4f}{level}{good}"
    return [Verdict(words, _found_truth(run) if len(each) else None, "truth")]


def certificate(evaluation: Mapping[str, Any]) -> list[Verdict]:
    """The certificate of identifiability that `evaluate --certificate` stored, nothing where there is none."""
    matrix = evaluation.get("identifiability/verdict")
    if matrix is None or np.ndim(matrix) != 2:
        return []
    codes = np.array(matrix)
    np.fill_diagonal(codes, 1)
    good = (codes == 1).all(axis=1)
    if WORDS in evaluation:
        lines = [line for line in str(evaluation[WORDS]).splitlines() if line.strip()]
    else:
        lines = _sentences(codes, good, evaluation.get("identifiability/expected_cosine"))
    return [Verdict(line, bool(good.all()) if i == 0 else False, "axes") for i, line in enumerate(lines)]


def _sentences(codes: np.ndarray, good: np.ndarray, cosine: Any) -> list[str]:
    lines = [f"{int(good.sum())} of {len(good)} components have identified axes"]
    if cosine is not None and good.any():
        lines[0] += (
            f" (expected |cos| with their large-sample limit {float(np.min(cosine[good])):.3f} or more)"
        )
    names = np.select([codes == 1, codes == -1], [IDENTIFIED, REPELLED], ARBITRARY)
    for group in groups(SimpleNamespace(verdict=names)):  # type: ignore[arg-type]
        inside = codes[np.ix_(group, group)]
        reasons = [
            words
            for code, words in (
                (0, "these rows do not fix their axes"),
                (-1, "this nonlinearity turns them away"),
            )
            if (inside == code).any()
        ]
        lines.append(f"components {_listed(group)}: {'; '.join(reasons)}")
    return lines


def _listed(group: Sequence[int]) -> str:
    numbers = [str(i + 1) for i in group]
    return " and ".join([", ".join(numbers[:-1]), numbers[-1]])

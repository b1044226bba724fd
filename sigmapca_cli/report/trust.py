"""Sentences on a run: whether it converged, whether it matches the truth, which axes are identified."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sigmapca_cli.evaluation.certificate import StoredVerdict
from sigmapca_cli.evaluation.words import answers, pairs_said
from sigmapca_cli.report.gather import scalar
from sigmapca_cli.report.page import Verdict
from sigmapca_cli.storage.read import StoredRun

STORED_SENTENCES = "identifiability/words"  # the sentences of a stored certificate, one per line


def verdicts(run: StoredRun) -> list[Verdict]:
    """Return the verdicts on a run from what its file stores."""
    status: list[Verdict] = []
    if run.attrs.get("error"):
        status.append(Verdict(str(run.attrs["error"]), False, run.status))
    elif run.status != "finished":
        status.append(Verdict(f"this run is {run.status}", None))
    return [*status, *_converged(run), *_answers(run), *_truth(run), *certificate(run.evaluation)]


def _converged(run: StoredRun) -> list[Verdict]:
    converged = run.attrs.get("converged", run.evaluation.get("converged"))
    if converged is None or converged == "":
        return []
    angle, tol = scalar(run, "angle"), run.config.get("tol")
    if math.isnan(angle):
        gradient = scalar(run, "relative_gradient")
        detail = "" if math.isnan(gradient) else f": relative gradient {gradient:.2g}"
    else:
        detail = f": at most {angle:.2g} rad from a stationary point"
        detail += f", tol={tol:g}" if isinstance(tol, int | float) else ""
        if pairs := len(np.atleast_2d(run.evaluation.get("unstable_pairs", np.zeros((0, 2))))):
            detail += f"; at a saddle point: unstable along {pairs} directions"
    good: bool | None = bool(converged)
    # If the truth is known, the mark depends on the truth, not only on convergence.
    if good and not math.isnan(scalar(run, "mcc")) and not _found_truth(run):
        good = None
    return [Verdict(("converged" if converged else "not converged") + detail, good, "convergence")]


def _answers(run: StoredRun) -> list[Verdict]:
    told = answers(run.evaluation)
    # Starts that agree prove nothing (Gaussian data); starts that do not agree prove that there are several answers.
    return [Verdict(told, None if int(run.evaluation["solutions"]) == 1 else False, "starts")] if told else []


def _found_truth(run: StoredRun) -> bool:
    """Return whether every true direction is found, with a similarity above 0.95."""
    each = np.atleast_1d(run.evaluation.get("truth_similarity", []))
    return bool(len(each) and (each > 0.95).all())


def _truth(run: StoredRun) -> list[Verdict]:
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
    """Return verdicts from the certificate that `evaluate --certificate` stored; [] if there is none."""
    matrix = evaluation.get("identifiability/verdict")
    if matrix is None or np.ndim(matrix) != 2:
        return []
    codes = np.array(matrix)
    np.fill_diagonal(codes, StoredVerdict.IDENTIFIED)
    # Runs of before stored the pairs alone.
    good = evaluation.get("identifiability/identified", (codes == StoredVerdict.IDENTIFIED).all(axis=1))
    good = np.asarray(good, dtype=bool)
    dependent = False
    if STORED_SENTENCES in evaluation:
        dependent = len(evaluation.get("dependent_pairs", ())) > 0 or bool(
            evaluation.get("dependence_spread", False)
        )
        lines = [line for line in str(evaluation[STORED_SENTENCES]).splitlines() if line.strip()]
    else:
        # an older version stored no sentences
        free = pairs_said(codes != StoredVerdict.IDENTIFIED)
        lines = [f"{int(good.sum())} of {len(good)} components have identified axes{free}"]
    # What the axes of dependent components are is said first, and their count is then no good news.
    count: bool | None = None if dependent and good.all() else bool(good.all())
    marks = [False] * dependent + [count] + [False] * len(lines)
    return [Verdict(line, mark, "axes") for line, mark in zip(lines, marks, strict=False)]

"""A certificate of identifiability as sentences, one per group of components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.evaluation.certificate import ARBITRARY, IDENTIFIED, REPELLED, Certificate
from sigmapca_cli.solvers.rows.stretches import UNSURE

MOST_OF_A_CHAIN = 0.4
"""Largest fraction of unidentified pairs at which a group is described pair by pair."""
PAIRS_SAID = 3
"""Largest number of pairs described for a group."""
HEAVY, LIGHT = 3.0, 0.8
"""a that suits heavy tails, at least, and light tails, at most."""
QUIET = "have shapes that these rows do not tell from a Gaussian one"
SIMILAR_SIGMA = 1.5
"""Ratio of the largest to the smallest σ of a group above which its variances are not called similar."""

NOT_CONVERGED = (
    "this run has not converged: its axes are those where training stopped, so the certificate says nothing about the "
    "data; train longer and evaluate again"
)
NOT_KNOWN = (
    "this run, of an older version, stored no angle to a stationary point: train it again to know whether it has "
    "converged"
)


def explain(certificate: Certificate) -> list[str]:
    """Return sentences, with components numbered from 1: how many axes are identified, and why each group is not.

    Components form a group if a chain of unidentified pairs connects them.
    """
    if certificate.converged is False:
        return [NOT_CONVERGED]
    identified = certificate.identified
    k = len(identified)
    counted = f"{int(identified.sum())} of {k} components have identified axes"
    if identified.any():
        limit = limit_said(certificate.tau is not None, depends_on_others(certificate))
        counted += (
            f" (expected |cos| with {limit} at least {certificate.expected_cosine[identified].min():.4f})"
        )
    # What takes the meaning of sources from all that follows comes first.
    lines = dependence_said(certificate)
    lines.append(counted + pairs_said(certificate.verdict != IDENTIFIED))
    for group in groups(certificate.verdict):
        inside = certificate.verdict[np.ix_(group, group)][np.triu_indices(len(group), 1)]
        if len(group) == 2:
            lines.append(_pair(certificate, *group))
        elif (inside != IDENTIFIED).mean() <= MOST_OF_A_CHAIN:
            lines += _chain(certificate, group)
        else:
            lines.append(_group(certificate, group))
        lines[-1] += f"; {reportable(len(group))}"
    if certificate.cut is not None and certificate.cut.any():
        lines.append(_cut(certificate))
    if certificate.converged is None:
        lines.append(NOT_KNOWN)
    if certificate.with_filled:
        lines.append(
            "rows with filled missing values are judged too: these have a shape of their own, so axes that shapes tell "
            "apart may be those of columns, and not of the data"
        )
    if certificate.filled:
        lines.append(
            f"judged on the {certificate.n:,} rows without a missing value: filled values have a shape of their own, "
            "which would tell components apart"
        )
    return lines


def limit_said(by_independence: bool, dependent: bool) -> str:
    """Return what axes are expected to be near to: what many rows would give, which need not be sources."""
    if not by_independence:
        return "their large-sample limit"
    return "the axes of the minimum on many rows" + (", which are no sources," if dependent else "")


def pairs_said(free: NDArray[Any]) -> str:
    """Return ", M of N pairs are not identified" for a symmetric matrix (k, k) that says which are not; "" for none."""
    k = len(free)
    count = int(np.asarray(free)[np.triu_indices(k, 1)].sum())
    return f", {count} of {k * (k - 1) // 2} pairs are not identified" if count else ""


def reportable(m: int) -> str:
    """Return what may still be reported of m components whose axes may not be."""
    return (
        f"report their {m}-dimensional subspace and the variance of the scores in it, not single axes: rotate them, "
        "or choose a lower k"
    )


def _chain(certificate: Certificate, group: list[int]) -> list[str]:
    """Return sentences on the weakest unidentified pairs of a group whose other pairs are mostly identified."""
    pairs = [(i, j) for i in group for j in group if i < j and certificate.verdict[i, j] != IDENTIFIED]
    pairs.sort(key=lambda pair: certificate.score[pair])
    lines = [_pair(certificate, i, j) for i, j in pairs[:PAIRS_SAID]]
    if len(pairs) > PAIRS_SAID:
        lines.append(
            f"{len(pairs) - PAIRS_SAID} more pairs of components {_listed([i + 1 for i in group])} are not "
            "identified: sigmapca plot --what certificate shows them"
        )
    return lines


def _cut(certificate: Certificate) -> str:
    """Return a sentence on the components that have the same variance as directions that k leaves out."""
    assert certificate.cut is not None
    numbers = [int(i) + 1 for i in np.flatnonzero(certificate.cut)]
    many = f"components {_listed(numbers)} have" if len(numbers) > 1 else f"component {numbers[0]} has"
    return (
        f"{many} the same variance as directions that k={len(certificate.cut)} leaves out: chance decides which of "
        "them are found; choose a k after which the variance drops (sigmapca data FILE --components)"
    )


def depends_on_others(certificate: Certificate) -> bool:
    """Return whether some components of an answer of solver=independence depend on each other."""
    return bool(certificate.dependent) or certificate.together


def dependence_said(certificate: Certificate) -> list[str]:
    """Return a sentence on components that are not independent; [] where these rows do not show that."""
    pairs = certificate.dependent
    some = ", ".join(f"{i + 1} and {j + 1}" for i, j in pairs[:PAIRS_SAID])
    if certificate.together:
        those = "the components depend on each other, all pairs together, and no pair stands out"
    elif len(pairs) == 1:
        those = f"components {some} depend on each other"
    elif pairs:
        those = f"{len(pairs)} pairs of components depend on each other ({some}{', …' * (len(pairs) > PAIRS_SAID)})"
    else:
        return []
    return [f"{those}: their axes are those of a minimum, not of independent sources"]


def groups(verdict: NDArray[Any]) -> list[list[int]]:
    """Return the sets of two or more components, numbered from 0, that chains of unidentified pairs connect."""
    free = verdict != IDENTIFIED
    np.fill_diagonal(free, False)
    left, found = set(np.flatnonzero(free.any(axis=1)).tolist()), []
    while left:
        group, border = set(), {min(left)}
        while border:
            group |= border
            border = {j for i in border for j in np.flatnonzero(free[i]).tolist()} - group
        left -= group
        found.append(sorted(group))
    return found


def _pair(certificate: Certificate, i: int, j: int) -> str:
    name = f"components {i + 1} and {j + 1}"
    if certificate.verdict[i, j] == REPELLED:
        return f"{name}: {_wrong(certificate, [i, j])}"
    return f"{name} {_reason(certificate, [i, j])}"


def _group(certificate: Certificate, group: list[int]) -> str:
    name = f"components {_listed([i + 1 for i in group])}"
    block = certificate.verdict[np.ix_(group, group)][np.triu_indices(len(group), 1)]
    if not (block == ARBITRARY).any():
        return f"{name}: {_wrong(certificate, group)}"
    partly = " in part" if (block == IDENTIFIED).any() else ""
    wrong = (
        f"; {int((block == REPELLED).sum())} of their pairs are unstable at these axes"
        if (block == REPELLED).any()
        else ""
    )
    return f"{name} {_reason(certificate, group)}{partly}{wrong}"


def _reason(certificate: Certificate, group: list[int]) -> str:
    equal, variances = _variances(certificate, group)
    if certificate.linear:
        return f"{variances}: linear PCA cannot identify their axes"
    pairs = _arbitrary(certificate, group)
    if all(certificate.score[p] > certificate.threshold and np.isinf(certificate.angle[p]) for p in pairs):
        return (
            f"are told apart by their {_told_by(certificate)}, but the angle between them has a standard error above "
            f"{UNSURE:g} rad: these rows do not fix their axes"
        )
    gaussian, shapes = _shapes(certificate, group)
    if not gaussian:  # J sees more than kurtosis does: the rows may well fix what this function does not
        by = "this a does" if certificate.lam is None else "F does"
        return f"{variances} and {shapes}: {by} not identify their axes, and solver=independence may"
    return f"{variances} and {shapes}: " + (
        "their axes are arbitrary" if equal else "these rows do not identify their axes"
    )


def _told_by(certificate: Certificate) -> str:
    """Return what may tell two components apart."""
    by = ["variances"] * (not certificate.white) + ["spectra"] * certificate.spectra + ["shapes"]
    return by[0] if len(by) == 1 else f"{', '.join(by[:-1])} or {by[-1]}"


def _arbitrary(certificate: Certificate, group: list[int]) -> list[tuple[int, int]]:
    """Return the arbitrary pairs of a group."""
    return [(i, j) for i in group for j in group if i < j and certificate.verdict[i, j] == ARBITRARY]


def _variances(certificate: Certificate, group: list[int]) -> tuple[bool, str]:
    """Return whether the variances of a group are equal within their error, and words for it."""
    from scipy.special import ndtri

    alike = ", have spectra that these rows do not tell apart" * certificate.spectra
    if certificate.white:
        return True, f"are white (their variances say nothing){alike}"
    sigma = certificate.sigma[group]
    free = [
        certificate.variance_score[i, j]
        for i in group
        for j in group
        if i < j and certificate.verdict[i, j] != IDENTIFIED
    ]
    spread = (
        f"σ {sigma.max():.3g}" if sigma.max() == sigma.min() else f"σ {sigma.max():.3g} to {sigma.min():.3g}"
    )
    if sigma.max() > SIMILAR_SIGMA * sigma.min():  # a chain of similar neighbours whose ends are not similar
        return (
            False,
            f"have variances that differ, but between neighbours not clearly on these rows ({spread}){alike}",
        )
    equal = bool(max(free) <= -ndtri(certificate.level / 2))
    words = "equal variance" if equal else "variances that differ, but not clearly on these rows"
    return equal, f"have {words} ({spread}){alike}"


def _shapes(certificate: Certificate, group: list[int]) -> tuple[bool, str]:
    """Return whether the negentropy J does not tell a group from a Gaussian one, and words for its shape."""
    gap = max(
        abs(certificate.shape[i, j]) / max(certificate.shape_error[i, j], np.finfo(float).tiny)
        for i, j in _arbitrary(certificate, group)
    )
    kurtosis = certificate.kurtosis[group]
    if certificate.tau is not None:
        return True, QUIET
    if gap > certificate.threshold:
        by = "this a identifies" if certificate.lam is None else "F identifies"
        return False, f"have shapes that {by} only weakly ({_kurtosis(kurtosis)})"
    if certificate.gaussian is not None and certificate.gaussian[group].all():
        return True, QUIET
    if (kurtosis > 0).all() or (kurtosis < 0).all():
        return False, f"have shapes whose effect is within its error ({_kurtosis(kurtosis)})"
    return False, f"have shapes whose effects cancel ({_kurtosis(kurtosis)})"


def _wrong(certificate: Certificate, group: list[int]) -> str:
    kurtosis = certificate.kurtosis[group]
    if certificate.lam is not None:
        return f"F increases if they are rotated ({_kurtosis(kurtosis)}): solve from another start, or on more rows"
    advice = _advice(certificate, group)
    pairs = np.ix_(group, group)
    if certificate.mixed is not None and certificate.mixed[pairs].any():
        return f"this nonlinearity makes mixtures of them stable ({_kurtosis(kurtosis)}): {advice}"
    why = f"this nonlinearity makes these axes unstable ({_kurtosis(kurtosis)})"
    return f"{why}: train longer or from another start; if that does not help, {advice}"


def _advice(certificate: Certificate, group: list[int]) -> str:
    """Return what may hold a group that its a does not hold: another a, unless the group has that already."""
    kurtosis, a = certificate.kurtosis[group], certificate.a
    own = np.full(len(group), np.nan) if a is None else np.broadcast_to(a, certificate.kurtosis.shape)[group]
    if (kurtosis > 0).all() and not (own >= HEAVY).all():
        return "a larger a (3 or more) suits heavy tails"
    if (kurtosis < 0).all() and not (own <= LIGHT).all():
        return "a smaller a (0.8) suits light tails"
    if (kurtosis > 0).any() and (kurtosis < 0).any() and np.ptp(own) == 0:
        return "one needs a small a and another a large a: set a=auto"
    return "solver=independence needs no a, and holds skewed shapes too"


def _kurtosis(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"kurtosis {low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"kurtosis {low:.2g} to {high:.2g}"


def _listed(numbers: list[int]) -> str:
    """Return numbers as words: "3–6 and 9" for [3, 4, 5, 6, 9]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(number) for number in run]
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def answers(evaluation: Mapping[str, Any]) -> str:
    """Return a sentence on the different solutions that several starts of a solver ended in; "" if it had one start."""
    names = ("starts", "starts_agreeing", "solutions", "solutions_cosine")
    if any(name not in evaluation or not np.isscalar(evaluation[name]) for name in names):
        return ""
    starts, agreeing, count = (int(evaluation[name]) for name in names[:3])
    if count <= 1:
        return f"{agreeing} of {starts} starts ended in one solution"
    return (
        f"{starts} starts ended in {count} different solutions (mean |cos| of the filters down to "
        f"{float(evaluation['solutions_cosine']):.3f}): this setting has no single answer on these data"
    )

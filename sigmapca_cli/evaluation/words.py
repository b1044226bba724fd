"""A certificate of identifiability in sentences, one a group of components."""

from __future__ import annotations

import numpy as np

from sigmapca_cli.evaluation.identifiability import ARBITRARY, IDENTIFIED, REPELLED, Certificate

WIDE = 1.5
"""Ratio of σ from which on the variances of a group are not called similar."""


def explain(certificate: Certificate) -> list[str]:
    """Sentences, components numbered from 1: how many axes are identified, and for every other group why not.

    Components form a group when a chain of pairs that are not identified joins them.
    """
    identified = certificate.identified
    k = len(identified)
    cosine = certificate.expected_cosine
    lines = [f"{int(identified.sum())} of {k} components have identified axes"]
    if identified.any():
        lines[0] += f" (expected |cos| with their large-sample limit at least {cosine[identified].min():.4f})"
    for group in groups(certificate):
        if len(group) == 2:
            lines.append(_pair(certificate, *group))
        else:
            lines.append(_group(certificate, group))
    return lines


def groups(certificate: Certificate) -> list[list[int]]:
    """Connected sets of two or more components over the pairs that are not identified, numbered from 0."""
    free = certificate.verdict != IDENTIFIED
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
        f"; {int((block == REPELLED).sum())} of their pairs are turned away from these axes"
        if (block == REPELLED).any()
        else ""
    )
    return f"{name} {_reason(certificate, group)}{partly}{wrong}"


def _reason(certificate: Certificate, group: list[int]) -> str:
    equal, variances = _variances(certificate, group)
    if certificate.linear:
        return f"{variances}: linear PCA has nothing else to tell their axes by"
    gaussian, shapes = _shapes(certificate, group)
    return f"{variances} and {shapes}: " + (
        "their axes are arbitrary" if equal and gaussian else "these rows do not fix their axes"
    )


def _variances(certificate: Certificate, group: list[int]) -> tuple[bool, str]:
    """Whether the variances of a group are equal within their error, and words for it."""
    from scipy.stats import norm

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
    if sigma.max() > WIDE * sigma.min():  # a chain of alike neighbours whose ends are not alike
        return False, f"have variances that differ ({spread})"
    equal = bool(max(free) <= norm.isf(certificate.level / 2))
    return equal, f"have {'equal' if equal else 'similar'} variance ({spread})"


def _shapes(certificate: Certificate, group: list[int]) -> tuple[bool, str]:
    """Whether a group looks Gaussian, and words for its shape."""
    gap = max(
        abs(certificate.shape[i, j]) / max(certificate.shape_error[i, j], np.finfo(float).tiny)
        for i in group
        for j in group
        if i < j and certificate.verdict[i, j] == ARBITRARY
    )
    kurtosis = certificate.kurtosis[group]
    if gap > certificate.threshold:
        held = "this a barely holds" if certificate.lam is None else "barely hold them"
        return False, f"have shapes that {held} ({_kurtosis(kurtosis)})"
    if np.abs(kurtosis).max() < 1:
        return True, "look Gaussian"
    return False, f"have shapes that cancel ({_kurtosis(kurtosis)})"


def _wrong(certificate: Certificate, group: list[int]) -> str:
    kurtosis = certificate.kurtosis[group]
    if certificate.lam is not None:
        return f"F rises as they are turned away ({_kurtosis(kurtosis)}): solve again, or with more rows"
    if (kurtosis > 0).all():
        advice = "a larger a (3 or more) suits heavy tails"
    elif (kurtosis < 0).all():
        advice = "a smaller a (0.8) suits light tails"
    else:
        advice = "one needs a small a and one a large a: a=auto"
    why = f"this nonlinearity turns them away from these axes ({_kurtosis(kurtosis)})"
    return f"{why}: train longer or from another start; if that does not help, {advice}"


def _kurtosis(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"kurtosis {low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"kurtosis {low:.2g} to {high:.2g}"


def _listed(numbers: list[int]) -> str:
    """3–6 and 9 for [3, 4, 5, 6, 9]."""
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

"""The lines at the end of a run: where it is, how good it is, and how far it is from having converged."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.composition.job import Job
from sigmapca_cli.composition.overrides import dotted
from sigmapca_cli.data.row_order import ORDER_REASONS
from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.catalogue import CATALOGUE, SUBSPACE
from sigmapca_cli.runner.plan import is_read
from sigmapca_cli.runner.solved import refusal_of_newton
from sigmapca_cli.settings.schema import Config, SolverConfig
from sigmapca_cli.settings.ways import Way, way_of
from sigmapca_cli.storage.find import shortened
from sigmapca_cli.training.length import FEWEST_STEPS

MORE = 3
"""How many times as many iterations are advised."""


def summary(folder: Path, evaluation: dict[str, Any]) -> str:
    """Return the last lines of a run: its folder, and how good it is."""
    parts = [f"explained variance {evaluation['explained_variance']:.4f}"]
    if "mcc" in evaluation:
        mcc, chance = evaluation["mcc"], evaluation["mcc_chance"]
        parts.append(
            f"MCC {mcc:.4f} ({'no better than chance,' if mcc <= chance else 'chance'} {chance:.2f})"
        )
    return f"{shortened(folder)}\n  {'  '.join(parts)}"


def order_words(facts: dict[str, Any]) -> str:
    """Return a sentence on rows that solver=independence found to be samples in time; "" of others."""
    if "bands" not in facts:
        reason = str(facts.get("rows_order", ""))
        if reason == "subjects":
            return "rows of subjects: those of one are alike, so errors come from stretches of rows"
        if reason not in ("time", "neighbours") or facts["rows_in_time"]:
            return ""
        return (
            f"rows in time, because {ORDER_REASONS[reason]}; values do not correlate with earlier ones: spectra say "
            "nothing, and errors come from stretches of rows"
        )
    refusal = "" if facts["rows_order"] == "given" else "; data.ordered=false refuses it"
    return (
        f"rows in time, because {ORDER_REASONS[str(facts['rows_order'])]}: spectra in {facts['bands']} bands "
        f"take the place of variances{refusal}"
    )


def verdict_words(cfg: Config, facts: dict[str, Any]) -> list[str]:
    """Return sentences on the components of a run, first what takes the meaning from the others.

    First those that depend on each other, then those that these rows do not tell from their rotations; that components
    are independent is a finding only where a rotation of them would not be.
    """
    # How many pairs are free is for the certificate to say, which counts each by one rule.
    free = loose_pairs(cfg, facts) if facts["converged"] else np.zeros((0, 2), np.int64)
    none_held = len(np.unique(free)) == int(cfg.k)
    tested = "dependent_pairs" in facts
    found = [dependence_words(cfg, facts)] if tested else []
    if none_held:
        no_finding = (
            "Gaussian rows are independent in every rotation, so that these are too is no finding"
            if tested and not found[0]
            else "no axis may be reported"
        )
        found.append(
            f"no component is told from its rotations with others; {no_finding}: sigmapca evaluate last --certificate"
        )
    elif len(free):
        found.append("these rows do not fix every pair of components: sigmapca evaluate last --certificate")
    if tested and not found[0] and not none_held:
        found.append(
            f"tau {facts['tau']:g}: the components are independent as far as {facts['tested_rows']:,} rows tell"
        )
    return [words for words in found if words]


def dependence_words(cfg: Config, facts: dict[str, Any]) -> str:
    """Return a sentence on components of solver=independence that depend on each other; "" if these rows show none."""
    pairs, tau = np.asarray(facts["dependent_pairs"]), f"tau {facts['tau']:g}"
    if not len(pairs) and facts.get("dependence_spread", False):
        return (
            f"{tau}: the components depend on each other, all pairs together, and no pair stands out: they are no "
            "independent sources"
        )
    if not len(pairs):
        return ""
    some = ", ".join(f"{i + 1} and {j + 1}" for i, j in pairs[:3])
    those = "1 pair of components depends" if len(pairs) == 1 else f"{len(pairs)} pairs of components depend"
    # Sources whose patterns are not orthogonal leave the components of orthogonal filters dependent.
    freed = "" if cfg.model.name == "lica" else "; model=lica needs no orthogonal filters"
    return f"{tau}: {those} on each other ({some}{', …' * (len(pairs) > 3)}), so they are no independent sources{freed}"


def loose_pairs(cfg: Config, facts: dict[str, Any]) -> np.ndarray:
    """Return the pairs (m, 2) of components that these rows leave free; none of a method that finds a subspace only."""
    row = CATALOGUE.get(cfg.model.name)
    pairs = np.asarray(facts.get("unheld_pairs", ()), dtype=np.int64).reshape(-1, 2)
    return pairs[:0] if row is not None and row.identifies == SUBSPACE else pairs[(pairs >= 0).all(axis=1)]


def unconverged(job: Job, cfg: Config, source: Source, facts: dict[str, Any]) -> str:
    """Return how far a run is from having converged, what may be reported of it, and the commands that would help.

    cfg: the job's configuration with k as a number.
    """
    way, commands = way_of(cfg), advice(job, cfg, source, facts)
    if way is Way.NEWTON:
        state = f"relative residual {facts['relative_gradient']:.2g}, where solver.tol={cfg.solver.tol:g}"
    elif way in (Way.MOMENTS, Way.INDEPENDENCE):
        state = f"{facts['relative_gradient']:.2g} rad still to go, where solver.tol={cfg.solver.tol:g}"
    else:
        state = "the iteration ended early" if way is Way.DIRECT else how_far(cfg, facts)
    return f"not converged: {state}; no axis may be reported yet. Try {', or '.join(commands)}"


def how_far(cfg: Config, facts: dict[str, Any]) -> str:
    """Return the angle still to go, and the pairs along which the run would leave a saddle."""
    each = np.asarray(facts["angle_per_component"])
    far = np.flatnonzero(each > cfg.tol)
    parts = []
    if len(pairs := np.asarray(facts["unstable_pairs"])):
        parts.append(f"at a saddle, which {pairs_named(pairs)} would still leave")
    if len(far):
        parts.append(
            f"{len(far)} of {len(each)} components have up to {each.max():.2g} rad to go, where tol={cfg.tol:g}"
        )
    return " and ".join(parts) or "its gradient could not be measured"


def pairs_named(pairs: np.ndarray) -> str:
    """Return the pairs of components by number, counted from 1; of many pairs the first three."""
    pairs = np.array(list(dict.fromkeys(map(tuple, pairs.tolist()))))  # a component may leave in several ways
    names = [f"{i + 1} and {j + 1}" for i, j in pairs[:3]]
    alone = [f"component {j + 1} (out of the span of the others)" for i, j in pairs[:3] if i < 0]
    both = [f"components {name}" for name, (i, _) in zip(names, pairs[:3], strict=True) if i >= 0]
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return ", ".join(both + alone) + more


def advice(job: Job, cfg: Config, source: Source, facts: dict[str, Any]) -> list[str]:
    """Return the commands that would help, the one first that solves these rows at once, with the time it takes."""
    way = way_of(cfg)
    if way is Way.DIRECT:
        return [command(job, way, f"model.max_iter={MORE * cfg.model.max_iter}")]
    if way is not Way.STEPS:
        longer = command(job, way, f"solver.max_iterations={MORE * cfg.solver.max_iterations}")
        return [longer] if way is Way.NEWTON else [longer, command(job, way, "init=orthogonal")]
    found = []
    if refusal_of_newton(replace(cfg, solver=SolverConfig(name="newton"), ending="none")) is None:
        seconds = newton_seconds(source.n, source.p, int(cfg.k))
        found.append(f"{command(job, Way.NEWTON, 'solver=newton')} (about {seconds:.0f} s)")
    if cfg.model.name.startswith("rica"):
        found.append(command(job, way, f"model.beta_0={cfg.model.beta_0 / 2:g}"))
    if "full_batch_steps" not in facts:
        found.append(command(job, way, f"steps={max(MORE * int(facts['steps']), FEWEST_STEPS)}"))
    return found or [command(job, way, f"k={max(1, int(cfg.k) - 1)}")]


def newton_seconds(n: int, p: int, k: int) -> float:
    """Return about how long solver=newton takes: its multiplications on a core, and its start."""
    return 1 + (2.0 * n * p * k + 40.0 * n * k**2 + 5.0 * min(n, 100_000) * k**3) / 4e9


def command(job: Job, way: Way, *changes: str) -> str:
    """Return the command of a job with other overrides, without those that the way does not read."""
    given = {change.partition("=")[0] for change in changes} | {"steps", "epochs", "max_steps"}

    def stays(word: str) -> bool:
        key = word.lstrip("+~").partition("=")[0].split("@")[0]
        return key not in given and all(is_read(way, each) for each in dotted(key, None))

    return shlex.join(["sigmapca", "train", *filter(stays, job.overrides), *changes])

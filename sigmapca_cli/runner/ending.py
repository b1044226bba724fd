"""The lines at the end of a run: where it is, how good it is, and how far it is from having converged."""

from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.row_order import WORDS
from sigmapca_cli.methods.catalogue import CATALOGUE, SUBSPACE
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.settings.ways import Way
from sigmapca_cli.storage.find import shortened
from sigmapca_cli.training.length import FIRST, MOST


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
    """Return a sentence on rows that solver=independence took as samples in time; "" of others."""
    if "bands" not in facts:
        return ""
    refusal = "" if facts["rows_order"] == "given" else "; data.ordered=false refuses it"
    return (
        f"rows in time, because {WORDS[str(facts['rows_order'])]}: spectra in {facts['bands']} bands "
        f"take the place of variances{refusal}"
    )


def independence_words(facts: dict[str, Any]) -> str:
    """Return a sentence on whether the components of solver=independence are independent; "" of another way."""
    if "dependent_pairs" not in facts:
        return ""
    pairs, tau = np.asarray(facts["dependent_pairs"]), f"tau {facts['tau']:g}"
    if not len(pairs):
        return f"{tau}: the components are independent as far as {facts['tested_rows']:,} rows tell"
    some = ", ".join(f"{i + 1} and {j + 1}" for i, j in pairs[:3])
    those = "1 pair of components depends" if len(pairs) == 1 else f"{len(pairs)} pairs of components depend"
    return (
        f"{tau}: {those} on each other ({some}{', …' * (len(pairs) > 3)}), so they are no independent sources"
    )


def loose_pairs(cfg: Config, facts: dict[str, Any]) -> int:
    """Return how many pairs of components these rows do not fix; 0 for a method that finds a subspace only."""
    row = CATALOGUE.get(cfg.model.name)
    pairs = np.asarray(facts.get("unheld_pairs", np.zeros((0, 2))))
    return 0 if row is not None and row.identifies == SUBSPACE else int((pairs >= 0).all(axis=1).sum())


def unconverged(cfg: Config, way: Way, facts: dict[str, Any]) -> str:
    """Return how far a run is from having converged, and what would help."""
    if way is Way.NEWTON:
        return (
            f"not converged: relative residual {facts['relative_gradient']:.2g}, where solver.tol={cfg.solver.tol:g}; "
            f"raise solver.max_iterations (now {cfg.solver.max_iterations}), or try another a or k"
        )
    if way in (Way.MOMENTS, Way.INDEPENDENCE):
        return (
            f"not converged: {facts['relative_gradient']:.2g} rad still to go, where solver.tol={cfg.solver.tol:g}; "
            f"raise solver.max_iterations (now {cfg.solver.max_iterations}), or try init=orthogonal or another k"
        )
    if way is Way.DIRECT:
        return f"not converged: raise model.max_iter (now {cfg.model.max_iter}), or model.tolerance"
    return f"not converged: {how_far(cfg, facts)}; {advice(cfg, facts)}"


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
    names = [f"{i + 1} and {j + 1}" for i, j in pairs[:3]]
    alone = [f"component {j + 1} (out of the span of the others)" for i, j in pairs[:3] if i < 0]
    both = [f"components {name}" for name, (i, _) in zip(names, pairs[:3], strict=True) if i >= 0]
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return ", ".join(both + alone) + more


def advice(cfg: Config, facts: dict[str, Any]) -> str:
    """Return advice: more steps where there were few; else what makes the components better determined."""
    taken = int(facts["steps"])
    longer = f"train longer (steps={max(3 * taken, FIRST)})"
    if taken < MOST:
        return longer
    if cfg.model.name.startswith("rica"):
        return f"{longer}, or try another model.beta_0 (now {cfg.model.beta_0:g})"
    return f"{longer}, solver=newton, or another a or k"

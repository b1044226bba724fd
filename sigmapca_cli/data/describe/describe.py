"""Description of a data file or folder: what it holds, and how to train on it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig, name_list
from sigmapca_cli.data.describe.recognise import options_for
from sigmapca_cli.data.describe.suggestion import Suggestion, cleaning, suggestion, tracks_in, weighing
from sigmapca_cli.data.describe.summary import summary
from sigmapca_cli.data.readers.column_files import ListColumns
from sigmapca_cli.data.readers.dimensions import ManyDimensions
from sigmapca_cli.data.readers.table import WordColumns
from sigmapca_cli.data.source import Source


def describe(path: str | Path, **options: Any) -> tuple[dict[str, Any], Suggestion | None]:
    """Return facts about a file, a folder or a pattern of any known format, and the command that trains on it.

    options: fields of the data group. "command" among the facts is the text of the command.

    Columns without numbers are left out and listed; missing values are counted and replaced by the mean. So every
    table has a description.
    """
    options = options_for(path, options)
    cfg = DataConfig(path=str(path), **options)
    source, left_out = lenient(cfg)
    facts = summary(source)
    if options.get("mix") is False and (tracks := tracks_in(source, str(path))) is not None:
        facts["tracks"] = tracks
    options |= {key: getattr(cfg, key) for key in ("columns", "rows") if getattr(cfg, key) is not None}
    task = facts.get("task")
    if task is not None and task.name == "transpose" and not options.get("transpose"):
        turned, found = describe(path, **{**options, "transpose": True, "drop": None})
        return {**turned, "advice": f"{task.text}; then {turned['advice']}"}, found
    if left_out:
        facts["left_out"] = left_out
    options["drop"] = [*(name_list("drop", options.get("drop")) or []), *left_out] or None
    better, source = treated(facts, source, str(path), options)
    found = suggestion(facts, better, source, str(path), options)
    facts["command"] = None if found is None else found.text
    facts["advice"] = (
        "every feature is constant: there is nothing to learn" if found is None else found.task.text
    )
    if found is not None:
        facts |= {"task": found.task.name, "k": found.k, "why_k": found.why, "other": found.other}
        facts["then"] = found.task.then
        facts["other_when"] = None if found.task.other is None else found.task.other[1]
    return facts, found


def treated(
    facts: dict[str, Any], source: Source, path: str, options: dict[str, Any]
) -> tuple[dict[str, Any], Source]:
    """Add to the options what treats the data, and return facts and source of the data as these options read them.

    First what is no data, then scales and outliers of what remains.
    """
    better = facts
    for treatment in (cleaning, weighing):
        found = treatment(better, options)
        facts["beside_items"] = better.get("beside_items")  # of the last one, before it leaves them out
        if not found and (better is not facts or not facts.get("left_out")):
            continue
        options |= found
        with silence_warnings():  # the same warnings were logged above
            source = lenient(DataConfig(path=path, **options))[0]
            task = better.get("task")
            better = summary(source)
            if found.keys() == {"clip"} and task is not None:
                better["task"] = task  # counts that were drawn in are no whole numbers any more
    if better is not facts and "components" in better:
        facts["components_then"] = better["components"]
        facts |= {name: better[name] for name in ("KMO", "Bartlett") if name in better}
    return better, source


@contextmanager
def silence_warnings() -> Iterator[None]:
    """Disable the logger inside the block."""
    logger = logging.getLogger("sigmapca")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def lenient(cfg: DataConfig) -> tuple[Source, dict[str | int, str]]:
    """Return the source of a table without its columns of words, and these columns with what they hold.

    A column of lists of numbers is the matrix, and the longest dimension of an array counts the rows; `cfg` says then
    which.
    """
    left_out: dict[str | int, str] = {}
    if cfg.name == "array" and cfg.missing == "refuse":
        cfg.missing = "mean"
    while True:
        try:
            return build(cfg), left_out
        except ManyDimensions as problem:
            if cfg.rows is not None:
                raise
            cfg.rows = [problem.shape.index(max(problem.shape))]
        except ListColumns as problem:
            if cfg.columns is not None:
                raise
            cfg.columns = problem.names[:1]
        except WordColumns as problem:
            if cfg.columns is not None or set(problem.names) <= set(left_out):
                raise
            left_out |= dict(zip(problem.names, problem.kinds, strict=True))
            cfg.drop = [*(cfg.drop or []), *problem.names]

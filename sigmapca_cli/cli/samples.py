"""Samples of a sweep's jobs, before any of them begins: a key that none of them reads is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sigmapca_cli.composition.compose import Folders, compose_job
from sigmapca_cli.composition.overrides import dotted, texts
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

MOST_KINDS = 64
"""Of more kinds of jobs than this nothing is said: each takes a fifth of a second to be composed."""


def refuse_unread(given: Sequence[Override], folders: Folders) -> None:
    """Raise InputError for a key that no job of the sweep reads; several ways may share keys.

    A job that cannot be composed says so itself. Patterns for choices (glob) are known to Hydra alone, later.
    """
    from sigmapca_cli.runner.rules import Why
    from sigmapca_cli.runner.unread import refusal, unread

    own = [o for o in given if not o.is_hydra_override() and o.key_or_group != "detach"]
    swept = [o for o in own if o.is_sweep_override()]
    if any(o.is_choice_sweep() and not hasattr(o.value(), "list") for o in swept):
        return
    fixed = texts(o for o in own if not o.is_sweep_override())
    words = {
        key: str(o.input_line)
        for o in own
        for key in dotted(o.key_or_group, None if o.is_sweep_override() else o.value())
    }
    jobs = itertools.product(*(kinds(o) for o in swept))
    ignored: dict[str, Why] = dict.fromkeys(words, Why(""))
    for number, chosen in enumerate(jobs):
        try:
            job = compose_job([*fixed, *itertools.chain.from_iterable(chosen)], folders)
        except InputError:
            return
        # Jobs may run on other machines than this one.
        ignored = {key: why for key, why in unread(job.cfg, ignored).items() if not why.here}
        if not ignored or number == MOST_KINDS:
            return
    if any(why.reason for why in ignored.values()):  # a sweep without a job is refused elsewhere
        raise InputError(f"{refusal(words, ignored)} (of all jobs of the sweep)")


def kinds(sweep: Override) -> Iterator[list[str]]:
    """Yield the overrides of a sweep's values that may decide which keys are read: of numbers one is like another.

    An interval is left out: its values are numbers.
    """
    if not (sweep.is_range_sweep() or hasattr(sweep.value(), "list")):
        yield []
        return
    numbers = 0
    words: Any = sweep.sweep_string_iterator()
    for word in words:
        numbers += is_number(word)
        if not is_number(word) or numbers == 1:
            yield [f"{sweep.key_or_group}={word}"]


def is_number(word: str) -> bool:
    """Return whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True

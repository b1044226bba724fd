"""How the learning rate falls over a run."""

import math


def cosine(step: int, total: int) -> float:
    """Factor of the learning rate, ½(1 + cos(π·step/total)): from 1 to 0 over the run."""
    return 0.5 * (1.0 + math.cos(math.pi * min(step / max(total, 1), 1.0)))


def rate_factor(schedule: str, step: int, total: int) -> float:
    """Factor of the learning rate at a step under the named schedule."""
    return cosine(step, total) if schedule == "cosine" else 1.0

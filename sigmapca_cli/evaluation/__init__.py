"""Numbers about solutions: their quality, their agreement with a truth or each other, and how far to trust them."""

from sigmapca_cli.evaluation.evaluate import evaluate_solution

__all__ = ["evaluate_solution"]

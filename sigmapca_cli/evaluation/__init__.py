"""Numbers about solutions: their quality, their agreement with a truth or each other, and what of them to
trust.
"""

from sigmapca_cli.evaluation.evaluate import evaluate_solution

__all__ = ["evaluate_solution"]

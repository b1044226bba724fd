"""Measures of solutions: quality, agreement with a known truth or with each other, and identifiability."""

from sigmapca_cli.evaluation.evaluate import evaluate_solution

__all__ = ["evaluate_solution"]

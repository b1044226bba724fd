"""Stochastic training: one loop, the optimizers it steps with, and what hangs on it from outside."""

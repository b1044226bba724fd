"""The paper's experiments as data: panels to run, claims to judge, figures to draw."""

"""The estimator of scikit-learn: its class, its fitting from sources in memory, its solvers, its making from a run."""

"""Which keys of a configuration count, for what makes two runs the same run, a group, or a comparison."""

from typing import Any

from sigmapca_cli.data.config import YOUNGER_DATA

VOLATILE = (
    "outputs", "run_dir", "if_exists", "strict", "log_format", "checkpoint", "log_every", "threads",
    "device", "objective", "tracker", "tags", "note", "recipe",
)  # fmt: skip
"""Keys that do not change what a run computes: two runs that differ only here are the same run."""

YOUNGER: dict[str, Any] = {
    "precision": "highest",
    "max_steps": None,
    "rescale": False,
    "ending": "none",
    "sigma.relative": False,
    "model.mean_gradient": "inner",
    "model.mean": "batch",
    "model.reconstruction": "tied",
    "model.norm": "spectral",
    "model.weights": "linear",
    "model.order": "filters",
    "model.ppca_encoder": "unit",
    "ordering.sweep": 0,
    "solver.lam": 0.1,
    "solver.tau": "auto",
    "solver.a_from": "sign",
    "solver.starts": 1,
    "solver.clip": None,
    **{f"data.{key}": value for key, value in YOUNGER_DATA.items()},
}
"""Keys that are younger than some runs: at these values a configuration is the one that it was without them."""
AS_BEFORE: dict[str, tuple[Any, Any]] = {"data.standardise": (None, "feature"), "k": ("auto", 32)}
"""Key: (a value, what it stands for): what older versions wrote out."""
BY_THE_DATA = ("data.recognise",)
"""Keys that the hash of the data stands for; older configurations do not have them."""

COMPUTING = ("threads", "device")
"""The volatile keys that say how a run is computed: they may change the last bits of its sums."""

PER_RUN = tuple(key for key in VOLATILE if key not in (*COMPUTING, "recipe"))
"""The volatile keys that may differ between the runs of one group; the group shares how it is computed."""

COMPARED_APART = tuple(key for key in VOLATILE if key != "recipe")
"""Keys that a comparison of runs leaves out. A recipe is not among them: people compare recipes by name."""

"""Names of the run format: one list that writer, reader and documentation share."""

FORMAT = "sigmapca-run"
FORMAT_VERSION = 2
"""The newest version; older programs may read a run that lacks what is new in it, and it is written as such."""
NEWER: dict[str, int] = {"whitening_left": 2}
"""Arrays that a program of an older version would miss: the version of a run that has them; all others have 1."""
CHECKPOINT_FORMAT = "sigmapca-checkpoint"
CHECKPOINT_VERSION = 1

RUN_FILE = "run.h5"
METRICS_FILE = "metrics.jsonl"
CHECKPOINT_FILE = "checkpoint.h5"
LOG_FILE = "train.log"
ERROR_FILE = "error.json"  # why a job of a sweep failed
TRACKERS_FILE = "trackers.json"  # {tracker: the id that it gave the run}
OUTPUTS_VARIABLE = "SIGMAPCA_OUTPUTS"

RUNNING, FINISHED, FAILED, INTERRUPTED = "running", "finished", "failed", "interrupted"
STATUSES = (RUNNING, FINISHED, FAILED, INTERRUPTED)

# Arrays at the root of run.h5. The axes are named because two of them may have the same length.
ARRAYS: dict[str, tuple[str, ...]] = {
    "filters": ("feature", "component"),
    "sigma": ("component",),
    "encoder": ("feature", "component"),
    "decoder": ("component", "feature"),
    "rotation": ("component", "rotated"),
    "mean": ("feature",),
    "feature_name": ("feature",),
    "clip": ("bound", "feature"),
    "grid_place": ("feature",),
    "grid_shape": ("grid_dimension",),
    "grid_name": ("grid_dimension",),
    "grid_coordinates": ("grid_step",),
    "scale": ("feature",),
    "whitening": ("feature", "whitened"),
    "whitening_left": ("feature", "whitened_rank"),
    "whitening_right": ("feature", "whitened_rank"),
    "truth_filters": ("feature", "source"),
    "truth_sources": ("row", "source"),
    "truth_mixing": ("feature", "source"),
}

# What this program reads again of /evaluation: dimensions of the numbers, None where they may be any.
EVALUATION: dict[str, int | None] = {
    **dict.fromkeys(("angle", "converged", "mcc", "mcc_chance", "explained_variance", "lam", "steps"), 0),
    **dict.fromkeys(
        ("orthogonality_error", "reconstruction_error", "unit_norm_error", "sigma_error", "amari"), 0
    ),
    **dict.fromkeys(("correlation", "filter_change", "total_variance", "relative_gradient"), 0),
    **dict.fromkeys(("pca_sigma", "trained_sigma", "truth_similarity"), 1),
    **dict.fromkeys(("identifiability/expected_cosine", "identifiability/identified"), 1),
    **dict.fromkeys(("kurtosis", "negentropy"), 1),
    "identifiability/verdict": 2,
    "a": None,
    "unstable_pairs": None,
}

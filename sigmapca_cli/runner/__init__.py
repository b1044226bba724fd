"""The life of a run: from a job to a finished folder."""

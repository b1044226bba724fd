"""The run directory: written aside and replaced, read lazily, found by name, owned by one process."""

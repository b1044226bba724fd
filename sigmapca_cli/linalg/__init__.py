"""Linear algebra that several rooms need."""

"""One HTML file that holds everything about some runs and needs nothing else: no network, no other file."""

"""A stored solution, and its use on new rows: `Solution` is the map, `new_rows` reads rows as the run's data were."""

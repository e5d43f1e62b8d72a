"""Looking at a running server from a terminal: its load, its partitions, its busiest keys."""

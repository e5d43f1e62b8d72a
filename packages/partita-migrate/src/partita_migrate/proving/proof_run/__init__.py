"""One run of `test`: its settings, its results, and what a stopped run leaves for the next."""

"""Functions at work: their processes, and how many there are."""

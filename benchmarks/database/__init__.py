"""Benchmarks of one part of the database each, run by name: `python -m benchmarks.database.shared`."""

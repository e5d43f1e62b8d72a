"""Benchmarks of one part of the database each, such as `python -m benchmarks.database.shared`."""

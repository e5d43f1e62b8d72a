"""Modules that all others may use: clock, checksums, limits, settings, wildcards, processes."""

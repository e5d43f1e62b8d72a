"""What every room may use: clock, checksums, limits, settings, wildcards, child processes."""

"""Access patterns: what an application asks of its data, written by people or mined from
statements."""

"""Checks of a design under load and after a loss: concurrent writes, stated rates and peaks,
restores."""

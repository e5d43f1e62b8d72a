"""Rows of the source on this machine: staged for a run of `test`, or kept for as long as a move
lasts."""

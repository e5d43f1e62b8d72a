"""Rows of the source on their way: staged by `test`, kept by a move for as long as it lasts."""

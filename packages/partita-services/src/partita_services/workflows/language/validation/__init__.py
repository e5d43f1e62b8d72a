"""Checks of definitions: everything that is wrong is reported at once."""

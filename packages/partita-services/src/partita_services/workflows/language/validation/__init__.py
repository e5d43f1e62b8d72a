"""Validation of definitions. Everything that is wrong is reported at once."""

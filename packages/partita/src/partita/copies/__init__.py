"""Copies of a whole database, taken while it is served, outside of its data folder."""

"""Capacity: what requests cost in read and write units."""

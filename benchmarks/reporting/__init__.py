"""Turns results into the benchmark page and its chart."""

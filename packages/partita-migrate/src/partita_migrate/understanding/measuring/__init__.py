"""Measures sampled rows: item sizes, key skew, heat, nulls, ranges and growth.

`table_sampling` draws rows, `table_figures` sums them up, and the other modules derive the figures
of `analysis.py` from the sums.
"""

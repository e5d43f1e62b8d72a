"""Sampled rows and what they tell: item sizes, key skew, heat, nulls, ranges, growth.

`sampling` draws rows, `reading` asks for them so that nothing is lost, `figures` adds them up; the
other modules turn sums into the words of `analysis.py`.
"""

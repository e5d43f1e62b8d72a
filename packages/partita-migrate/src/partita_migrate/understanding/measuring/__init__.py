"""Samples rows and measures them: item sizes, key skew, hot keys, NULLs, value ranges, growth.

`table_sampling` draws rows, and `table_figures` adds them up while they stream by. `key_skew`,
`key_heat`, `percentiles` and `table_growth` turn the sums into the figures of `analysis.json`.
"""

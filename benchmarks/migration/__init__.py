"""Benchmarks of `partita migrate`: its tests, loading, following and cutover."""

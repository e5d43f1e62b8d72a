"""Fifty tests of a small order service, written once and run on every backend.

    python -m benchmarks.suite

measures the time of the whole suite as a user of `pytest` sees it, with the start of Python and of
the backend, and fresh tables for every test. `shop.py` is the service, `tables.py` has the data of
every test, and `backends.py` the databases.
"""

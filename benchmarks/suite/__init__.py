"""Fifty tests of a small order service, written once and run on every backend.

    python -m benchmarks.suite

measures how long the whole suite takes, as somebody who runs `pytest` waits for it: with the start
of Python, of the backend, and with fresh tables for every test. `shop.py` is the service,
`tables.py` what every test finds, `backends.py` what it runs on.
"""

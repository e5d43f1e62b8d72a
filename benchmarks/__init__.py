"""Measures Partita, its peers and the theoretical limit, in one run on one machine.

`python -m benchmarks` (or `make bench`) compares servers, in this order:

    servers/     fetches the peers into .peers/ and starts each server in each of its modes;
                 bare_loop.py is the limit: the same storage work and nothing else
    workload/    the same items for every server, the requests, and the right answers
    drivers/     send the requests, with wrk or, where it cannot be installed, raw sockets
    run.py       starts, fills, checks and measures
    reporting/   writes docs/explanation/benchmarks.md and its chart

The other folders hold benchmarks of one subject each, such as `python -m
benchmarks.database.shared`; suite/ runs a small order service on every backend.
"""

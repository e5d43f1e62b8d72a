"""How fast Partita is, beside its peers and beside the limit, in one run on one machine.

`python -m benchmarks` (or `make bench`) tells the story in this order:

    peers.py       fetches the peers into .peers/
    servers.py     what can be started, in which modes, and how
    dataset.py     the same items for every server
    operations.py  the requests of each operation, and what a right answer is
    wrk_driver.py         drives them with wrk; socket_driver.py does where there is no wrk
    run.py         starts, fills, checks and measures
    bare_loop.py   the limit: the same storage work with nothing in between
    targets.py     what is to be reached
    report.py      docs/explanation/benchmarks.md, with chart.py for the plot
"""

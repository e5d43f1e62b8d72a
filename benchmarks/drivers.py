"""Which driver there is: wrk, or our own where it cannot be had."""

from __future__ import annotations

from pathlib import Path

from benchmarks import sockets, wrk
from benchmarks.load import Driver


def choose(folder: Path) -> Driver:
    """The folder is for what the driver writes."""
    found = wrk.find()
    return wrk.Wrk(found, folder) if found else sockets.Sockets()

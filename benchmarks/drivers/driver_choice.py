"""Which driver there is: wrk, or our own where it cannot be had."""

from __future__ import annotations

from pathlib import Path

from benchmarks.drivers import socket_driver, wrk_driver
from benchmarks.drivers.load import Driver


def choose(folder: Path) -> Driver:
    """The folder is for what the driver writes."""
    found = wrk_driver.find()
    return wrk_driver.Wrk(found, folder) if found else socket_driver.Sockets()

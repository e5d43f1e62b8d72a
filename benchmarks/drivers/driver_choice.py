"""Chooses the driver: wrk, or our own if wrk cannot be installed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.drivers import socket_driver, wrk_driver
from benchmarks.drivers.load import Driver


def choose(folder: Path) -> Driver:
    """Returns the driver; it writes its scripts to the folder."""
    found = wrk_driver.find()
    return wrk_driver.Wrk(found, folder) if found else socket_driver.Sockets()

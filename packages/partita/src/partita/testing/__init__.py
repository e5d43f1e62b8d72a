"""A real database for test suites: private, in memory, with a clock, faults and branches.

    with partita.testing.server() as endpoint_url: ...
    with partita.testing.in_process() as session: ...
    with partita.testing.intercept() as database: ...
    with partita.testing.database() as database: ...

docs/testing.md shows them in use. What is named here is the public interface.
"""

from __future__ import annotations

from partita.testing.clock import VirtualClock
from partita.testing.contexts import in_process, intercept, server
from partita.testing.embedded import Database, database
from partita.testing.faults import Fault, Faults

__all__ = [
    "Database",
    "Fault",
    "Faults",
    "VirtualClock",
    "database",
    "in_process",
    "intercept",
    "server",
]

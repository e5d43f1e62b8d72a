"""A real database for test suites: private, in memory, with a clock, faults and branches.

    with partita.testing.server() as endpoint_url: ...
    with partita.testing.in_process() as session: ...
    with partita.testing.intercept() as database: ...
    with partita.testing.database() as database: ...

docs/how-to/test-with-partita.md shows them in use. The names in `__all__` are the public interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.testing.database_contexts import in_process, intercept, server
    from partita.testing.fault_injection import Fault, Faults
    from partita.testing.private_database import Database, database
    from partita.testing.virtual_clock import VirtualClock

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


def __getattr__(name: str) -> Any:
    """Imports the public names on first use.

    pytest imports this package in every run, because its plugin is in here. It must not load the
    database for a test suite that does not use it.
    """
    if name in __all__:
        from partita.testing import (
            database_contexts,
            fault_injection,
            private_database,
            virtual_clock,
        )

        for module in (virtual_clock, database_contexts, private_database, fault_injection):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""A real database for test suites: private, in memory, with a clock, faults and branches.

    with partita.testing.server() as endpoint_url: ...
    with partita.testing.in_process() as session: ...
    with partita.testing.intercept() as database: ...
    with partita.testing.database() as database: ...

docs/testing.md shows them in use. The names in `__all__` are the public interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    """Imports the public names on first use.

    pytest imports this package in every run, because its plugin is in here. It must not load the
    database for a test suite that does not use it.
    """
    if name in __all__:
        from partita.testing import clock, contexts, embedded, faults

        for module in (clock, contexts, embedded, faults):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

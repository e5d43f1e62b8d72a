"""Context managers that serve a database: on a port, in process, or to all clients of the process.

Each creates a new database unless it is passed one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from partita.testing import boto_transport, listener_thread
from partita.testing.private_database import Database
from partita.testing.private_database import database as new_database


@contextmanager
def server(
    database: Database | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    allowed_origins: Sequence[str] = (),
) -> Iterator[str]:
    """Serve on a port, by default a free one, in a thread; yields the endpoint's URL.

    Like every server, it looks for expired items once a second. Pages of the allowed origins may
    use it from a browser.
    """
    with (
        _existing_or_new(database) as served,
        listener_thread.in_thread(served, host, port, allowed_origins) as url,
    ):
        yield url


@contextmanager
def in_process(database: Database | None = None) -> Iterator[Any]:
    """Yields a boto3 session whose DynamoDB clients and resources call the database directly."""
    with _existing_or_new(database) as target:
        yield target.session()


@contextmanager
def intercept(database: Database | None = None) -> Iterator[Database]:
    """Make every DynamoDB client of this process call the database, even clients created before.

    It is also a decorator: `@intercept()`. Meanwhile the environment has dummy credentials, and a
    region unless one was set. Requests to other services are sent as usual.
    """
    with _existing_or_new(database) as target, boto_transport.intercepted(target.answer):
        yield target


def _existing_or_new(database: Database | None) -> Any:
    return new_database() if database is None else nullcontext(database)

"""The ways to a database, as context managers: over a port, in process, or under every client.

Each makes a new database unless it is given one.
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
    """Serve on a port, a free one by default, in a thread of its own; gives the endpoint's URL.

    Like every server, it looks once a second for what has expired. Pages of the allowed origins
    may use it from a browser.
    """
    with (
        _given_or_new(database) as served,
        listener_thread.in_thread(served, host, port, allowed_origins) as url,
    ):
        yield url


@contextmanager
def in_process(database: Database | None = None) -> Iterator[Any]:
    """A boto3 session whose DynamoDB clients and resources call the database, without a port."""
    with _given_or_new(database) as called:
        yield called.session()


@contextmanager
def intercept(database: Database | None = None) -> Iterator[Database]:
    """Every DynamoDB client of this process calls the database, also those made before.

    Also a decorator: `@intercept()`. Meanwhile the environment has made-up credentials, and a
    region if it had none; requests to other services are sent as usual.
    """
    with _given_or_new(database) as called, boto_transport.intercepted(called.answer):
        yield called


def _given_or_new(database: Database | None) -> Any:
    return new_database() if database is None else nullcontext(database)

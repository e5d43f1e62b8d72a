"""The interface of a database: `EmbeddedDatabase` and `SharedDatabase` implement it.

An embedded database decides every request at once, on one thread. A database that several servers
share fetches what requests need in rounds, and may decide a request more than once. mypy and
`tests/shared/test_database_interface.py` check that both do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from partita.database.execution.optimistic.drafts import ValueDraft
from partita.database.execution.response_cache import ResponseCache
from partita.database.operations.operation_context import (
    DatabaseService,
    PermittedRequest,
    ReadHandler,
    WriteHandler,
)

Done = Callable[[Any], None]
"""A callback with the answer or the error."""
AnswerLater = Callable[[Done], None]
"""Starts a read, which calls back later."""


class DatabaseInterface(Protocol):
    """A database as dispatchers, companions and the queue of large requests see it."""

    @property
    def service(self) -> DatabaseService: ...

    def start(self, lead: Callable[[bool], None]) -> None:
        """Start the background work.

        Only one server at a time does it. `lead` is called with True when this server becomes that
        one, and with False when it stops being it. An embedded database leads at once.
        """

    def read(
        self,
        handler: ReadHandler,
        permitted: PermittedRequest,
        cache_key: bytes = b"",
        cache: ResponseCache | None = None,
    ) -> bytes | AnswerLater:
        """Returns the answer of a read, or a function that starts the read and calls back.

        An answer that is returned may also be put into the cache, under its key.
        """

    def read_now(self, handler: ReadHandler, permitted: PermittedRequest) -> bytes:
        """Returns the answer of a read that needs only the catalog and measurements in memory.

        It works even while the storage cannot be reached.
        """

    def write(self, handler: WriteHandler, permitted: PermittedRequest, done: Done) -> None:
        """Run a write, and call `done` with its answer or its error when it is durable."""

    # For requests that another process decides.

    def get(self, key: bytes, done: Done, *, is_latest: bool) -> None:
        """Call `done` with a stored value or None: the latest value that was decided, as writes see
        it, or the committed value, as reads see it."""

    def is_held(self, key: bytes) -> bool:
        """True while an item is part of a transaction that is not committed yet."""

    def commit_draft(self, draft: ValueDraft, done: Done) -> None:
        """Apply a draft, and call `done` with its answer when it is durable, or with
        ConflictDetected. A draft that only reads is confirmed: its read set must be unchanged.
        """

    def deferred(self, done: Done) -> Done | None:
        """Returns `done` for a request that is decided later, after the call that submitted it has
        returned; None if the request must be decided now."""

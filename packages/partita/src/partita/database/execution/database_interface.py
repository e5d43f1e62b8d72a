"""The interface of a database, as servers use it; an embedded and a shared database have it.

An embedded database decides every request at once, on one thread. A database that several servers
share fetches what requests need in rounds, and may decide a request more than once.
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
"""Is called with the answer, or with the error."""
AnswerLater = Callable[[Done], None]
"""A read that is under way once it is called."""


class DatabaseInterface(Protocol):
    @property
    def service(self) -> DatabaseService: ...

    def start(self, lead: Callable[[bool], None]) -> None:
        """Start the background work. `lead` is called with True when this server becomes the one
        that does it, and with False when it is no longer; an embedded database leads at once."""

    def read(
        self,
        handler: ReadHandler,
        permitted: PermittedRequest,
        cache_key: bytes = b"",
        cache: ResponseCache | None = None,
    ) -> bytes | AnswerLater:
        """The answer of a read, where it can be had at once; it may go into the cache, under its
        key. Otherwise a function that starts the read, and calls back with its answer."""

    def read_now(self, handler: ReadHandler, permitted: PermittedRequest) -> bytes:
        """The answer of a read that needs only what is in memory: the catalog, and measurements.
        It is given even while the storage cannot be reached."""

    def write(self, handler: WriteHandler, permitted: PermittedRequest, done: Done) -> None:
        """Run a write, and call `done` with its answer or its error when it is durable."""

    # For requests that another process decides.

    def get(self, key: bytes, done: Done, *, is_latest: bool) -> None:
        """Call `done` with one stored value or None: the latest that was decided, as writes see it,
        or the committed one, as reads do."""

    def is_held(self, key: bytes) -> bool:
        """True while an item is part of a transaction that is not committed yet."""

    def commit_draft(self, draft: ValueDraft, done: Done) -> None:
        """Apply a draft, and call `done` with its answer when it is durable, or with
        ConflictDetected. A draft that only reads is confirmed: its read set must be unchanged.
        """

    def deferred(self, done: Done) -> Done | None:
        """`done` for a request that is decided after the call that brought it has returned; None if
        it must be decided before."""

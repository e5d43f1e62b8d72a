"""PostgreSQL as a storage engine, with the statements of servers, for the suite of all engines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
from psycopg import AsyncConnection, IsolationLevel

from partita.database.shared.rounds.fetched_view import FetchedView, Pair, bucket_of
from partita.database.shared.rounds.round_runner import fetch_misses
from partita.database.shared.stored_snapshot import StoredSnapshot
from partita.database.storage.engine import Changes, CommitArchive
from partita.database.storage.postgresql.optimistic_commit import commit
from partita.database.storage.postgresql.postgresql_pool import SESSION
from partita.database.storage.postgresql.trip_plans import CommitPlan
from partita.database.tables.table_layout import ITEMS

_tokens = count(1 << 42)


class FetchedSnapshot:
    """Reads as requests do: fetches what is missing, in pages, until nothing is."""

    def __init__(self, runner: asyncio.Runner, connection: AsyncConnection[Any]) -> None:
        self._runner = runner
        self._connection = connection

    def get(self, key: bytes) -> bytes | None:
        view = FetchedView()
        while True:
            value = view.get(key)
            if not view.has_misses:
                return value
            self._fetch(view)

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        view = FetchedView()
        while True:
            pairs = list(view.range(start, stop, reverse=reverse))
            if not view.has_misses:
                yield from pairs
                return
            self._fetch(view)

    def _fetch(self, view: FetchedView) -> None:
        self._runner.run(fetch_misses(self._connection, view))
        view.begin_run()


class ItemsOnly:
    """Stores all keys as those of items, because other key spaces have tables of their own."""

    def __init__(self, below: Any) -> None:
        self._below = below

    def get(self, key: bytes) -> bytes | None:
        found: bytes | None = self._below.get(ITEMS + key)
        return found

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        for key, value in self._below.range(ITEMS + start, ITEMS + stop, reverse=reverse):
            yield key.removeprefix(ITEMS), value


class PostgresqlEngine:
    """An engine whose snapshot is a transaction, on a connection as requests or checks use it."""

    waits_for_disk = True

    def __init__(self, url: str, *, is_at_rest: bool) -> None:
        self._runner = asyncio.Runner()
        self._writing = self._runner.run(AsyncConnection.connect(url, **SESSION))
        self._at_rest = psycopg.connect(url, **SESSION)
        self._fetching = self._runner.run(AsyncConnection.connect(url, **SESSION))
        self._snapshot = ItemsOnly(
            StoredSnapshot(self._at_rest)
            if is_at_rest
            else FetchedSnapshot(self._runner, self._fetching)
        )
        self._begin()

    def snapshot(self) -> ItemsOnly:
        return self._snapshot

    def commit(self, changes: Changes) -> None:
        row = self._at_rest.execute("SELECT version FROM partita_catalog").fetchone()
        plan = CommitPlan(next(_tokens), 0 if row is None else row[0])
        plan.changes = {ITEMS + key: value for key, value in changes.items()}
        self._runner.run(commit(self._writing, plan, bucket_of))

    def refresh(self) -> None:
        self._end()
        self._begin()

    def archive_to(self, archive: CommitArchive) -> None:
        raise NotImplementedError("Commits are archived by PostgreSQL's own statements.")

    def close(self) -> None:
        self._end()
        self._at_rest.close()
        for connection in (self._writing, self._fetching):
            self._runner.run(connection.close())
        self._runner.close()

    def _begin(self) -> None:
        begin = f"BEGIN ISOLATION LEVEL {IsolationLevel.REPEATABLE_READ.name.replace('_', ' ')}"
        # The snapshot of a transaction is taken by its first query.
        for statement in (begin, "SELECT count(*) FROM partita_format"):
            self._at_rest.execute(statement)
            self._runner.run(self._fetching.execute(statement))

    def _end(self) -> None:
        self._at_rest.execute("ROLLBACK")
        self._runner.run(self._fetching.execute("ROLLBACK"))

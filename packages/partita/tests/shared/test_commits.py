"""Commits check versions, absence, lease and catalog; the outcome of a lost one is found out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from partita.database.shared.rounds.fetched_view import bucket_of
from partita.database.storage.engine import ConflictDetected
from partita.database.storage.postgresql import postgresql_schema
from partita.database.storage.postgresql.batch_fetch import fetch
from partita.database.storage.postgresql.optimistic_commit import (
    CatalogMoved,
    LeaseLost,
    OutcomeUnknown,
    check_and_change,
    commit,
    finish,
    is_committed,
    on_all_copies,
)
from partita.database.storage.postgresql.postgresql_pool import connected
from partita.database.storage.postgresql.trip_plans import (
    ABSENT,
    CommitPlan,
    FencingLease,
    FetchPlan,
)
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

Connection = AsyncConnection[Any]
Test = Callable[[Connection, Connection], Awaitable[None]]

KEY, OTHER = b"\x10\x00\x00\x00\x01" + bytes(16), b"\x10\x00\x00\x00\x01" + bytes(15) + b"\x01"

_tokens = count(1 << 41)


@pytest.fixture(scope="module")
def url(postgresql: PostgreSQL) -> Iterator[str]:
    url = storage_url(postgresql, "commits")

    async def init() -> None:
        async with connected(url) as connection:
            await postgresql_schema.init(connection, {})

    asyncio.run(init())
    yield url


@asynccontextmanager
async def two(url: str) -> AsyncIterator[tuple[Connection, Connection]]:
    """Connections of two servers to a database without rows."""
    async with connected(url) as first, connected(url) as second:
        await first.execute("TRUNCATE partita_rows, partita_leases")
        yield first, second


def run(url: str, test: Test) -> None:
    async def of_two() -> None:
        async with two(url) as connections:
            await test(*connections)

    asyncio.run(of_two())


async def plan(connection: Connection, **more: Any) -> CommitPlan:
    cursor = await connection.execute("SELECT version FROM partita_catalog")
    (version,) = await cursor.fetchone() or (0,)
    return CommitPlan(next(_tokens), version, **more)


async def put(connection: Connection, key: bytes = KEY, value: bytes | None = b"value") -> int:
    """Puts a row, and returns its version."""
    made = await plan(connection, changes={key: value})
    await commit(connection, made, bucket_of)
    return made.token


async def stored(connection: Connection) -> dict[bytes, tuple[bytes, int]]:
    fetched = await fetch(connection, FetchPlan((KEY, OTHER), (), (), ()), bucket_of)
    return {row.key: (row.value, row.version) for row in fetched.rows}


def test_an_item_deleted_and_created_again_is_not_the_one_that_was_read(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        seen = await put(first)
        await put(second, value=None)
        again = await put(second)
        assert again != seen
        for change in ({KEY: b"new"}, {KEY: None}, {OTHER: b"rests on it"}):
            late = await plan(first, checks={KEY: seen}, changes=change)
            with pytest.raises(ConflictDetected) as lost:
                await commit(first, late, bucket_of)
            assert lost.value.keys == {KEY}
        assert await stored(first) == {KEY: (b"value", again)}

    run(url, test)


def test_of_two_that_found_each_others_items_absent_one_is_overtaken(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        one = await plan(first, checks={KEY: ABSENT, OTHER: ABSENT}, changes={OTHER: b"1"})
        another = await plan(second, checks={KEY: ABSENT, OTHER: ABSENT}, changes={KEY: b"2"})
        await check_and_change(first, one, bucket_of, begins=True)
        waiting = asyncio.create_task(commit(second, another, bucket_of))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await finish(first, one, bucket_of)
        with pytest.raises(ConflictDetected) as lost:
            await waiting
        assert OTHER in lost.value.keys
        assert await stored(second) == {OTHER: (b"1", one.token)}

    run(url, test)


def test_a_commit_that_was_decided_with_another_catalog_changes_nothing(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        made = await plan(first, changes={KEY: b"misses the index"})
        await second.execute("UPDATE partita_catalog SET version = version + 1")
        with pytest.raises(CatalogMoved):
            await commit(first, made, bucket_of)
        assert not await stored(first)

    run(url, test)


def test_the_catalog_stands_still_while_a_commit_is_under_way(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        made = await plan(first, checks={KEY: ABSENT}, changes={KEY: b"value"})
        await check_and_change(first, made, bucket_of, begins=True)
        await second.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await second.execute("SELECT 1 FROM partita_catalog FOR UPDATE")
        # Other commits are not blocked.
        await put(second, OTHER)
        await finish(first, made, bucket_of)
        assert (await stored(second)).keys() == {KEY, OTHER}

    run(url, test)


def test_the_catalog_stands_still_while_a_commit_in_one_round_trip_is_under_way(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        made = await plan(first, changes={KEY: b"value"})
        async with connected(url) as blocker:
            await blocker.execute("BEGIN")
            # The commit waits here, in the middle of its round trip.
            await blocker.execute("LOCK TABLE partita_commits IN EXCLUSIVE MODE")
            committing = asyncio.create_task(commit(first, made, bucket_of))
            try:
                while not await _waits(second, first):
                    assert not committing.done()
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    await second.execute("SELECT 1 FROM partita_catalog FOR UPDATE NOWAIT")
            finally:
                await blocker.execute("ROLLBACK")
                await committing
        assert (await stored(second)).keys() == {KEY}

    run(url, test)


async def _waits(connection: Connection, other: Connection) -> bool:
    """True if the other connection waits for a lock."""
    cursor = await connection.execute(
        "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s",
        [other.info.backend_pid],
    )
    return await cursor.fetchone() == (True,)


def test_what_a_former_leader_commits_does_not_count(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        lease = "INSERT INTO partita_leases VALUES ('upkeep', 1, 7, now() + interval '1 minute')"
        await second.execute(lease)
        led = await plan(first, changes={KEY: b"led"}, lease=FencingLease("upkeep", 7))
        await commit(first, led, bucket_of)
        late = await plan(first, changes={KEY: b"late"}, lease=FencingLease("upkeep", 7))
        await second.execute("UPDATE partita_leases SET token = 8, holder = 2")
        with pytest.raises(LeaseLost):
            await commit(first, late, bucket_of)
        assert await stored(first) == {KEY: (b"led", led.token)}

    run(url, test)


def test_nobody_takes_the_lease_while_a_commit_under_it_is_under_way(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        lease = "INSERT INTO partita_leases VALUES ('upkeep', 1, 7, now() - interval '1 minute')"
        await second.execute(lease)
        led = await plan(first, changes={KEY: b"led"}, lease=FencingLease("upkeep", 7))
        await check_and_change(first, led, bucket_of, begins=True)
        await second.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await second.execute("UPDATE partita_leases SET token = 8, holder = 2")
        await finish(first, led, bucket_of)
        await second.execute("UPDATE partita_leases SET token = 8, holder = 2")
        assert await stored(second) == {KEY: (b"led", led.token)}

    run(url, test)


def test_a_commit_whose_answer_was_lost_is_found_by_its_token(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        made = await plan(first, changes={KEY: b"value"})
        await commit(first, made, bucket_of)
        assert await is_committed(second, made.token)
        assert await is_committed(second, made.token)

    run(url, test)


def test_who_asks_for_a_commit_that_was_not_there_keeps_it_from_ever_coming(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        made = await plan(first, changes={KEY: b"late"})
        await check_and_change(first, made, bucket_of, begins=True)
        assert not await is_committed(second, made.token)
        with pytest.raises(psycopg.errors.UniqueViolation):
            await finish(first, made, bucket_of)
        assert not await stored(second)
        # A write that is decided again is a new commit.
        await put(first)
        assert await stored(second)

    run(url, test)


def test_a_commit_under_way_is_waited_for_by_who_asks_what_became_of_it(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        made = await plan(first, changes={KEY: b"value"})
        await check_and_change(first, made, bucket_of, begins=True)
        await first.execute("INSERT INTO partita_commits (token) VALUES (%s)", [made.token])
        asking = asyncio.create_task(is_committed(second, made.token))
        await asyncio.sleep(0.1)
        assert not asking.done()
        await first.execute("COMMIT")
        assert await asking

    run(url, test)


def test_a_commit_that_postgresql_warns_of_has_an_unknown_outcome(url: str) -> None:
    async def test(first: Connection, second: Connection) -> None:
        with pytest.raises(OutcomeUnknown, match="only here"):
            async with on_all_copies(first):
                await first.execute("DO $$ BEGIN RAISE WARNING 'only here'; END $$")
        async with on_all_copies(first):
            await first.execute("DO $$ BEGIN RAISE NOTICE 'all is well'; END $$")

    run(url, test)

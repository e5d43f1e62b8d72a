"""An embedded and a shared database do the same, through one interface."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from partita.database.execution.database_interface import DatabaseInterface
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.execution.optimistic.drafts import ValueDraft
from partita.database.operations.operation_context import PermittedRequest
from partita.database.operations.operation_registry import READS, WRITES
from partita.database.shared.shared_database import SharedDatabase
from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.engine import ConflictDetected
from partita.database.storage.postgresql import postgresql_schema
from partita.database.storage.postgresql.postgresql_pool import connected
from partita.database.tables import table_layout
from partita.database.tables.table_statistics import statistics_value
from partita.errors import ConditionalCheckFailedException, ResourceNotFoundException
from partita.foundation.clock import system_clock
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

TABLE = {
    "TableName": "things",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
}


class Caller:
    """Calls a database, and waits for its answers."""

    def __init__(self, database: DatabaseInterface) -> None:
        self.database = database

    async def call(self, operation: str, **request: Any) -> dict[str, Any]:
        answered = asyncio.get_running_loop().create_future()
        permitted = PermittedRequest({"TableName": "things", **request})
        if operation in WRITES:
            self.database.write(WRITES[operation], permitted, answered.set_result)
            return _decoded(await answered)
        answer = self.database.read(READS[operation], permitted)
        if not isinstance(answer, bytes):
            answer(answered.set_result)
            answer = await answered
        return _decoded(answer)

    async def put(self, name: str, **more: Any) -> None:
        await self.call("PutItem", Item={"pk": {"S": name}}, **more)

    async def item(self, name: str) -> Any:
        answer = await self.call("GetItem", Key={"pk": {"S": name}}, ConsistentRead=True)
        return answer.get("Item")

    async def value(self, key: bytes, *, is_latest: bool = True) -> bytes | None:
        fetched = asyncio.get_running_loop().create_future()
        self.database.get(key, fetched.set_result, is_latest=is_latest)
        value: bytes | None = await fetched
        return value

    async def commit(self, draft: ValueDraft) -> Any:
        committed = asyncio.get_running_loop().create_future()
        self.database.commit_draft(draft, committed.set_result)
        return await committed

    def key(self, name: str) -> bytes:
        table = self.database.service.catalog.described("things")
        return table_layout.item_key(table, {"pk": {"S": name}})


def _decoded(answer: Any) -> dict[str, Any]:
    if isinstance(answer, BaseException):
        raise answer
    decoded: dict[str, Any] = orjson.loads(answer)
    return decoded


@asynccontextmanager
async def embedded(postgresql: PostgreSQL) -> AsyncIterator[DatabaseInterface]:
    loop = asyncio.get_running_loop()
    database = EmbeddedDatabase(
        BranchEngine(),
        call_soon=loop.call_soon,
        call_from_thread=loop.call_soon_threadsafe,
        call_later=loop.call_later,
        clock=system_clock,
    )
    yield database
    database.close()


@asynccontextmanager
async def shared(postgresql: PostgreSQL) -> AsyncIterator[DatabaseInterface]:
    url = storage_url(postgresql, "interface")
    async with connected(url) as connection:
        await postgresql_schema.init(connection, {})
    database = await SharedDatabase.open(url, clock=system_clock)
    yield database
    await database.close()


Test = Callable[[Caller], Awaitable[None]]


@pytest.fixture(params=[embedded, shared])
def run(request: pytest.FixtureRequest, postgresql: PostgreSQL) -> Callable[[Test], None]:
    """`run(test)`: the test gets a database with a table."""

    def run(test: Test) -> None:
        async def with_table() -> None:
            async with request.param(postgresql) as database:
                caller = Caller(database)
                await caller.call("CreateTable", **TABLE)
                await test(caller)

        asyncio.run(with_table())

    return run


Run = Callable[[Test], None]


def test_a_write_is_there_for_the_next_read(run: Run) -> None:
    async def test(caller: Caller) -> None:
        await caller.put("a")
        assert await caller.item("a") == {"pk": {"S": "a"}}
        assert await caller.item("b") is None

    run(test)


def test_a_write_that_is_refused_changes_nothing(run: Run) -> None:
    async def test(caller: Caller) -> None:
        with pytest.raises(ConditionalCheckFailedException):
            await caller.put("a", ConditionExpression="attribute_exists(pk)")
        assert await caller.item("a") is None

    run(test)


def test_a_read_that_is_refused_raises_or_answers_the_error(run: Run) -> None:
    async def test(caller: Caller) -> None:
        with pytest.raises(ResourceNotFoundException):
            await caller.call("GetItem", TableName="others", Key={"pk": {"S": "a"}})

    run(test)


def test_what_is_in_memory_is_read_at_once(run: Run) -> None:
    async def test(caller: Caller) -> None:
        answer = caller.database.read_now(READS["ListTables"], PermittedRequest({}))
        assert _decoded(answer) == {"TableNames": ["things"]}

    run(test)


def test_a_stored_value_is_got_by_its_key(run: Run) -> None:
    async def test(caller: Caller) -> None:
        await caller.put("a")
        for is_latest in (True, False):
            assert b'"a"' in (await caller.value(caller.key("a"), is_latest=is_latest) or b"")
            assert await caller.value(caller.key("b"), is_latest=is_latest) is None
        assert not caller.database.is_held(caller.key("a"))

    run(test)


async def draft_of(caller: Caller, *names: str) -> ValueDraft:
    """A draft that has read some items, and answers."""
    draft = ValueDraft()
    for name in names:
        draft.note(caller.key(name), await caller.value(caller.key(name)))
    draft.answer = b'{"is":"done"}'
    return draft


def test_a_draft_is_committed_while_what_it_read_is_unchanged(run: Run) -> None:
    async def test(caller: Caller) -> None:
        await caller.put("a")
        draft = await draft_of(caller, "a", "b")
        draft.changes[caller.key("a")] = None
        assert await caller.commit(draft) == b'{"is":"done"}'
        assert await caller.item("a") is None

    run(test)


@pytest.mark.parametrize("is_read_only", [True, False])
def test_a_draft_conflicts_with_a_write_to_what_it_found_absent(
    run: Run, is_read_only: bool
) -> None:
    async def test(caller: Caller) -> None:
        await caller.put("a")
        draft = await draft_of(caller, "a", "b")
        draft.is_read_only = is_read_only
        if not is_read_only:
            draft.changes[caller.key("a")] = None
        await caller.put("b")
        assert isinstance(await caller.commit(draft), ConflictDetected)
        assert await caller.item("a") is not None

    run(test)


@pytest.mark.parametrize("is_read_only", [True, False])
def test_a_refusal_counts_only_while_what_it_was_decided_on_is_unchanged(
    run: Run, is_read_only: bool
) -> None:
    async def test(caller: Caller) -> None:
        drafts = [await draft_of(caller, "a") for _ in range(2)]
        for draft in drafts:
            draft.answer, draft.is_read_only = ConditionalCheckFailedException(), is_read_only
        assert isinstance(await caller.commit(drafts[0]), ConditionalCheckFailedException)
        await caller.put("a")
        assert isinstance(await caller.commit(drafts[1]), ConflictDetected)

    run(test)


def _with_one_more(counts: bytes) -> bytes:
    items, size = struct.unpack(">qq", counts)
    return statistics_value(items + 1, size)


def test_counts_of_a_draft_are_added_to_those_of_writes_since(run: Run) -> None:
    async def test(caller: Caller) -> None:
        await caller.put("a")
        table = caller.database.service.catalog.described("things")
        counts_key = table_layout.statistics_key(table.number)
        stored = await caller.value(caller.key("a"))
        counts = await caller.value(counts_key)
        draft = await draft_of(caller, "b")
        draft.note(counts_key, counts)
        assert stored is not None and counts is not None
        # As if the item were put once more, under another key.
        draft.changes = {caller.key("b"): stored.replace(b'"a"', b'"b"')}
        draft.changes[counts_key] = _with_one_more(counts)
        await caller.put("c")
        assert await caller.commit(draft) == b'{"is":"done"}'
        described = await caller.call("DescribeTable")
        assert described["Table"]["ItemCount"] == 3

    run(test)


def test_an_answer_may_come_after_the_call_that_asked_for_it(run: Run) -> None:
    async def test(caller: Caller) -> None:
        answers: list[Any] = []
        done = caller.database.deferred(answers.append)
        assert done is not None
        done(b"{}")
        assert answers == [b"{}"]

    run(test)

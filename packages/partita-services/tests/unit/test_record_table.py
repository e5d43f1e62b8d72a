"""Records come out as they went in, no item is too long, and nothing is left behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita import testing
from partita.client import Client
from partita.foundation.service_limits import ITEM_BYTES_MAX, KB
from partita_services import record_table
from partita_services.record_table import RecordTable


@given(st.text())
def test_a_short_record_is_text_that_people_can_read(text: str) -> None:
    item, rest = record_table.pack("p", "s", text.encode(), {"n": {"N": "1"}})
    assert rest == []
    assert item["record"] == {"S": text}
    assert item["n"] == {"N": "1"}
    assert record_table.unpack(item, rest) == text.encode()


@pytest.mark.parametrize("size", [64 * KB, 64 * KB + 1, 350 * KB, 351 * KB, 1000 * KB, 3000 * KB])
@pytest.mark.parametrize("is_random", [True, False])
def test_a_long_record_is_kept_in_items_that_fit(size: int, is_random: bool) -> None:
    chance = random.Random(size)
    letters = "".join(chances if is_random else "a" for chances in chance.choices(ALPHABET, k=size))
    item, rest = record_table.pack("p", "s", letters.encode(), {})
    assert [
        record_table.key("p", further["sk"]["S"]) for further in rest
    ] == record_table.rest_keys(item)
    for one in (item, *rest):
        content = one.get("record") or one["packed"]
        assert len(next(iter(content.values()))) * 3 // 4 < ITEM_BYTES_MAX
    assert record_table.unpack(item, rest) == letters.encode()


ALPHABET = [chr(code) for code in range(33, 127)]


def test_two_records_of_one_key_do_not_share_their_rest() -> None:
    record = random.Random(1).randbytes(1000 * KB).hex().encode()
    first, second = (record_table.pack("p", "s", record, {})[0] for _ in range(2))
    assert first["rest"] != second["rest"]


class Thing(msgspec.Struct):
    text: str


def run(story: Callable[[Client, RecordTable], Awaitable[None]]) -> None:
    """Runs a story with a table of its own on a server of its own."""

    async def main(url: str) -> None:
        client = Client(url)
        await story(client, RecordTable(client, record_table.definition("things")))
        await client.close()

    with testing.database() as database, testing.server(database) as url:
        asyncio.run(main(url))


async def write(client: Client, table: RecordTable, sort: str, text: str) -> None:
    action = await table.put("p", sort, msgspec.json.encode(Thing(text)))
    await table.send("TransactWriteItems", {"TransactItems": [action]})


def test_an_erased_record_leaves_no_further_items() -> None:
    async def story(client: Client, table: RecordTable) -> None:
        long = random.Random(1).randbytes(1000 * KB).hex()
        await write(client, table, "long", long)
        await write(client, table, "short", "short")
        assert len(await table.keys("p")) > 2
        assert await table.all("p", Thing) == [Thing(long), Thing("short")]
        await table.erase("p", "long")
        assert await table.keys("p") == [record_table.key("p", "short")]
        await table.erase("p", "never there")
        await table.erase_all("p")
        assert await table.keys("p") == []

    run(story)


def test_a_table_that_somebody_deletes_is_created_again() -> None:
    async def story(client: Client, table: RecordTable) -> None:
        # Before the first write, the table does not exist either.
        assert await table.find("p", "s", Thing) is None
        await write(client, table, "s", "first")
        await client.call("dynamodb", "DeleteTable", {"TableName": "things"})
        await write(client, table, "s", "second")
        assert await table.find("p", "s", Thing) == Thing("second")
        await client.call("dynamodb", "DeleteTable", {"TableName": "things"})
        await table.delete_all([record_table.key("p", "s")])
        assert await table.find("p", "s", Thing) is None

    run(story)

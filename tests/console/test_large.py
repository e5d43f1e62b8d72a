"""Very much of everything: thousands of tables, millions of items, a hostile day of work."""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Browser
from tests.processes import Server

from .person import Person, wait_for
from .test_shell import FIRST_VIEW_BYTES_MAX

pytestmark = pytest.mark.soak
ITEMS = int(os.environ.get("PARTITA_CONSOLE_ITEMS", "5000000"))
TABLES = 2000
FIRST_VIEW_SECONDS_MAX = 1.0
BATCH = 25
WRITERS = 4
SCHEMA: dict[str, Any] = {
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
HEADERS = {
    "content-type": "application/x-amz-json-1.0",
    "x-amz-target": "DynamoDB_20120810.BatchWriteItem",
    "x-amz-date": "20000101T000000Z",
    "authorization": "AWS4-HMAC-SHA256 Credential=a/20000101/x/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
}


def fill(server: Server, table: str, first: int, last: int) -> None:
    """Items of a hundred to each partition key, in as few words as they can be said."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    for start in range(first, last, BATCH):
        puts = ",".join(
            f'{{"PutRequest":{{"Item":{{"pk":{{"S":"p{n // 100}"}},"sk":{{"N":"{n % 100}"}},'
            f'"n":{{"N":"{n}"}}}}}}}}'
            for n in range(start, min(start + BATCH, last))
        )
        body = f'{{"RequestItems":{{"{table}":[{puts}]}}}}'
        connection.request("POST", "/", body, HEADERS)
        response = connection.getresponse()
        content = response.read()
        assert response.status == 200, content
    connection.close()


def first_view(person: Person, place: str, text: str) -> None:
    """A page that nobody has opened before is small, and there within a second."""
    person.browser.call("Network.clearBrowserCache")
    person.open("#/tables")
    person.browser.open("about:blank")
    began = time.monotonic()
    person.browser.open(f"{person.url}/console{place}")
    person.sees(text)
    seconds = time.monotonic() - began
    script = """performance.getEntriesByType("resource")
        .concat(performance.getEntriesByType("navigation")).map((e) => e.decodedBodySize)"""
    assert sum(person.browser.evaluate(script)) < FIRST_VIEW_BYTES_MAX
    assert seconds < FIRST_VIEW_SECONDS_MAX, f"{place} took {seconds:.2f} s"


def test_two_thousand_tables_are_listed_found_and_opened(
    chromium: Browser, start: Callable[..., Server]
) -> None:
    server = start("serve", "--in-memory", "--port", "0")
    client = server.client()
    for n in range(TABLES):
        client.create_table(TableName=f"many-{n:04}", **SCHEMA)
    person = Person(chromium, server.url)
    first_view(person, "#/tables", "many-0000")
    person.sees("2,000")
    person.sees("1\u2013100 of 2,000")
    person.fills("Filter by name", "many-1999")
    person.sees("many-1999", "#tables")
    person.presses("k", modifiers=2)
    wait_for(lambda: person.focus() == "Command", "the palette")
    person.types("many-1777: settings")
    person.sees("many-1777: settings", "#choices")
    person.presses("Enter")
    person.sees("Recovery to a moment")
    person.open("#/explore")
    person.fills("Which table?", "many-1234")
    person.clicks("many-1234")
    person.sees("The table is empty.")


def test_a_day_of_work_on_millions_of_items(
    chromium: Browser, start: Callable[..., Server], tmp_path: Path
) -> None:
    server = start(
        *("serve", "--port", "0", "--data", tmp_path / "data", "--capacity", "observe"),
        *("--durability", "relaxed"),
    )
    client = server.client()
    client.create_table(TableName="millions", **SCHEMA)
    share = -(-ITEMS // WRITERS)
    writers = [
        threading.Thread(
            target=fill, args=(server, "millions", n * share, min(ITEMS, (n + 1) * share))
        )
        for n in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert client.describe_table(TableName="millions")["Table"]["ItemCount"] == ITEMS
    person = Person(chromium, server.url)
    first_view(person, "#/tables", f"{ITEMS:,}")
    first_view(person, "#/explore/millions", "50 items")

    last = (ITEMS - 1) // 100
    person.fills("pk (partition key)", f"p{last}")
    person.clicks("Query")
    wait_for(lambda: person.cells()[:1] and f"p{last}" in person.cells()[0][1], "the last key")
    key = {"pk": {"S": f"p{last}"}, "sk": {"N": "0"}}

    def stored() -> str:
        return str(client.get_item(TableName="millions", Key=key)["Item"]["n"]["N"])

    before = stored()
    person.clicks(f"p{last}")
    person.fills("Value of n", "-1")
    client.update_item(
        TableName="millions",
        Key=key,
        UpdateExpression="SET n = :n",
        ExpressionAttributeValues={":n": {"N": "-2"}},
    )
    person.clicks("Save")
    person.sees("Somebody has changed this item since you read it.")
    assert stored() == "-2"
    person.clicks("Keep my changes on top of theirs")
    person.clicks("Save")
    person.sees("Item saved.")
    assert stored() == "-1"
    person.clicks("Undo")
    person.sees("Undone.")
    assert stored() == "-2" != before

    for _ in range(300):
        client.get_item(TableName="millions", Key=key)
    person.open("#/heat?table=millions")
    person.sees(f"p{last}", ".heatmap")

"""kill -9 under load: what was acknowledged is there, indexes agree, no transaction is torn."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

TABLE = "table"
ROUNDS = 2
WRITERS = 6
WRITES_BEFORE_THE_KILL = 150


def create_table(client: Any) -> None:
    client.create_table(
        TableName=TABLE,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in (("pk", "S"), ("sk", "N"), ("g", "S"), ("l", "N"))
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "local",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "l", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "global",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(
        TableName=TABLE, WaiterConfig={"Delay": 0.02, "MaxAttempts": 500}
    )


class Load:
    """Writers that remember which writes were acknowledged, and which got no answer."""

    def __init__(self, client: Any, round_number: int) -> None:
        self._client = client
        self._round = round_number
        self._count = 0
        self._lock = threading.Lock()
        self.enough = threading.Event()
        self.puts: dict[tuple[str, str], int] = {}
        """The last acknowledged version of each item."""
        self.unsure: set[tuple[str, str]] = set()
        self.deleted: set[tuple[str, str]] = set()
        self.transactions: set[str] = set()

    def _acknowledged(self) -> None:
        with self._lock:
            self._count += 1
            if self._count >= WRITES_BEFORE_THE_KILL:
                self.enough.set()

    def put_and_delete(self, writer: int) -> None:
        """Writes until stopped: puts its own items twice, and deletes every third one."""
        for number in range(1_000_000):
            key = (f"{self._round}-{writer}", str(number))
            try:
                for version in (1, 2):
                    self.unsure.add(key)
                    self._client.put_item(TableName=TABLE, Item=self._item(key, version))
                    self.puts[key] = version
                    self.unsure.discard(key)
                    self._acknowledged()
                if number % 3 == 0:
                    self.unsure.add(key)
                    self._client.delete_item(
                        TableName=TABLE, Key={"pk": {"S": key[0]}, "sk": {"N": key[1]}}
                    )
                    self.deleted.add(key)
                    self.unsure.discard(key)
                    self._acknowledged()
            except (BotoCoreError, ClientError):
                return

    def transact(self, writer: int) -> None:
        """Three items that belong together."""
        for number in range(1_000_000):
            name = f"t-{self._round}-{writer}-{number}"
            puts = [
                {"Put": {"TableName": TABLE, "Item": self._item((name, str(part)), 1)}}
                for part in range(3)
            ]
            try:
                self._client.transact_write_items(TransactItems=puts)
            except (BotoCoreError, ClientError):
                return
            self.transactions.add(name)
            self._acknowledged()

    def _item(self, key: tuple[str, str], version: int) -> dict[str, Any]:
        return {
            "pk": {"S": key[0]},
            "sk": {"N": key[1]},
            "version": {"N": str(version)},
            # The second version moves in both indexes.
            "g": {"S": f"g{(int(key[1]) + version) % 5}"},
            "l": {"N": str(version)},
            "filler": {"S": "x" * 300},
        }


def everything(client: Any, **request: Any) -> Iterator[dict[str, Any]]:
    for page in client.get_paginator("scan").paginate(TableName=TABLE, **request):
        yield from page["Items"]


def key_of(item: dict[str, Any]) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["N"]


def by_key(items: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=key_of)


def check(client: Any, loads: list[Load]) -> None:
    items = by_key(everything(client))
    found = {key_of(item): int(item["version"]["N"]) for item in items}
    for load in loads:
        for key, version in load.puts.items():
            if key in load.unsure:
                continue
            if key in load.deleted:
                assert key not in found
            else:
                assert found[key] == version
        for name in load.transactions:
            assert [(name, str(part)) in found for part in range(3)] == [True] * 3
    torn = {key[0] for key in found if key[0].startswith("t-")}
    for name in torn:
        assert [(name, str(part)) in found for part in range(3)] == [True] * 3
    for index in ("local", "global"):
        assert by_key(everything(client, IndexName=index)) == items
    description = client.describe_table(TableName=TABLE)["Table"]
    assert description["ItemCount"] == len(items)
    for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        assert description[kind][0]["ItemCount"] == len(items)
        assert description[kind][0]["IndexSizeBytes"] == description["TableSizeBytes"]


def test_what_was_acknowledged_survives_kill_9(serve: Any, tmp_path: Path) -> None:
    loads: list[Load] = []
    server = serve("serve", "--port", "0", "--data", tmp_path)
    create_table(server.client())
    for round_number in range(ROUNDS):
        load = Load(server.client(), round_number)
        loads.append(load)
        with ThreadPoolExecutor(WRITERS) as pool:
            for writer in range(WRITERS):
                pool.submit(load.transact if writer % 3 == 2 else load.put_and_delete, writer)
            assert load.enough.wait(timeout=120)
            server.kill()
        server = serve("serve", "--port", "0", "--data", tmp_path)
        check(server.client(), loads)


def test_an_index_that_was_being_filled_is_complete_after_kill_9(
    serve: Any, tmp_path: Path
) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    client = server.client()
    create_table(client)
    load = Load(client, 0)
    for start in range(0, 1000, 25):
        batch = [
            {"PutRequest": {"Item": load._item(("p", str(number)), 1)}}
            for number in range(start, start + 25)
        ]
        client.batch_write_item(RequestItems={TABLE: batch})
    client.update_table(
        TableName=TABLE,
        AttributeDefinitions=[{"AttributeName": "sk", "AttributeType": "N"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "late",
                    "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    )
    server.kill()
    client = serve("serve", "--port", "0", "--data", tmp_path).client()
    deadline = time.monotonic() + 60
    while True:
        indexes = client.describe_table(TableName=TABLE)["Table"]["GlobalSecondaryIndexes"]
        (late,) = (index for index in indexes if index["IndexName"] == "late")
        if late["IndexStatus"] == "ACTIVE":
            break
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert late["ItemCount"] == 1000
    assert by_key(everything(client, IndexName="late")) == by_key(everything(client))


def test_an_in_memory_server_leaves_nothing_when_killed(serve: Any) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("no /dev/shm here")
    server = serve("serve", "--port", "0", "--in-memory")
    create_table(server.client())
    files = [Path(name) for name in open_files(server.process.pid) if str(memory) in name]
    server.kill()
    assert files
    assert [file for file in files if file.exists()] == []


def open_files(process_id: int) -> Iterator[str]:
    for entry in Path(f"/proc/{process_id}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield os.readlink(entry)

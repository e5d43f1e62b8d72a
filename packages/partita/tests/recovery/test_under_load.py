"""Backups and bases are taken during writes: they are consistent, and do not delay the writes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from testkit.servers import processes

from .test_kill import create, is_active, is_available, items_of, put_many, until

PAIRS = 40


@pytest.fixture
def client(tmp_path: Any) -> Iterator[Any]:
    with processes.starting() as start:
        yield start("serve", "--port", "0", "--data", str(tmp_path / "data")).client()


def write_pairs(client: Any, stop: Event) -> int:
    """Changes both items of a pair in one transaction."""
    count = 0
    while not stop.is_set():
        count += 1
        pair = count % PAIRS
        client.transact_write_items(
            TransactItems=[
                {
                    "Put": {
                        "TableName": "large",
                        "Item": {"pk": {"S": f"{half} {pair}"}, "count": {"N": str(count)}},
                    }
                }
                for half in ("left", "right")
            ]
        )
    return count


def halves(items: dict[str, Any], half: str) -> dict[str, str]:
    return {
        key.removeprefix(half): item["count"]["N"]
        for key, item in items.items()
        if key.startswith(half)
    }


def test_a_backup_under_load_has_no_half_of_a_transaction(client: Any) -> None:
    create(client, "large")
    put_many(client, "large", range(5_000))
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_pairs, client, stop)
        try:
            time.sleep(0.3)
            arns = [
                client.create_backup(TableName="large", BackupName=f"backup{number}")[
                    "BackupDetails"
                ]["BackupArn"]
                for number in range(3)
            ]
            for arn in arns:
                until(lambda arn=arn: is_available(client, arn))
        finally:
            stop.set()
        assert writing.result() > 10
    for number, arn in enumerate(arns):
        client.restore_table_from_backup(TargetTableName=f"copy{number}", BackupArn=arn)
    for number in range(len(arns)):
        until(lambda number=number: is_active(client, f"copy{number}"))
        found = items_of(client, f"copy{number}")
        assert halves(found, "left") == halves(found, "right")
        assert halves(found, "left")
        assert len(found) == 5_000 + len(halves(found, "left")) * 2

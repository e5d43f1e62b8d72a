"""kill -9 during recovery work: acknowledged writes are restored, and nothing is incomplete."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes

SECONDS_MAX = 60
ON = {"PointInTimeRecoveryEnabled": True}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    with processes.starting() as starting:
        yield lambda: starting("serve", "--port", "0", "--data", str(tmp_path / "data"))


def create(client: Any, name: str) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_g",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def put_many(client: Any, name: str, numbers: range) -> None:
    for at in range(numbers.start, numbers.stop, 25):
        items = [
            {"pk": {"S": f"k{number}"}, "g": {"S": f"g{number % 9}"}, "v": {"S": "x" * 200}}
            for number in range(at, min(at + 25, numbers.stop))
        ]
        puts = [{"PutRequest": {"Item": item}} for item in items]
        client.batch_write_item(RequestItems={name: puts})


def items_of(client: Any, name: str, **more: Any) -> dict[str, Any]:
    pages = client.get_paginator("scan").paginate(TableName=name, **more)
    return {item["pk"]["S"]: item for page in pages for item in page["Items"]}


def until(condition: Any) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_active(client: Any, name: str) -> bool:
    return str(client.describe_table(TableName=name)["Table"]["TableStatus"]) == "ACTIVE"


def is_available(client: Any, arn: str) -> bool:
    details = client.describe_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]
    return str(details["BackupStatus"]) == "AVAILABLE"


def restorable(client: Any, name: str) -> bool:
    answer = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    return "EarliestRestorableDateTime" in answer["PointInTimeRecoveryDescription"]


def restored(client: Any, target: str, **source: Any) -> dict[str, Any]:
    client.restore_table_to_point_in_time(TargetTableName=target, **source)
    until(lambda: is_active(client, target))
    found = items_of(client, target)
    assert items_of(client, target, IndexName="by_g") == found
    description = client.describe_table(TableName=target)["Table"]
    assert description["ItemCount"] == len(found)
    return found


def test_recovery_survives_kills_while_it_is_written_to(start: Any, tmp_path: Path) -> None:
    moments: dict[int, dict[str, Any]] = {}
    server = start()
    create(server.client(), "kept")
    server.client().update_continuous_backups(TableName="kept", PointInTimeRecoverySpecification=ON)
    for run in range(2):
        client = server.client()
        until(lambda client=client: restorable(client, "kept"))
        put_many(client, "kept", range(run * 300, run * 300 + 400))
        client.delete_item(TableName="kept", Key={"pk": {"S": f"k{run * 300}"}})
        moment = int(time.time()) + 1
        time.sleep(moment + 0.01 - time.time())
        moments[moment] = items_of(client, "kept")
        put_many(client, "kept", range(run * 300 + 5000, run * 300 + 5050))
        server.kill()
        server = start()
    client = server.client()
    for moment, expected in moments.items():
        found = restored(client, f"at_{moment}", SourceTableName="kept", RestoreDateTime=moment)
        assert found == expected
    server.terminate()
    assert processes.run("check", str(tmp_path / "data")).returncode == 0


def test_backups_and_restores_that_are_killed_are_done_after_the_restart(
    start: Any, tmp_path: Path
) -> None:
    server = start()
    client = server.client()
    create(client, "large")
    with ThreadPoolExecutor(4) as pool:
        ranges = [range(at, at + 750) for at in range(0, 3000, 750)]
        list(pool.map(lambda numbers: put_many(client, "large", numbers), ranges))
    before = items_of(client, "large")
    arn = client.create_backup(TableName="large", BackupName="all")["BackupDetails"]["BackupArn"]
    server.kill()
    server = start()
    client = server.client()
    until(lambda: is_available(client, arn))
    client.delete_table(TableName="large")
    client.restore_table_from_backup(TargetTableName="again", BackupArn=arn)
    for pause in (0.02, 0.05):
        time.sleep(pause)
        server.kill()
        server = start()
        client = server.client()
    until(lambda: is_active(client, "again"))
    assert items_of(client, "again") == before
    assert items_of(client, "again", IndexName="by_g") == before
    assert client.describe_table(TableName="again")["Table"]["ItemCount"] == len(before)
    server.terminate()
    assert processes.run("check", str(tmp_path / "data")).returncode == 0


def test_a_second_backup_costs_what_has_changed(start: Any, tmp_path: Path) -> None:
    server = start()
    client = server.client()
    create(client, "large")
    put_many(client, "large", range(2000))
    chunks = tmp_path / "data" / "recovery" / "chunks"

    def backed_up_bytes() -> int:
        arn = client.create_backup(TableName="large", BackupName="all")["BackupDetails"][
            "BackupArn"
        ]
        until(lambda: is_available(client, arn))
        return sum(path.stat().st_size for path in chunks.rglob("*") if path.is_file())

    first = backed_up_bytes()
    client.delete_item(TableName="large", Key={"pk": {"S": "k1"}})
    second = backed_up_bytes()
    assert second < 1.7 * first
    assert backed_up_bytes() == second
    server.terminate()
    assert processes.run("check", str(tmp_path / "data")).returncode == 0
    spoiled = next(path for path in chunks.rglob("*") if path.is_file())
    spoiled.write_bytes(b"\0" + spoiled.read_bytes()[1:])
    checked = processes.run("check", str(tmp_path / "data"))
    assert checked.returncode != 0
    assert "it cannot be restored" in checked.stdout


def test_item_collections_and_their_sizes_are_restored(start: Any, tmp_path: Path) -> None:
    server = start()
    client = server.client()
    client.create_table(
        TableName="local",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in (("pk", "S"), ("sk", "N"), ("v", "S"))
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by_v",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "v", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    for number in range(60):
        more = {"v": {"S": f"v{number}"}} if number % 3 else {}
        item = {"pk": {"S": f"p{number % 4}"}, "sk": {"N": str(number)}, **more}
        client.put_item(TableName="local", Item=item)
    arn = client.create_backup(TableName="local", BackupName="all")["BackupDetails"]["BackupArn"]
    until(lambda: is_available(client, arn))
    client.restore_table_from_backup(TargetTableName="again", BackupArn=arn)
    until(lambda: is_active(client, "again"))
    put = {"pk": {"S": "p1"}, "sk": {"N": "999"}}
    sizes = [
        client.put_item(TableName=name, Item=put, ReturnItemCollectionMetrics="SIZE")
        for name in ("local", "again")
    ]
    assert sizes[0]["ItemCollectionMetrics"] == sizes[1]["ItemCollectionMetrics"]
    server.terminate()
    # Which adds all sizes up.
    assert processes.run("check", str(tmp_path / "data")).returncode == 0

"""Backups, recovery to a moment, exports and imports of a database that servers share."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from testkit.data.item_tables import active, backed_up, create, item, number, until
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import BUCKET, storage_url

ON = {"PointInTimeRecoveryEnabled": True}


def numbers(client: Any, table: str) -> dict[str, int]:
    pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    return {one["pk"]["S"]: int(one["n"]["N"]) for page in pages for one in page["Items"]}


def recovering(client: Any, table: str) -> None:
    client.update_continuous_backups(TableName=table, PointInTimeRecoverySpecification=ON)

    def has_base() -> bool:
        described = client.describe_continuous_backups(TableName=table)
        of_table = described["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        return "EarliestRestorableDateTime" in of_table

    until(has_base)


@contextmanager
def transfers(clients: list[Any], table: str) -> Iterator[None]:
    """Lets every server move units between two items, in transactions, during the block."""
    is_over = threading.Event()

    def transfer(client: Any, source: str, target: str) -> None:
        while not is_over.is_set():
            moved = [
                {
                    "Update": {
                        "TableName": table,
                        "Key": item(key),
                        "UpdateExpression": "ADD n :n",
                        "ExpressionAttributeValues": {":n": {"N": by}},
                    }
                }
                for key, by in ((source, "-1"), (target, "1"))
            ]
            try:
                client.transact_write_items(TransactItems=moved)
            except client.exceptions.TransactionCanceledException:
                # Another server was faster: try the next transfer.
                continue

    threads = [
        threading.Thread(target=transfer, args=(client, f"a{place}", f"b{place}"))
        for place, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def test_a_backup_while_all_servers_write_has_whole_transactions(clients: list[Any]) -> None:
    first, *_, last = clients
    table = create(first)
    for place in range(len(clients)):
        first.put_item(TableName=table, Item=item(f"a{place}", n=1000))
        first.put_item(TableName=table, Item=item(f"b{place}", n=0))
    with transfers(clients, table):
        time.sleep(0.3)
        arn = backed_up(first, table)
    last.restore_table_from_backup(BackupArn=arn, TargetTableName=f"{table}_restored")
    active(first, f"{table}_restored")
    found = numbers(first, f"{table}_restored")
    assert sorted(found) == sorted(numbers(last, table))
    assert [found[f"a{n}"] + found[f"b{n}"] for n in range(len(clients))] == [1000] * len(clients)
    assert any(found[f"b{n}"] for n in range(len(clients)))


def test_a_table_is_restored_to_a_moment_between_writes_of_two_servers(clients: list[Any]) -> None:
    first, second, _ = clients
    table = create(first)
    first.put_item(TableName=table, Item=item("before", n=1))
    recovering(second, table)
    first.put_item(TableName=table, Item=item("kept", n=1))
    second.update_item(
        TableName=table,
        Key=item("kept"),
        UpdateExpression="SET n = :n",
        ExpressionAttributeValues={":n": {"N": "2"}},
    )
    second.delete_item(TableName=table, Key=item("before"))
    # Recovery times are given in whole seconds.
    moment = time.time() + 1.0
    time.sleep(2.1)
    first.put_item(TableName=table, Item=item("kept", n=3))
    second.put_item(TableName=table, Item=item("later", n=1))
    second.restore_table_to_point_in_time(
        SourceTableName=table,
        TargetTableName=f"{table}_then",
        RestoreDateTime=datetime.fromtimestamp(moment, UTC),
    )
    active(first, f"{table}_then")
    assert numbers(first, f"{table}_then") == {"kept": 2}
    assert numbers(first, table) == {"kept": 3, "later": 1}


def test_a_table_is_exported_and_imported(clients: list[Any]) -> None:
    first, second, third = clients
    table = create(first)
    recovering(first, table)
    for place in range(20):
        second.put_item(TableName=table, Item=item(f"k{place}", n=place))
    described = third.describe_table(TableName=table)["Table"]
    asked = third.export_table_to_point_in_time(
        TableArn=described["TableArn"], S3Bucket=BUCKET, S3Prefix=table
    )
    arn = asked["ExportDescription"]["ExportArn"]

    def done() -> Any:
        found = first.describe_export(ExportArn=arn)["ExportDescription"]
        return found if found["ExportStatus"] != "IN_PROGRESS" else None

    exported = until(done)
    assert (exported["ExportStatus"], exported["ItemCount"]) == ("COMPLETED", 20)
    prefix = f"{table}/AWSDynamoDB/{arn.rpartition('/')[2]}/data/"
    imported = second.import_table(
        S3BucketSource={"S3Bucket": BUCKET, "S3KeyPrefix": prefix},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters={
            "TableName": f"{table}_imported",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )["ImportTableDescription"]["ImportArn"]
    until(lambda: _import(third, imported)["ImportStatus"] != "IN_PROGRESS")
    assert _import(third, imported)["ImportedItemCount"] == 20
    assert numbers(first, f"{table}_imported") == numbers(first, table)
    assert first.describe_table(TableName=f"{table}_imported")["Table"]["ItemCount"] == 20


def test_a_bulk_operation_goes_on_beside_all_writes_and_every_server_sees_how_far(
    postgresql: PostgreSQL, clients: list[Any], bucket: Path
) -> None:
    """Commits of the load take the shared lock of the catalog, like those of requests."""
    first, second, third = clients
    table = create(first)
    recovering(first, table)
    (bucket / "bulk").mkdir()
    lines = [json.dumps({"Item": item(f"k{n}", n=n)}) for n in range(10_000)]
    (bucket / "bulk" / "items.json").write_text("\n".join(lines))
    asked = first.start_bulk_put_items(
        TableName=table,
        InputS3Configuration={
            "S3Bucket": BUCKET,
            "S3KeyPrefix": "bulk/",
            "InputFormat": "DYNAMODB_JSON",
        },
        OutputS3Configuration={
            "S3Bucket": BUCKET,
            "S3KeyPrefix": "told",
            "OutputType": ["ERROR"],
        },
        MaxWriteRequestUnits=1024,
    )
    arn = asked["BulkOperationDescription"]["BulkOperationArn"]

    def told(client: Any) -> dict[str, Any]:
        described = client.describe_bulk_operation(BulkOperationArn=arn)
        found: dict[str, Any] = described["BulkOperationDescription"]
        return found

    def done(client: Any) -> int:
        return int(told(client).get("ProcessedItemCount", 0))

    until(lambda: done(first))
    with postgresql.connect("shared") as connection, connection.transaction():
        held = connection.execute("SELECT version FROM partita_catalog FOR SHARE").fetchone()
        before = done(second)
        until(lambda: done(third) > before)
        second.put_item(TableName=table, Item=item("beside", n=1))
        again = connection.execute("SELECT version FROM partita_catalog").fetchone()
        assert again == held
    second.cancel_bulk_operation(BulkOperationArn=arn)
    until(lambda: told(third)["BulkOperationStatus"] == "CANCELLED")
    assert len(numbers(first, table)) == done(first) + 1


def _import(client: Any, arn: str) -> dict[str, Any]:
    described: dict[str, Any] = client.describe_import(ImportArn=arn)["ImportTableDescription"]
    return described


@pytest.mark.soak
def test_a_restore_goes_on_when_the_leader_is_killed(postgresql: PostgreSQL) -> None:
    storage = storage_url(postgresql, "restored")
    assert processes.run("storage", "init", storage).returncode == 0
    with processes.starting() as start:
        leader = start("serve", "--port", "0", "--storage", storage)
        client = start("serve", "--port", "0", "--storage", storage).client()
        table = create(client)
        for place in range(200):
            puts = [{"PutRequest": {"Item": item(f"{place}-{n}", n=place)}} for n in range(25)]
            client.batch_write_item(RequestItems={table: puts})
        arn = backed_up(client, table)
        client.restore_table_from_backup(BackupArn=arn, TargetTableName="again")
        time.sleep(0.1)
        leader.kill()
        active(client, "again")
        assert numbers(client, "again") == numbers(client, table)
        assert number(client, "again", "199-24", "n") == 199
    checked = processes.run("storage", "check", storage)
    assert checked.returncode == 0, checked.stdout

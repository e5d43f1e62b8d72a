"""Forty days on a virtual clock: recovery keeps a bounded amount of data, and every day of the
period can be restored, also when the clock jumps."""

from __future__ import annotations

import random
from typing import Any

import pytest

from partita import testing
from partita.database.upkeep import recovery_jobs
from partita.testing import Database

DAYS = 40
PERIOD_DAYS = 5
DAY = 24 * 3600
ITEM_BYTES = 1000


def create(client: Any, name: str, period_days: int = PERIOD_DAYS) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.update_continuous_backups(
        TableName=name,
        PointInTimeRecoverySpecification={
            "PointInTimeRecoveryEnabled": True,
            "RecoveryPeriodInDays": period_days,
        },
    )


def put(client: Any, name: str, number: int, content: str) -> None:
    client.put_item(TableName=name, Item={"pk": {"S": f"k{number}"}, "v": {"S": content}})


def restored(database: Database, client: Any, moment: float) -> dict[str, str]:
    client.restore_table_to_point_in_time(
        SourceTableName="busy", TargetTableName="was", RestoreDateTime=moment
    )
    database.settle()
    assert client.describe_table(TableName="was")["Table"]["TableStatus"] == "ACTIVE"
    pages = client.get_paginator("scan").paginate(TableName="was")
    found = {item["pk"]["S"]: item["v"]["S"] for page in pages for item in page["Items"]}
    client.delete_table(TableName="was")
    return found


@pytest.mark.parametrize(
    ("items", "writes_a_day"),
    [(60, 60), pytest.param(400, 4000, marks=pytest.mark.soak)],
)
def test_forty_days_are_kept_within_twice_the_data_and_its_changes(
    items: int, writes_a_day: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As large for these tables as it is for those of a server.
    monkeypatch.setattr(recovery_jobs, "BASE_BYTES_MIN", 16_000)
    pick = random.Random(7)
    with testing.database() as database:
        database.clock.set(1_800_000_000.5)
        client = database.client()
        create(client, "busy")
        archive = database._archive
        now: dict[str, str] = {}
        days: dict[int, dict[str, str]] = {}
        sizes = []
        for day in range(DAYS):
            for _ in range(writes_a_day):
                number = pick.randrange(items)
                now[f"k{number}"] = content = pick.randbytes(ITEM_BYTES // 2).hex()
                put(client, "busy", number, content)
                database.clock.advance(seconds=DAY / writes_a_day / 2)
            days[day] = dict(now)
            moment = int(database.clock())
            database.clock.set(moment + 0.5)
            days[moment] = days.pop(day)
            database.clock.advance(seconds=DAY - writes_a_day * (DAY / writes_a_day / 2))
            for _ in range(3):
                database.settle()
                database.clock.advance(seconds=61)
            database.settle()
            sizes.append(sum(archive.size(name) for name in archive.names("")))
        bound = 2 * (len(now) + (PERIOD_DAYS + 2) * writes_a_day) * (ITEM_BYTES + 100)
        assert max(sizes) < bound
        half = DAYS // 2
        assert max(sizes[half:]) < 1.5 * max(sizes[:half])
        earliest = database.clock() - PERIOD_DAYS * DAY
        asked = [moment for moment in days if moment > earliest]
        assert len(asked) >= PERIOD_DAYS - 1
        for moment in asked:
            assert restored(database, client, moment) == days[moment]
        with pytest.raises(client.exceptions.InvalidRestoreTimeException):
            restored(database, client, min(days))


def test_commits_keep_their_order_when_the_clock_jumps() -> None:
    with testing.database() as database:
        database.clock.set(1_800_000_000.25)
        client = database.client()
        database.clock.set(1_800_000_000.25 - DAY)
        create(client, "busy")
        database.clock.set(1_800_000_000.25)
        put(client, "busy", 1, "first")
        first = latest(client)
        database.clock.set(1_800_000_000.25 - 3600)
        put(client, "busy", 1, "an hour earlier")
        database.settle()
        assert latest(client) >= first
        database.clock.set(1_800_000_000.25 + 60)
        put(client, "busy", 1, "a minute later")
        assert restored(database, client, first) == {"k1": "first"}
        database.clock.set(1_800_000_000.25 + 100 * DAY)
        database.settle()
        put(client, "busy", 1, "much later")
        database.clock.set(1_800_000_000.25 + 100 * DAY + 1)
        assert restored(database, client, latest(client)) == {"k1": "much later"}


def test_exports_and_imports_are_listed_for_ninety_days() -> None:
    with testing.database() as database:
        database.clock.set(1_800_000_000.0)
        client = database.client()
        create(client, "busy")
        database.settle()
        table = client.describe_table(TableName="busy")["Table"]
        client.export_table_to_point_in_time(TableArn=table["TableArn"], S3Bucket="nowhere")
        client.import_table(
            S3BucketSource={"S3Bucket": "nowhere"},
            InputFormat="DYNAMODB_JSON",
            TableCreationParameters={
                "TableName": "imported",
                "KeySchema": table["KeySchema"],
                "AttributeDefinitions": table["AttributeDefinitions"],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        database.settle()
        for days, listed in ((90, 1), (1, 0)):
            database.clock.advance(seconds=days * DAY)
            assert len(client.list_exports()["ExportSummaries"]) == listed
            assert len(client.list_imports()["ImportSummaryList"]) == listed


def latest(client: Any) -> float:
    answer = client.describe_continuous_backups(TableName="busy")["ContinuousBackupsDescription"]
    found = answer["PointInTimeRecoveryDescription"]["LatestRestorableDateTime"]
    return float(found.timestamp())

"""The virtual clock, which sets the time of the database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from partita import testing
from partita.foundation.clock import system_clock

START = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_clock_runs_with_the_system_until_it_is_set() -> None:
    clock = testing.VirtualClock()
    before = system_clock()
    assert before <= clock() <= system_clock()
    clock.advance(days=1, hours=1, minutes=1, seconds=1)
    assert before + 90_061 <= clock() <= system_clock() + 90_061
    clock.set(START)
    assert clock() == clock() == START.timestamp()
    clock.advance(seconds=0.5)
    assert clock() == START.timestamp() + 0.5
    clock.set(7)
    assert clock() == 7


def test_a_clock_does_not_advance_backwards() -> None:
    with pytest.raises(ValueError, match="forward"):
        testing.VirtualClock().advance(seconds=-1)


def test_an_expired_item_goes_when_the_database_settles(
    database: testing.Database, table: Any
) -> None:
    database.clock.set(START)
    client = database.client()
    client.update_time_to_live(
        TableName="orders",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    )
    table.put_item(Item={"pk": "short", "expires": int(START.timestamp()) + 3600})
    table.put_item(Item={"pk": "long", "expires": int(START.timestamp()) + 7200})
    database.clock.advance(minutes=59)
    database.settle()
    assert table.scan()["Count"] == 2
    database.clock.advance(minutes=2)
    assert table.scan()["Count"] == 2
    database.settle()
    assert [item["pk"] for item in table.scan()["Items"]] == ["long"]


@pytest.mark.parametrize("settles", [False, True])
def test_a_client_token_is_forgotten_after_ten_minutes(
    database: testing.Database, table: Any, settles: bool
) -> None:
    client = database.client()

    def add_one() -> str:
        client.transact_write_items(
            ClientRequestToken="the same",
            TransactItems=[
                {
                    "Update": {
                        "TableName": "orders",
                        "Key": {"pk": {"S": "counter"}},
                        "UpdateExpression": "ADD hits :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}},
                    }
                }
            ],
        )
        return str(table.get_item(Key={"pk": "counter"})["Item"]["hits"])

    assert [add_one(), add_one()] == ["1", "1"]
    database.clock.advance(minutes=9)
    assert add_one() == "1"
    database.clock.advance(minutes=2)
    if settles:
        database.settle()
    assert add_one() == "2"


def test_timestamps_are_those_of_the_clock(database: testing.Database, table: Any) -> None:
    database.clock.set(START)
    client = database.client()
    client.create_table(
        TableName="new",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    assert client.describe_table(TableName="new")["Table"]["CreationDateTime"] == START


def test_transient_statuses_last_by_the_clock(create_table: Any) -> None:
    with testing.database(transient_seconds=60) as database:
        database.clock.set(START)
        table = create_table(database.resource())
        assert table.table_status == "CREATING"
        database.clock.advance(minutes=1)
        table.reload()
        assert table.table_status == "ACTIVE"
        table.delete()
        table.reload()
        assert table.table_status == "DELETING"
        database.clock.advance(minutes=1)
        database.settle()
        assert database.client().list_tables()["TableNames"] == []

"""Branches of a prepared database start with the same data, and then change independently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from partita import testing

CreateTable = Callable[..., Any]


def items(database: testing.Database, name: str = "orders") -> list[str]:
    return sorted(item["pk"] for item in database.resource().Table(name).scan()["Items"])


def put(database: testing.Database, key: str) -> None:
    database.client().put_item(TableName="orders", Item={"pk": {"S": key}})


@pytest.fixture
def prepared(database: testing.Database, table: Any) -> testing.Database:
    put(database, "prepared")
    return database


def test_branches_see_what_was_prepared_and_nothing_of_each_other(
    prepared: testing.Database,
) -> None:
    with prepared.branch() as one, prepared.branch() as other:
        put(one, "one")
        other.client().delete_item(TableName="orders", Key={"pk": {"S": "prepared"}})
        put(prepared, "later")
        assert items(one) == ["one", "prepared"]
        assert items(other) == []
        assert items(prepared) == ["later", "prepared"]


def test_a_branch_of_a_branch(prepared: testing.Database) -> None:
    with prepared.branch() as branch:
        put(branch, "branch")
        with branch.branch() as twig:
            put(twig, "twig")
            assert items(twig) == ["branch", "prepared", "twig"]
        assert items(branch) == ["branch", "prepared"]


def test_tables_are_made_and_deleted_in_a_branch_alone(
    prepared: testing.Database, create_table: CreateTable
) -> None:
    with prepared.branch() as branch:
        branch.client().delete_table(TableName="orders")
        create_table(branch.resource(), "more")
        create_table(branch.resource(), "orders")
        assert items(branch) == []
        assert branch.client().list_tables()["TableNames"] == ["more", "orders"]
    assert prepared.client().list_tables()["TableNames"] == ["orders"]
    assert items(prepared) == ["prepared"]


def test_an_index_is_queried_over_what_was_prepared_and_what_was_added(
    database: testing.Database, create_table: CreateTable
) -> None:
    create_table(
        database.resource(),
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "city", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_city",
                "KeySchema": [{"AttributeName": "city", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )

    def add(database: testing.Database, key: str, city: str) -> None:
        item = {"pk": {"S": key}, "city": {"S": city}}
        database.client().put_item(TableName="orders", Item=item)

    def in_leipzig(database: testing.Database) -> list[str]:
        found = database.client().query(
            TableName="orders",
            IndexName="by_city",
            KeyConditionExpression="city = :city",
            ExpressionAttributeValues={":city": {"S": "Leipzig"}},
        )
        return sorted(item["pk"]["S"] for item in found["Items"])

    add(database, "1", "Leipzig")
    add(database, "2", "Leipzig")
    with database.branch() as branch:
        add(branch, "2", "Weimar")
        add(branch, "3", "Leipzig")
        assert in_leipzig(branch) == ["1", "3"]
        description = branch.client().describe_table(TableName="orders")["Table"]
        assert description["ItemCount"] == 3
        assert description["GlobalSecondaryIndexes"][0]["ItemCount"] == 3
    assert in_leipzig(database) == ["1", "2"]


def test_a_new_index_is_filled_when_its_request_is_answered(
    database: testing.Database, table: Any
) -> None:
    with table.batch_writer() as batch:
        for number in range(500):
            batch.put_item(Item={"pk": str(number)})
    with database.branch() as branch:
        branch.client().update_table(
            TableName="orders",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": "again",
                        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                }
            ],
        )
        (index,) = branch.client().describe_table(TableName="orders")["Table"][
            "GlobalSecondaryIndexes"
        ]
        assert (index["IndexStatus"], index["ItemCount"]) == ("ACTIVE", 500)


def test_a_branch_has_its_own_clock_and_faults(prepared: testing.Database) -> None:
    prepared.clock.set(1_000_000_000)
    prepared.faults.fail("ListTables")
    with prepared.branch() as branch:
        branch.clock.advance(hours=1)
        assert (prepared.clock(), branch.clock()) == (1_000_000_000, 1_000_003_600)
        assert branch.client().list_tables()["TableNames"] == ["orders"]

"""The same request before and after every kind of change never returns an old response."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from .conftest import TableFactory

PARTITIONS, PLACES, GROUPS = 3, 4, 2
STEPS = 120


@pytest.fixture
def name(table: TableFactory) -> str:
    return table(
        sk="S",
        attributes={"g": "S"},
        LocalSecondaryIndexes=[
            {
                "IndexName": "local",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "g", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "global",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


class Mirror:
    """The expected content of the table, and the requests whose responses show it."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name
        self.items: dict[tuple[str, str], dict[str, Any]] = {}

    def check(self) -> None:
        for partition in map(str, range(PARTITIONS)):
            for place in map(str, range(PLACES)):
                key = {"pk": {"S": partition}, "sk": {"S": place}}
                found = self.client.get_item(TableName=self.name, Key=key).get("Item")
                assert found == self.items.get((partition, place))
            mine = [item for (one, _), item in sorted(self.items.items()) if one == partition]
            assert self.ask("pk", partition) == mine
            # The index has only keys: the rest is fetched from the table.
            fetched = self.ask("pk", partition, IndexName="local", Select="ALL_ATTRIBUTES")
            assert _sorted(fetched) == mine
        for group in map(str, range(GROUPS)):
            members = [item for item in self.items.values() if item["g"]["S"] == group]
            assert _sorted(self.ask("g", group, IndexName="global")) == _sorted(members)

    def ask(self, attribute: str, value: str, **parameters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.query(
            TableName=self.name,
            KeyConditionExpression=f"{attribute} = :v",
            ExpressionAttributeValues={":v": {"S": value}},
            **parameters,
        )["Items"]
        return found


def _sorted(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))


def _item(random: Random) -> dict[str, Any]:
    return {
        "pk": {"S": str(random.randrange(PARTITIONS))},
        "sk": {"S": str(random.randrange(PLACES))},
        "g": {"S": str(random.randrange(GROUPS))},
        "n": {"N": str(random.randrange(1000))},
    }


def _key(item: dict[str, Any]) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item["sk"]}


def _put(mirror: Mirror, item: dict[str, Any]) -> None:
    mirror.client.put_item(TableName=mirror.name, Item=item)


def _batch(mirror: Mirror, item: dict[str, Any]) -> None:
    mirror.client.batch_write_item(RequestItems={mirror.name: [{"PutRequest": {"Item": item}}]})


def _transact(mirror: Mirror, item: dict[str, Any]) -> None:
    put = {"Put": {"TableName": mirror.name, "Item": item}}
    mirror.client.transact_write_items(TransactItems=[put])


def _update(mirror: Mirror, item: dict[str, Any]) -> None:
    mirror.client.update_item(
        TableName=mirror.name,
        Key=_key(item),
        UpdateExpression="SET g = :g, n = :n",
        ExpressionAttributeValues={":g": item["g"], ":n": item["n"]},
    )


WRITES: list[Callable[[Mirror, dict[str, Any]], None]] = [_put, _batch, _transact, _update]


def test_no_answer_is_older_than_an_acknowledged_write(client: Any, name: str) -> None:
    random = Random(7)
    mirror = Mirror(client, name)
    mirror.check()
    for step in range(STEPS):
        item = _item(random)
        place = item["pk"]["S"], item["sk"]["S"]
        if random.random() < 0.25:
            client.delete_item(TableName=name, Key=_key(item))
            mirror.items.pop(place, None)
        else:
            random.choice(WRITES)(mirror, item)
            mirror.items[place] = item
        if step % 5 == 0:
            mirror.check()
    mirror.check()


def test_a_table_of_the_same_name_answers_for_itself(client: Any, table: TableFactory) -> None:
    name = table()
    item, other = {"pk": {"S": "p"}}, {"pk": {"S": "other"}}
    client.put_item(TableName=name, Item=item)
    # Twice, for the second response is cached.
    for _ in range(2):
        assert client.get_item(TableName=name, Key=item)["Item"] == item
        assert "Item" not in client.get_item(TableName=name, Key=other)
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(
        TableName=name, WaiterConfig={"Delay": 0.02, "MaxAttempts": 1500}
    )
    table(TableName=name)
    client.put_item(TableName=name, Item=other)
    assert "Item" not in client.get_item(TableName=name, Key=item)
    assert client.get_item(TableName=name, Key=other)["Item"] == other

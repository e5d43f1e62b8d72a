"""Throttled or not, a write is done whole or not at all: a model of what was accepted says so."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from partita import testing

from .tables import create, index, item

THROTTLED = ("ProvisionedThroughputExceededException", "TransactionCanceledException")
Model = dict[str, dict[str, Any]]


class Client:
    """Random writes, and what the table must hold after those that were accepted."""

    def __init__(self, client: Any, random: Random) -> None:
        self.client = client
        self.random = random
        self.model: Model = {}
        self.throttled = 0

    def drawn(self) -> dict[str, Any]:
        more = {"g": str(self.random.randrange(3))} if self.random.random() < 0.6 else {}
        return item(str(self.random.randrange(12)), text="x" * self.random.randrange(2500), **more)

    def put(self) -> None:
        drawn = self.drawn()
        self.client.put_item(TableName="votes", Item=drawn)
        self.model[drawn["id"]["S"]] = drawn

    def delete(self) -> None:
        key = str(self.random.randrange(12))
        self.client.delete_item(TableName="votes", Key=item(key))
        self.model.pop(key, None)

    def update(self) -> None:
        key, group = str(self.random.randrange(12)), str(self.random.randrange(3))
        self.client.update_item(
            TableName="votes",
            Key=item(key),
            UpdateExpression="SET g = :g",
            ExpressionAttributeValues={":g": {"S": group}},
        )
        self.model[key] = {**self.model.get(key, item(key)), "g": {"S": group}}

    def batch(self) -> None:
        puts = {drawn["id"]["S"]: drawn for drawn in [self.drawn() for _ in range(6)]}
        asked = [{"PutRequest": {"Item": drawn}} for drawn in puts.values()]
        answer = self.client.batch_write_item(RequestItems={"votes": asked})
        left = answer["UnprocessedItems"].get("votes", [])
        self.throttled += bool(left)
        for one in asked:
            if one not in left:
                self.model[one["PutRequest"]["Item"]["id"]["S"]] = one["PutRequest"]["Item"]

    def transact(self) -> None:
        puts = {drawn["id"]["S"]: drawn for drawn in [self.drawn() for _ in range(3)]}
        self.client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": "votes", "Item": drawn}} for drawn in puts.values()
            ]
        )
        self.model.update(puts)

    def act(self) -> None:
        action = self.random.choice([self.put, self.delete, self.update, self.batch, self.transact])
        try:
            action()
        except ClientError as error:
            assert error.response["Error"]["Code"] in THROTTLED
            self.throttled += 1


def by_key(items: list[dict[str, Any]]) -> Model:
    return {one["id"]["S"]: one for one in items}


@pytest.mark.parametrize("seed", range(4))
def test_what_was_accepted_is_there_and_nothing_else(
    database: testing.Database, client: Any, seed: int
) -> None:
    create(client, units=8, keys=("g",), GlobalSecondaryIndexes=[index("by-g", "g", 5)])
    writer = Client(client, Random(seed))
    for step in range(300):
        writer.act()
        if not step % 4:
            database.clock.advance(seconds=1)
    database.clock.advance(minutes=10)
    assert by_key(client.scan(TableName="votes")["Items"]) == writer.model
    indexed = client.scan(TableName="votes", IndexName="by-g")["Items"]
    assert by_key(indexed) == {key: one for key, one in writer.model.items() if "g" in one}
    assert writer.throttled > 30
    described = client.describe_table(TableName="votes")["Table"]
    assert described["ItemCount"] == len(writer.model)

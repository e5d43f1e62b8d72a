"""Random writes and restores to random moments: tables and indexes equal a model of every second,
and two tables never show half of a transaction."""

from __future__ import annotations

import random
from typing import Any

import pytest

from partita import testing

KEYS = [f"k{number}" for number in range(12)]

State = dict[str, dict[str, Any]]


class World:
    """Two tables with the same writes in each transaction, and an independent one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.database = testing.database(seed=seed)
        self.database.clock.set(1_800_000_000.25)
        self.client = self.database.client()
        self.seconds: dict[int, dict[str, State]] = {}
        for name in ("left", "right", "own"):
            self.client.create_table(
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
            self.client.update_continuous_backups(
                TableName=name,
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            )
        self.client.update_time_to_live(
            TableName="own", TimeToLiveSpecification={"Enabled": True, "AttributeName": "t"}
        )

    def item(self) -> dict[str, Any]:
        pick = self.random
        item: dict[str, Any] = {"pk": {"S": pick.choice(KEYS)}, "n": {"N": str(pick.random())}}
        if pick.random() < 0.6:
            item["g"] = {"S": pick.choice("abc")}
        return item

    def step(self) -> None:
        kinds = [self.put, self.delete, self.update, self.batch, self.transact, self.partiql]
        self.random.choice([*kinds, self.expire, self.transact])()
        if self.random.random() < 0.05:
            self.change_indexes()
        if self.random.random() < 0.6:
            self.database.clock.advance(seconds=self.random.choice([0.2, 1.0, 3.7]))
            self.database.settle()
        moment = int(self.database.clock()) + 2
        self.database.clock.advance(seconds=moment - 0.25 - self.database.clock())
        self.database.settle()
        self.seconds[moment] = {name: self.read(name) for name in ("left", "right", "own")}
        self.database.clock.advance(seconds=0.5)

    def change_indexes(self) -> None:
        """Creates an index, or deletes it."""
        described = self.client.describe_table(TableName="own")["Table"]
        names = [one["IndexName"] for one in described["GlobalSecondaryIndexes"]]
        if "by_n" in names:
            change: dict[str, Any] = {"Delete": {"IndexName": "by_n"}}
        else:
            key = [{"AttributeName": "n", "KeyType": "HASH"}]
            change = {
                "Create": {
                    "IndexName": "by_n",
                    "KeySchema": key,
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            }
        self.client.update_table(
            TableName="own",
            AttributeDefinitions=[{"AttributeName": "n", "AttributeType": "N"}],
            GlobalSecondaryIndexUpdates=[change],
        )

    def put(self) -> None:
        self.client.put_item(TableName="own", Item=self.item())

    def delete(self) -> None:
        self.client.delete_item(TableName="own", Key={"pk": self.item()["pk"]})

    def update(self) -> None:
        self.client.update_item(
            TableName="own",
            Key={"pk": self.item()["pk"]},
            UpdateExpression="SET g = :g ADD c :one",
            ExpressionAttributeValues={":g": {"S": "z"}, ":one": {"N": "1"}},
        )

    def batch(self) -> None:
        items = {item["pk"]["S"]: item for item in (self.item() for _ in range(5))}
        puts = [{"PutRequest": {"Item": item}} for item in items.values()]
        self.client.batch_write_item(RequestItems={"own": puts})

    def partiql(self) -> None:
        item = self.item()
        self.client.execute_statement(
            Statement='DELETE FROM "own" WHERE pk = ?', Parameters=[item["pk"]]
        )

    def expire(self) -> None:
        soon = str(int(self.database.clock()) + self.random.randrange(6))
        self.client.put_item(TableName="own", Item={**self.item(), "t": {"N": soon}})

    def transact(self) -> None:
        item = self.item()
        if self.random.random() < 0.3:
            wants = [
                {"Delete": {"TableName": name, "Key": {"pk": item["pk"]}}}
                for name in ("left", "right")
            ]
        else:
            wants = [{"Put": {"TableName": name, "Item": item}} for name in ("left", "right")]
        self.client.transact_write_items(TransactItems=wants)

    def read(self, table: str, **more: Any) -> State:
        items = self.client.scan(TableName=table, **more)["Items"]
        return {item["pk"]["S"]: item for item in items}

    def restored(self, source: str, moment: int) -> str:
        target = f"{source}_{moment}"
        self.client.restore_table_to_point_in_time(
            SourceTableName=source, TargetTableName=target, RestoreDateTime=moment
        )
        status = self.client.describe_table(TableName=target)["Table"]["TableStatus"]
        assert status == "ACTIVE"
        return target


@pytest.mark.parametrize(
    ("seed", "steps", "restores"),
    [(0, 120, 15), (1, 120, 15), pytest.param(2, 600, 400, marks=pytest.mark.soak)],
)
def test_what_is_restored_is_what_was(seed: int, steps: int, restores: int) -> None:
    world = World(seed)
    with world.database:
        for _ in range(steps):
            world.step()
        for moment in world.random.sample(sorted(world.seconds), restores):
            expected = world.seconds[moment]
            halves = []
            for name in ("own", "left", "right"):
                target = world.restored(name, moment)
                found = world.read(target)
                assert found == expected[name], (name, moment)
                in_index = {key: item for key, item in found.items() if "g" in item}
                assert world.read(target, IndexName="by_g") == in_index
                halves.append(found)
                world.client.delete_table(TableName=target)
            assert halves[1] == halves[2]


def test_the_earliest_moment_moves_with_the_clock() -> None:
    world = World(7)
    with world.database as database:
        client = database.client()
        client.update_continuous_backups(
            TableName="own",
            PointInTimeRecoverySpecification={
                "PointInTimeRecoveryEnabled": True,
                "RecoveryPeriodInDays": 2,
            },
        )
        earliest = []
        for _ in range(40):
            for _ in range(20):
                world.put()
            database.clock.advance(days=1)
            database.settle()
            described = client.describe_continuous_backups(TableName="own")
            recovery = described["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
            earliest.append(recovery["EarliestRestorableDateTime"])
            latest = recovery["LatestRestorableDateTime"]
        assert (latest - earliest[-1]).total_seconds() == pytest.approx(2 * 24 * 3600, abs=1)
        assert earliest == sorted(earliest)

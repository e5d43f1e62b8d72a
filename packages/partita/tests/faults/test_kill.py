"""kill -9 at random moments under a mixed load: nothing acknowledged is lost, nothing is torn.

Each writer has keys of its own and knows what they must hold. A request without an answer is in
doubt: what it asked for is there or not, of a transaction all or nothing. After every kill the
folder passes `partita check` as it lies there, and the next server has exactly what it must.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from .killing import kill_under

TABLES = ("one", "two")
WRITERS = 6
KEYS_PER_WRITER = 40
LOAD_SECONDS_MAX = 1.2
BUSY = {"LimitExceededException", "ResourceInUseException", "ValidationException"}
"""What the control plane says when a change is still under way, or already made."""
GONE = "ResourceNotFoundException"

Key = tuple[str, str, str]
"""Table, partition key, sort key."""
Item = dict[str, Any]
States = dict[Key, Item | None]


def key_schema(*names: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


def definitions(**types: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def index(name: str, *keys: str, **projection: Any) -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": key_schema(*keys), "Projection": projection}


def create_tables(client: Any) -> None:
    for name in TABLES:
        client.create_table(
            TableName=name,
            KeySchema=key_schema("pk", "sk"),
            AttributeDefinitions=definitions(pk="S", sk="N", g="S", l="N"),
            LocalSecondaryIndexes=[index("local", "pk", "l", ProjectionType="ALL")],
            GlobalSecondaryIndexes=[
                index("global", "g", ProjectionType="ALL"),
                index("keys", "g", "l", ProjectionType="KEYS_ONLY"),
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
        )


def key_part(key: Key) -> Item:
    return {"pk": {"S": key[1]}, "sk": {"N": key[2]}}


@dataclass
class Writer:
    """A client with keys of its own: what they hold, and what is in doubt."""

    name: str
    chance: random.Random
    known: States = field(default_factory=dict)
    doubts: list[tuple[States, States]] = field(default_factory=list)
    """Requests without an answer: the states before, and the states asked for."""
    acknowledged: int = 0

    def write(self, client: Any) -> None:
        """Until the server is gone."""
        while not self.doubts:
            self.chance.choice(REQUESTS)(self, client)

    def key(self) -> Key:
        number = self.chance.randrange(KEYS_PER_WRITER)
        return self.chance.choice(TABLES), f"{self.name}-{number % 4}", str(number)

    def item(self, key: Key) -> Item:
        chance = self.chance
        item = key_part(key) | {"version": {"N": str(chance.randrange(1, 1 << 40) * 10 + 1)}}
        if chance.random() < 0.8:
            # Now and then a key that is longer than the engine's own.
            item["g"] = {"S": f"g{chance.randrange(5)}" * chance.choice((1, 1, 1, 300))}
        if chance.random() < 0.8:
            item["l"] = {"N": str(chance.randrange(1, 10))}
        if chance.random() < 0.3:
            item["ttl"] = {"N": str(int(time.time()) + 100_000 + chance.randrange(9) * 10 + 1)}
        if chance.random() < 0.5:
            item["filler"] = {"S": "x" * chance.choice((10, 1000, 9000))}
        return item

    def ask(self, states: States, request: Callable[[], Any], *, is_atomic: bool = True) -> None:
        before = {key: self.known.get(key) for key in states}
        try:
            request()
        except BotoCoreError:
            if is_atomic:
                self.doubts.append((before, states))
            else:
                self.doubts += [({key: before[key]}, {key: states[key]}) for key in states]
        else:
            self.known.update(states)
            self.acknowledged += 1

    def settle(self, found: States) -> None:
        """Compare what the next server has with what it must have."""
        for before, after in self.doubts:
            actual = {key: found.get(key) for key in before}
            assert actual in (before, after), f"torn: {before} {after} {actual}"
            self.known.update(actual)
        self.doubts.clear()
        mine = {key: item for key, item in found.items() if key[1].split("-")[0] == self.name}
        must = {key: item for key, item in self.known.items() if item is not None}
        assert mine == must


def put(writer: Writer, client: Any) -> None:
    key = writer.key()
    item = writer.item(key)
    writer.ask({key: item}, lambda: client.put_item(TableName=key[0], Item=item))


def update(writer: Writer, client: Any) -> None:
    """A new version and a move in the indexes; what else the item has stays."""
    key = writer.key()
    news = {name: value for name, value in writer.item(key).items() if name in ("version", "g")}
    item = (writer.known.get(key) or key_part(key)) | news
    writer.ask(
        {key: item},
        lambda: client.update_item(
            TableName=key[0],
            Key=key_part(key),
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in news),
            ExpressionAttributeNames={f"#{name}": name for name in news},
            ExpressionAttributeValues={f":{name}": value for name, value in news.items()},
        ),
    )


def delete(writer: Writer, client: Any) -> None:
    key = writer.key()
    writer.ask({key: None}, lambda: client.delete_item(TableName=key[0], Key=key_part(key)))


def batch(writer: Writer, client: Any) -> None:
    keys = {writer.key() for _ in range(10)}
    states = {key: writer.item(key) if writer.chance.random() < 0.7 else None for key in keys}
    requests: dict[str, list[Any]] = {}
    for key, item in states.items():
        one = {"PutRequest": {"Item": item}} if item else {"DeleteRequest": {"Key": key_part(key)}}
        requests.setdefault(key[0], []).append(one)
    writer.ask(states, lambda: client.batch_write_item(RequestItems=requests), is_atomic=False)


def transact(writer: Writer, client: Any) -> None:
    keys = {writer.key() for _ in range(4)}
    states = {key: writer.item(key) if writer.chance.random() < 0.7 else None for key in keys}
    actions = [
        {"Put": {"TableName": key[0], "Item": item}}
        if item
        else {"Delete": {"TableName": key[0], "Key": key_part(key)}}
        for key, item in states.items()
    ]
    writer.ask(states, lambda: client.transact_write_items(TransactItems=actions))


def put_what_expires(writer: Writer, client: Any) -> None:
    """Items of nobody: they are there until they are not."""
    when = int(time.time()) + writer.chance.randrange(-3, 3)
    item = {
        "pk": {"S": f"expiring-{writer.name}"},
        "sk": {"N": str(writer.chance.randrange(1, 10))},
        "g": {"S": "expiring"},
        "ttl": {"N": str(when)},
    }
    writer.ask({}, lambda: client.put_item(TableName=writer.chance.choice(TABLES), Item=item))


REQUESTS = (put, put, update, update, delete, batch, transact, transact, put_what_expires)


def change_tables(client: Any, chance: random.Random) -> None:
    """Indexes and a table come and go, and TTL with them, until the server is gone."""
    while True:
        try:
            chance.choice(CHANGES)(client, chance)
        except BotoCoreError:
            return
        except ClientError as error:
            assert error.response["Error"]["Code"] in {*BUSY, GONE}, error
        time.sleep(chance.random() * 0.1)


def create_index(client: Any, chance: random.Random) -> None:
    client.update_table(
        TableName="two",
        AttributeDefinitions=definitions(version="N"),
        GlobalSecondaryIndexUpdates=[{"Create": index("late", "version", ProjectionType="ALL")}],
    )


def delete_index(client: Any, chance: random.Random) -> None:
    client.update_table(
        TableName="two", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "late"}}]
    )


def switch_ttl(client: Any, chance: random.Random) -> None:
    specification = {"Enabled": chance.random() < 0.5, "AttributeName": "ttl"}
    client.update_time_to_live(TableName="two", TimeToLiveSpecification=specification)


def create_brief_table(client: Any, chance: random.Random) -> None:
    client.create_table(
        TableName="brief",
        KeySchema=key_schema("pk"),
        AttributeDefinitions=definitions(pk="S"),
        BillingMode="PAY_PER_REQUEST",
    )
    puts = [{"PutRequest": {"Item": {"pk": {"S": str(number)}}}} for number in range(25)]
    client.batch_write_item(RequestItems={"brief": puts})


def delete_brief_table(client: Any, chance: random.Random) -> None:
    client.delete_table(TableName="brief")


CHANGES = (create_index, delete_index, switch_ttl, create_brief_table, delete_brief_table)


def everything(client: Any) -> States:
    return {
        (table, item["pk"]["S"], item["sk"]["N"]): item
        for table in TABLES
        for page in client.get_paginator("scan").paginate(TableName=table)
        for item in page["Items"]
    }


def run_rounds(
    rounds: int, serve: Any, assert_clean: Callable[[Path], None], folder: Path, seed: int
) -> None:
    chance = random.Random(seed)
    writers = [Writer(f"w{number}", random.Random(chance.random())) for number in range(WRITERS)]
    server = serve(folder)
    create_tables(server.client())
    for _ in range(rounds):
        client = server.client()
        loads = [partial(writer.write, client) for writer in writers]
        loads.append(partial(change_tables, client, random.Random(chance.random())))
        said = kill_under(
            loads,
            server,
            chance.uniform(0.02, LOAD_SECONDS_MAX),
            lambda: all(writer.acknowledged for writer in writers),
        )
        assert said == "", "the server had something to complain of"
        assert_clean(folder)
        server = serve(folder)
        found = everything(server.client())
        for writer in writers:
            writer.settle(found)
    assert all(writer.acknowledged for writer in writers)
    assert server.terminate() == (0, "")
    assert_clean(folder)


def test_two_kills_lose_nothing(
    serve: Any, assert_clean: Callable[[Path], None], tmp_path: Path, seed: int
) -> None:
    run_rounds(2, serve, assert_clean, tmp_path, seed)


@pytest.mark.soak
def test_fifty_kills_lose_nothing(
    serve: Any, assert_clean: Callable[[Path], None], tmp_path: Path, seed: int
) -> None:
    run_rounds(50, serve, assert_clean, tmp_path, seed)

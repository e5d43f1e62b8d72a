"""Histories of three servers, with kills and pauses, are strictly serializable."""

from __future__ import annotations

import itertools
import random
import signal
import threading
import time
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from testkit.data.item_tables import create, item
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

from .history import Anomaly, Operation, check

KEYS = ("a", "b", "c", "d")
REFUSED = {
    *("TransactionCanceledException", "TransactionConflictException", "ThrottlingException"),
    *("ConditionalCheckFailedException", "TransactionInProgressException"),
}


class Clients:
    """Clients that append and read until the block ends, through a server that answers."""

    def __init__(self, clients: list[Any], table: str, threads: int, seed: int) -> None:
        self.history: list[Operation] = []
        self._clients = clients
        self._table = table
        self._values = itertools.count(1)
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=[random.Random(seed + place)])
            for place in range(threads)
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _work(self, chance: random.Random) -> None:
        while not self._is_over.is_set():
            keys = chance.sample(KEYS, chance.choice((1, 1, 2, 3)))
            client = chance.choice(self._clients)
            operation = Operation(time.monotonic())
            if chance.random() < 0.5:
                operation.appends = {key: next(self._values) for key in keys}
            try:
                if operation.appends:
                    self._append(client, operation.appends)
                else:
                    operation.reads = self._read(client, keys)
                operation.ended = time.monotonic()
            except ClientError as error:
                operation.is_refused = error.response["Error"]["Code"] in REFUSED
            except BotoCoreError:
                time.sleep(0.05)
            if operation.appends or operation.ended < float("inf"):
                self.history.append(operation)

    def _append(self, client: Any, appends: dict[str, int]) -> None:
        updates = [
            {
                "TableName": self._table,
                "Key": item(key),
                "UpdateExpression": "SET l = list_append(if_not_exists(l, :none), :new)",
                "ExpressionAttributeValues": {
                    ":none": {"L": []},
                    ":new": {"L": [{"N": str(value)}]},
                },
            }
            for key, value in appends.items()
        ]
        if len(updates) == 1:
            client.update_item(**updates[0])
        else:
            client.transact_write_items(TransactItems=[{"Update": one} for one in updates])

    def _read(self, client: Any, keys: list[str]) -> dict[str, list[int]]:
        if len(keys) == 1:
            key = item(keys[0])
            found = [client.get_item(TableName=self._table, Key=key, ConsistentRead=True)]
        else:
            gets = [{"Get": {"TableName": self._table, "Key": item(key)}} for key in keys]
            found = client.transact_get_items(TransactItems=gets)["Responses"]
        return {
            key: [int(one["N"]) for one in answer.get("Item", {}).get("l", {}).get("L", ())]
            for key, answer in zip(keys, found, strict=True)
        }


class Registers(Clients):
    """Writes that form a chain: each value replaces the one that the writer has read."""

    def __init__(self, clients: list[Any], table: str, threads: int, seed: int) -> None:
        super().__init__(clients, table, threads, seed)
        self._before: dict[int, int] = {}

    def _append(self, client: Any, appends: dict[str, int]) -> None:
        puts = []
        for key, value in appends.items():
            (last, *_) = self._values_of(client, [key])[key][-1:] or [0]
            self._before[value] = last
            is_same = "attribute_not_exists(n) OR n = :last" if not last else "n = :last"
            puts.append(
                {
                    "TableName": self._table,
                    "Item": item(f"register {key}", n=value),
                    "ConditionExpression": is_same,
                    "ExpressionAttributeValues": {":last": {"N": str(last)}},
                }
            )
        if len(puts) == 1:
            client.put_item(**puts[0])
        else:
            client.transact_write_items(TransactItems=[{"Put": one} for one in puts])

    def _read(self, client: Any, keys: list[str]) -> dict[str, list[int]]:
        return self._values_of(client, keys)

    def _values_of(self, client: Any, keys: list[str]) -> dict[str, list[int]]:
        """All values that each register had, up to the one that is read."""
        gets = [{"Get": {"TableName": self._table, "Key": item(f"register {k}")}} for k in keys]
        if len(gets) == 1:
            found = [client.get_item(**gets[0]["Get"], ConsistentRead=True)]
        else:
            found = client.transact_get_items(TransactItems=gets)["Responses"]
        return {
            key: self._chain(int(answer["Item"]["n"]["N"]) if "Item" in answer else 0)
            for key, answer in zip(keys, found, strict=True)
        }

    def _chain(self, value: int) -> list[int]:
        chain: list[int] = []
        while value:
            chain.append(value)
            value = self._before[value]
        return chain[::-1]


def _run(
    postgresql: PostgreSQL, database: str, rounds: int, seed: int, kind: type[Clients] = Clients
) -> None:
    storage = storage_url(postgresql, database)
    assert processes.run("storage", "init", storage).returncode == 0
    chance = random.Random(seed)
    with processes.starting() as start:
        servers = [start("serve", "--port", "0", "--storage", storage) for _ in range(3)]
        clients = [server.client() for server in servers]
        table = create(clients[0])
        with kind(clients, table, 6, seed) as work:
            for turn in range(rounds):
                time.sleep(0.7)
                place = chance.randrange(3)
                if turn % 2:
                    servers[place].process.send_signal(signal.SIGSTOP)
                    time.sleep(0.7)
                    servers[place].process.send_signal(signal.SIGCONT)
                else:
                    servers[place].kill()
                    servers[place] = start("serve", "--port", "0", "--storage", storage)
                    clients[place] = servers[place].client()
            time.sleep(0.7)
        final = Operation(time.monotonic())
        final.reads = {key: work._read(clients[0], [key])[key] for key in KEYS}
        final.ended = time.monotonic()
    assert sum(bool(one.appends) for one in work.history) > 10 * rounds
    check([*work.history, final])
    acknowledged = {
        (key, value)
        for one in work.history
        if one.ended < float("inf")
        for key, value in one.appends.items()
    }
    assert acknowledged <= {(key, value) for key in KEYS for value in final.reads[key]}
    assert processes.run("storage", "check", storage).returncode == 0


def test_a_kill_and_a_pause_leave_a_history_that_some_order_explains(
    postgresql: PostgreSQL,
) -> None:
    _run(postgresql, "history", rounds=2, seed=1)


@pytest.mark.soak
def test_twenty_kills_and_pauses_leave_a_history_that_some_order_explains(
    postgresql: PostgreSQL,
) -> None:
    _run(postgresql, "long_history", rounds=40, seed=2)


@pytest.mark.soak
def test_registers_are_linearizable_through_kills_and_pauses(postgresql: PostgreSQL) -> None:
    _run(postgresql, "registers", rounds=20, seed=3, kind=Registers)


def test_the_checker_finds_a_stale_read() -> None:
    history = [
        Operation(0, 1, appends={"a": 1}),
        Operation(2, 3, reads={"a": []}),
        Operation(4, 5, reads={"a": [1]}),
    ]
    with pytest.raises(Anomaly):
        check(history)


def test_the_checker_finds_a_write_skew() -> None:
    history = [
        Operation(0, 9, appends={"a": 1}, reads={"b": []}),
        Operation(0, 9, appends={"b": 2}, reads={"a": []}),
        Operation(10, 11, reads={"a": [1], "b": [2]}),
    ]
    with pytest.raises(Anomaly):
        check(history)


def test_the_checker_finds_a_fractured_read_and_a_lost_append() -> None:
    torn = [
        Operation(0, 9, appends={"a": 1, "b": 2}),
        Operation(0, 9, reads={"a": [1], "b": []}),
        Operation(10, 11, reads={"a": [1], "b": [2]}),
    ]
    lost = [Operation(0, 1, appends={"a": 1}), Operation(2, 3, reads={"a": []})]
    for history in (torn, lost):
        with pytest.raises(Anomaly):
            check(history)


def test_the_checker_takes_what_some_order_explains() -> None:
    check(
        [
            Operation(0, 9, appends={"a": 1, "b": 2}),
            Operation(0, 9, reads={"a": [], "b": []}),
            Operation(0, appends={"a": 3}),
            Operation(1, 8, appends={"a": 4}, is_refused=True),
            Operation(10, 11, reads={"a": [1, 3], "b": [2]}),
        ]
    )

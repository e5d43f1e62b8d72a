"""A primary with a synchronous standby fails: the standby has everything that was acknowledged."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from testkit.data.item_tables import create, item, number, until
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL

from .replication import Pair, pause, resume
from .test_faults import Writers

CANCEL = """
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE wait_event = 'SyncRep' AND application_name = 'partita'"""
LOCAL_SECONDS = 2.0
ACCOUNTS = [f"account{place}" for place in range(4)]


@pytest.fixture
def pair() -> Any:
    PostgreSQL.require()
    with Pair() as pair:
        pair.add_standby()
        pair.primary.create("failing")
        yield pair


def test_what_was_acknowledged_is_on_the_standby_when_the_primary_is_killed(pair: Pair) -> None:
    _fail_over(pair, rounds=1)


@pytest.mark.soak
def test_ten_primaries_are_killed_one_after_the_other(pair: Pair) -> None:
    _fail_over(pair, rounds=10)


def _fail_over(pair: Pair, rounds: int) -> None:
    url = pair.url("failing")
    ports = [pair.primary.port, pair.standby.port if pair.standby else 0]
    assert processes.run("storage", "init", url).returncode == 0
    with processes.starting() as start:
        servers = [start("serve", "--port", "0", "--storage", url) for _ in range(3)]
        clients = [server.client() for server in servers]
        table = create(clients[0])
        for name in ACCOUNTS:
            clients[0].put_item(TableName=table, Item=item(name, euros=100))
        with Writers(clients, table) as writers, Transfers(clients, table):
            for turn in range(rounds):
                writers.wait_for(20)
                pair.primary.kill()
                time.sleep(0.3)
                pair.promote()
                writers.wait_for(10)
                if turn + 1 < rounds:
                    pair.add_standby(next(p for p in ports if p != pair.primary.port))
        for place, acknowledged in enumerate(writers.acknowledged):
            assert number(clients[1], table, f"w{place}", "n") >= acknowledged
        assert sum(number(clients[2], table, name, "euros") for name in ACCOUNTS) == 400
    checked = processes.run("storage", "check", url)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.soak
def test_a_commit_that_only_the_primary_has_is_not_acknowledged(pair: Pair) -> None:
    """If an administrator cancels the wait for a standby, PostgreSQL commits with a warning."""
    url = pair.url("failing")
    assert processes.run("storage", "init", url).returncode == 0
    with processes.starting() as start, ThreadPoolExecutor(1) as pool:
        client = start("serve", "--port", "0", "--storage", url).client()
        table = create(client)
        client.put_item(TableName=table, Item=item("a", n=1))
        standby = pair.standby
        assert standby is not None
        with pair.primary.connect("failing") as connection:
            before = _versions(connection)
            standby.kill()
            putting = pool.submit(client.put_item, TableName=table, Item=item("a", n=2))

            def is_local() -> bool:
                connection.execute(CANCEL)
                return bool(_versions(connection) != before)

            until(is_local)
            asked = 0
            end = time.monotonic() + LOCAL_SECONDS
            while time.monotonic() < end:
                asked += len(connection.execute(CANCEL).fetchall())
                assert not putting.done()
                time.sleep(0.05)
            assert asked
        pair.primary.kill()
        until(partial(_starts, standby))
        pair.promote()
        # The new primary does not have the commit, so it is decided again.
        putting.result()
        assert until(partial(_number_when_back, client, table)) == 2
    assert processes.run("storage", "check", pair.url("failing")).returncode == 0


def _number_when_back(client: Any, table: str) -> int | None:
    """The number, or None while connections to the old primary are being replaced."""
    try:
        return number(client, table, "a", "n")
    except ClientError as error:
        assert error.response["Error"]["Code"] == "InternalServerError"
        return None


def _starts(server: PostgreSQL) -> bool:
    """True if the server started: it cannot while processes of the killed one still exist."""
    try:
        server.start()
    except psycopg.OperationalError:
        return False
    return True


class Transfers:
    """Moves money between accounts, in transactions, until the block ends."""

    def __init__(self, clients: list[Any], table: str) -> None:
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._move, args=[client, table, place])
            for place, client in enumerate(clients)
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _move(self, client: Any, table: str, place: int) -> None:
        turn = place
        while not self._is_over.is_set():
            turn += 1
            pair = ACCOUNTS[turn % 4], ACCOUNTS[(turn + 1 + place) % 4]
            if pair[0] == pair[1]:
                continue
            updates = [
                {
                    "Update": {
                        "TableName": table,
                        "Key": item(name),
                        "UpdateExpression": "ADD euros :euros",
                        "ExpressionAttributeValues": {":euros": {"N": euros}},
                    }
                }
                for name, euros in zip(pair, ("-1", "1"), strict=True)
            ]
            try:
                client.transact_write_items(TransactItems=updates)
            except (ClientError, BotoCoreError):
                time.sleep(0.05)


@pytest.mark.soak
def test_nobody_reads_or_writes_a_primary_that_was_replaced_while_it_stood_still(
    pair: Pair,
) -> None:
    url = pair.url("failing")
    assert processes.run("storage", "init", url).returncode == 0
    with processes.starting() as start:
        clients = [start("serve", "--port", "0", "--storage", url).client() for _ in range(3)]
        table = create(clients[0])
        former = pair.primary
        with Writers(clients, table) as writers:
            writers.wait_for(20)
            pause(former)
            time.sleep(4)
            pair.promote()
            writers.wait_for(10)
            resume(former)
            answered = 0
            for _ in range(40):
                known = list(writers.acknowledged)
                for place, acknowledged in enumerate(known):
                    for client in clients:
                        try:
                            assert number(client, table, f"w{place}", "n") >= acknowledged
                        except (ClientError, BotoCoreError):
                            continue
                        answered += 1
                time.sleep(0.1)
            assert answered > 40
        with former.connect("failing") as connection:
            connection.execute("SET statement_timeout = '5s'")
            before = _versions(connection)
            for client in clients:
                client.put_item(TableName=table, Item=item("later", n=1))
            assert _versions(connection) == before
    assert processes.run("storage", "check", pair.url("failing")).returncode == 0


def _versions(connection: Any) -> Any:
    return connection.execute("SELECT count(*), max(version) FROM partita_rows").fetchone()

"""PostgreSQL and servers are killed: nothing acknowledged is lost, and requests work again."""

from __future__ import annotations

import random
import signal
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from testkit.data.item_tables import create, is_backed_up, item, number, until
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

MOVES_SECONDS_MAX = 30
STREAMED = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}


class Writers:
    """Clients that each increment an item of their own, and count acknowledged increments."""

    def __init__(self, clients: list[Any], table: str) -> None:
        self.acknowledged = [0] * len(clients)
        self.refused = 0
        self._table = table
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=[place, client])
            for place, client in enumerate(clients)
        ]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Wait until each client has made so many more increments."""
        wanted = [count + more for count in self.acknowledged]
        deadline = time.monotonic() + MOVES_SECONDS_MAX
        while any(have < want for have, want in zip(self.acknowledged, wanted, strict=True)):
            assert time.monotonic() < deadline, f"{self.acknowledged} of {wanted}"
            time.sleep(0.05)

    def _write(self, place: int, client: Any) -> None:
        turn = 0
        while not self._is_over.is_set():
            turn += 1
            try:
                client.put_item(TableName=self._table, Item=item(f"w{place}", n=turn))
                self.acknowledged[place] = turn
            except (ClientError, BotoCoreError):
                self.refused += 1
                time.sleep(0.05)


def _leader(postgresql: PostgreSQL, database: str) -> int | None:
    connection = postgresql.connect(database)
    try:
        leases = "SELECT holder FROM partita_leases WHERE expires_at > now()"
        found = connection.execute(leases).fetchone()
        return None if found is None else int(found[0])
    finally:
        connection.close()


def _wait_for_another_leader(postgresql: PostgreSQL, database: str, before: int | None) -> int:
    deadline = time.monotonic() + MOVES_SECONDS_MAX
    while (leader := _leader(postgresql, database)) in (None, before):
        assert time.monotonic() < deadline, "nobody leads"
        time.sleep(0.1)
    assert leader is not None
    return leader


def test_a_killed_database_loses_nothing_acknowledged_and_is_used_again() -> None:
    PostgreSQL.require()
    with PostgreSQL() as postgresql, processes.starting() as start:
        storage = storage_url(postgresql, "killed")
        assert processes.run("storage", "init", storage).returncode == 0
        servers = [start("serve", "--port", "0", "--storage", storage) for _ in range(2)]
        clients = [server.client() for server in servers]
        table = create(clients[0])
        with Writers(clients, table) as writers:
            writers.wait_for(30)
            for _ in range(2):
                postgresql.kill()
                time.sleep(0.2)
                postgresql.start()
                writers.wait_for(20)
        for place, acknowledged in enumerate(writers.acknowledged):
            assert number(clients[1], table, f"w{place}", "n") >= acknowledged
        codes = [server.terminate()[0] for server in servers]
        assert codes == [0, 0]
        assert processes.run("storage", "check", storage).returncode == 0


@pytest.mark.soak
def test_leadership_moves_when_the_leader_is_killed(postgresql: PostgreSQL) -> None:
    storage = storage_url(postgresql, "leaders")
    assert processes.run("storage", "init", storage).returncode == 0
    with processes.starting() as start:
        first = start("serve", "--port", "0", "--storage", storage)
        leader = _wait_for_another_leader(postgresql, "leaders", None)
        client = start("serve", "--port", "0", "--storage", storage).client()
        table = create(client)
        first.kill()
        client.delete_table(TableName=table)
        _wait_for_another_leader(postgresql, "leaders", leader)
        deadline = time.monotonic() + MOVES_SECONDS_MAX
        while _has_rows_of_deleted_tables(postgresql, "leaders"):
            assert time.monotonic() < deadline
            time.sleep(0.2)


def _has_rows_of_deleted_tables(postgresql: PostgreSQL, database: str) -> bool:
    """True if leftovers (key space 06) still wait to be removed in the background."""
    connection = postgresql.connect(database)
    try:
        found = connection.execute("SELECT 1 FROM partita_rows WHERE substr(key, 1, 1) = '\\x06'")
        return found.fetchone() is not None
    finally:
        connection.close()


@pytest.mark.soak
def test_a_leader_that_was_stopped_past_its_lease_is_fenced(postgresql: PostgreSQL) -> None:
    storage = storage_url(postgresql, "fenced")
    assert processes.run("storage", "init", storage).returncode == 0
    with processes.starting() as start:
        first = start("serve", "--port", "0", "--storage", storage)
        leader = _wait_for_another_leader(postgresql, "fenced", None)
        second = start("serve", "--port", "0", "--storage", storage)
        table = create(second.client())
        first.process.send_signal(signal.SIGSTOP)
        try:
            moved = _wait_for_another_leader(postgresql, "fenced", leader)
            second.client().put_item(TableName=table, Item=item("a", n=1))
        finally:
            first.process.send_signal(signal.SIGCONT)
        time.sleep(2)
        assert _leader(postgresql, "fenced") == moved
        assert number(first.client(), table, "a", "n") == 1


def test_a_server_says_once_that_its_database_is_away_and_goes_on_or_stops_when_told() -> None:
    PostgreSQL.require()
    with PostgreSQL() as postgresql, processes.starting() as start:
        storage = storage_url(postgresql, "away")
        assert processes.run("storage", "init", storage).returncode == 0
        server = start("serve", "--port", "0", "--storage", storage)
        client = server.client()
        table = create(client)
        postgresql.kill()
        for _ in range(4):
            with pytest.raises(ClientError) as refused:
                client.put_item(TableName=table, Item=item("a"))
            assert refused.value.response["Error"]["Code"] == "InternalServerError"
        postgresql.start()
        _wait_for_a_put(client, table)
        postgresql.kill()
        with pytest.raises(ClientError):
            client.put_item(TableName=table, Item=item("b"))
        started = time.monotonic()
        code, lines = server.terminate()
        assert code == 0
        assert time.monotonic() - started < 10
        assert [line.partition(" used")[0].split()[-2:] for line in lines.splitlines()] in (
            [["cannot", "be"], ["can", "be"]],
            [["cannot", "be"], ["can", "be"], ["cannot", "be"]],
            # The leader could not release its lease.
            [["cannot", "be"], ["can", "be"], ["by", "itself."]],
        ), lines


def _wait_for_a_put(client: Any, table: str) -> None:
    deadline = time.monotonic() + MOVES_SECONDS_MAX
    while True:
        try:
            client.put_item(TableName=table, Item=item("a"))
            return
        except ClientError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


class RetryingWriter:
    """Increments an item, each time through a server that answers."""

    def __init__(self, clients: list[Any], table: str, name: str) -> None:
        self.acknowledged = 0
        self._clients = clients
        self._table = table
        self._name = name
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> RetryingWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def is_beyond(self, count: int) -> bool:
        return self.acknowledged > count

    def _write(self) -> None:
        turn = 0
        while not self._is_over.is_set():
            wanted = self.acknowledged + 1
            turn += 1
            try:
                self._clients[turn % len(self._clients)].update_item(
                    TableName=self._table,
                    Key=item(self._name),
                    UpdateExpression="SET n = :n",
                    ConditionExpression="attribute_not_exists(n) OR n = :before OR n = :n",
                    ExpressionAttributeValues={
                        ":before": {"N": str(wanted - 1)},
                        ":n": {"N": str(wanted)},
                    },
                )
                self.acknowledged = wanted
            except BotoCoreError:
                continue


@pytest.mark.soak
@pytest.mark.parametrize("seed", [15, 16])
def test_ten_servers_are_killed_and_clients_go_on_with_the_others(
    postgresql: PostgreSQL, seed: int
) -> None:
    """Nothing is lost or done twice, no job is stuck, and a server leads again within seconds."""
    database = f"retried_{seed}"
    storage = storage_url(postgresql, database)
    assert processes.run("storage", "init", storage).returncode == 0
    serve = ("serve", "--port", "0", "--storage", storage)
    chance = random.Random(seed)
    with processes.starting() as start, ExitStack() as stack:
        servers = [start(*serve) for _ in range(3)]
        clients = [server.client() for server in servers]
        table = create(clients[0], **STREAMED)
        writers = [
            stack.enter_context(RetryingWriter(clients, table, f"w{place}")) for place in range(6)
        ]
        for turn in range(10):
            before = [writer.acknowledged for writer in writers]
            place = chance.randrange(3)
            other = clients[(place + 1) % 3]
            backup = other.create_backup(TableName=table, BackupName=f"round-{turn}")
            doomed = create(clients[place])
            other.delete_table(TableName=doomed)
            servers[place].kill()
            arn = backup["BackupDetails"]["BackupArn"]
            until(partial(is_backed_up, other, arn))
            until(lambda: not _has_rows_of_deleted_tables(postgresql, database))
            servers[place] = start(*serve)
            clients[place] = servers[place].client()
            for writer, had in zip(writers, before, strict=True):
                until(partial(writer.is_beyond, had))
    with processes.starting() as start:
        client = start(*serve).client()
        for place, writer in enumerate(writers):
            assert number(client, table, f"w{place}", "n") - writer.acknowledged in (0, 1)
    checked = processes.run("storage", "check", storage)
    assert checked.returncode == 0, checked.stdout

"""A request that is decided again takes effect once; one that cannot be decided is refused."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from partita.database.capacity.ledger import OFF
from partita.database.shared.rounds.shared_requests import RequestLedger, SharedRequest
from partita.foundation.service_limits import GB
from testkit.data.item_tables import create, item, number, until, wait_for_commits
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

LSI = {
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by-other",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "other", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


def test_a_request_that_runs_again_pays_once_and_only_when_it_lacks_nothing() -> None:
    ledger = RequestLedger(lambda: 0.0, OFF)
    request = SharedRequest(0.0, lambda _: None)
    has_misses, paid = True, count(1)
    ledger.has_misses = lambda: has_misses

    def run() -> list[int]:
        """The number of charges made so far, after each of the request's two charges."""
        ledger.begin(request)
        try:
            return [ledger.once(lambda: next(paid), 0) for _ in range(2)]
        finally:
            ledger.end()

    assert run() == [0, 0]
    has_misses = False
    assert run() == [1, 2]
    assert run() == [1, 2]
    assert next(paid) == 3


@pytest.mark.soak
def test_writes_that_are_decided_again_are_charged_once(postgresql: PostgreSQL) -> None:
    storage = storage_url(postgresql, "charged")
    assert processes.run("storage", "init", storage).returncode == 0
    options = ("--storage", storage, "--capacity", "enforce")
    with processes.starting() as start:
        clients = [start("serve", "--port", "0", *options).client() for _ in range(3)]
        table = create(clients[0])

        def add(worker: int) -> None:
            for _ in range(50):
                clients[worker % 3].update_item(
                    TableName=table,
                    Key=item("hot"),
                    UpdateExpression="ADD n :one",
                    ExpressionAttributeValues={":one": {"N": "1"}},
                )

        with ThreadPoolExecutor(12) as pool:
            list(pool.map(add, range(12)))
        assert number(clients[0], table, "hot", "n") == 600
        until(lambda: _units(postgresql) >= 600)
        time.sleep(1.5)
        assert _units(postgresql) == 600


def _units(postgresql: PostgreSQL) -> float:
    with postgresql.connect("charged") as connection:
        (units,) = connection.execute("SELECT sum(writes) FROM partita_usage").fetchone()
        return float(units or 0)


@pytest.mark.parametrize(("held_seconds", "answer"), [(0.0, "done"), (0.9, "TransactionConflict")])
def test_a_transaction_that_is_overtaken_is_decided_again_for_half_a_second(
    postgresql: PostgreSQL, clients: list[Any], held_seconds: float, answer: str
) -> None:
    first, second, third = clients
    table = create(first)
    first.put_item(TableName=table, Item=item("a", n=0))
    change = {
        "TableName": table,
        "Key": item("a"),
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }

    def transact() -> str:
        try:
            second.transact_write_items(TransactItems=[{"Update": change}])
        except second.exceptions.TransactionCanceledException as error:
            return str(error.response["CancellationReasons"][0]["Code"])
        return "done"

    with postgresql.connect("shared") as blocker, ThreadPoolExecutor(2) as pool:
        blocker.autocommit = False
        # The first commit waits here with the item changed; the other one waits for the first.
        blocker.execute("LOCK TABLE partita_commits IN EXCLUSIVE MODE")
        ahead: Future[Any] = pool.submit(first.update_item, **change)
        wait_for_commits(postgresql, "shared", 1)
        behind = pool.submit(transact)
        wait_for_commits(postgresql, "shared", 2)
        time.sleep(held_seconds)
        blocker.rollback()
        ahead.result()
        assert behind.result() == answer
    assert number(third, table, "a", "n") == (2 if answer == "done" else 1)


def test_the_limit_of_a_collection_counts_what_servers_have_not_summed_yet(
    postgresql: PostgreSQL, clients: list[Any]
) -> None:
    name = "crowded"
    first, second, third = clients
    first.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": one, "AttributeType": "S"} for one in ("pk", "sk", "other")
        ],
        BillingMode="PAY_PER_REQUEST",
        **LSI,
    )

    def put(client: Any, place: int) -> None:
        row = {"pk": {"S": name}, "sk": {"S": str(place)}, "other": {"S": "o" * 500}}
        client.put_item(TableName=name, Item=row)

    put(first, 0)
    with postgresql.connect("shared") as connection:

        def grow(statement: str, size: int) -> None:
            place = """SELECT DISTINCT key, bucket FROM (
                SELECT key, bucket FROM partita_counts UNION SELECT key, bucket FROM partita_sums
            ) AS k WHERE position('crowded'::bytea IN key) > 0"""
            connection.execute(statement.format(place), [size])

        append = "INSERT INTO partita_counts SELECT key, bucket, 0, %s FROM ({}) AS k"
        add = """INSERT INTO partita_sums AS s SELECT key, bucket, 0, %s FROM ({}) AS k
            ON CONFLICT (key, bucket) DO UPDATE SET bytes = s.bytes + EXCLUDED.bytes"""
        grow(add, 6 * GB)
        put(second, 1)
        grow(append, 4 * GB)
        with pytest.raises(ClientError) as refused:
            put(third, 2)
        assert refused.value.response["Error"]["Code"] == "ItemCollectionSizeLimitExceededException"
        grow(append, -4 * GB)
        put(third, 2)
        grow(add, -6 * GB)


@pytest.mark.soak
def test_a_primary_whose_heartbeat_stands_still_answers_nothing(postgresql: PostgreSQL) -> None:
    storage = storage_url(postgresql, "heartbeat")
    assert processes.run("storage", "init", storage).returncode == 0
    with processes.starting() as start, ThreadPoolExecutor(1) as pool:
        client = start("serve", "--port", "0", "--storage", storage).client()
        table = create(client)
        client.put_item(TableName=table, Item=item("a", n=1))
        with postgresql.connect("heartbeat") as blocker:
            blocker.autocommit = False
            # Like a commit that waits for a standby that is gone.
            blocker.execute("SELECT 1 FROM partita_heartbeat FOR UPDATE")
            time.sleep(3.5)
            reading = pool.submit(number, client, table, "a", "n")
            time.sleep(2)
            assert not reading.done() or reading.exception() is not None
            blocker.rollback()
        with_answer = until(lambda: _answered(client, table))
        assert with_answer == 1


def _answered(client: Any, table: str) -> int:
    try:
        return number(client, table, "a", "n")
    except ClientError:
        return 0

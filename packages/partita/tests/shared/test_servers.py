"""Three servers on one database: nothing is lost, and each reads what others acknowledged."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit.data.item_tables import create, item, number, wait_for_commits
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL

ABSENT = "attribute_not_exists(pk)"


def test_a_table_is_there_for_all_servers_at_once(clients: list[Any]) -> None:
    table = create(clients[0])
    for place, client in enumerate(clients):
        client.put_item(TableName=table, Item=item(f"k{place}"))
    assert [client.scan(TableName=table)["Count"] for client in clients] == [3, 3, 3]
    clients[1].delete_table(TableName=table)
    with pytest.raises(clients[2].exceptions.ResourceNotFoundException):
        clients[2].put_item(TableName=table, Item=item("late"))
    assert table not in clients[0].list_tables()["TableNames"]


def test_a_write_that_one_server_acknowledged_is_read_on_another(clients: list[Any]) -> None:
    table = create(clients[0])
    for turn in range(60):
        writer, reader = clients[turn % 3], clients[(turn + 1) % 3]
        writer.put_item(TableName=table, Item=item("one", turn=turn))
        assert number(reader, table, "one", "turn") == turn


def test_a_token_of_one_server_is_good_on_another(clients: list[Any]) -> None:
    table = create(clients[0])
    for place in range(7):
        clients[0].put_item(TableName=table, Item=item(f"k{place}"))
    statement, seen = f'SELECT pk FROM "{table}"', 0
    more: dict[str, Any] = {}
    for turn in range(9):
        page = clients[turn % 3].execute_statement(Statement=statement, Limit=2, **more)
        seen += len(page["Items"])
        if "NextToken" not in page:
            break
        more = {"NextToken": page["NextToken"]}
    assert seen == 7


def test_no_increment_of_a_contended_counter_is_lost(clients: list[Any]) -> None:
    table = create(clients[0])
    longest = []

    def increment(worker: int) -> None:
        slowest = 0.0
        for _ in range(15):
            started = time.monotonic()
            clients[worker % 3].update_item(
                TableName=table,
                Key=item("counter"),
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
            slowest = max(slowest, time.monotonic() - started)
        longest.append(slowest)

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(increment, range(24)))
    assert number(clients[0], table, "counter", "n") == 24 * 15
    assert max(longest) < 10


def test_conditions_on_each_others_absent_items_cannot_both_hold(clients: list[Any]) -> None:
    table = create(clients[0])

    def put_unless(client: Any, absent: str, new: str, start: threading.Barrier) -> bool:
        start.wait()
        check = {"TableName": table, "Key": item(absent), "ConditionExpression": ABSENT}
        put = {"TableName": table, "Item": item(new)}
        try:
            client.transact_write_items(TransactItems=[{"ConditionCheck": check}, {"Put": put}])
        except client.exceptions.TransactionCanceledException:
            return False
        return True

    winners = []
    with ThreadPoolExecutor(2) as pool:
        for turn in range(60):
            a, b, start = f"a{turn}", f"b{turn}", threading.Barrier(2)
            first = pool.submit(put_unless, clients[turn % 3], a, b, start)
            second = pool.submit(put_unless, clients[(turn + 1) % 3], b, a, start)
            winners.append(first.result() + second.result())
    assert set(winners) == {1}


def test_an_absent_item_that_was_only_checked_stays_absent(clients: list[Any]) -> None:
    table = create(clients[0])
    check = {"TableName": table, "Key": item("a"), "ConditionExpression": ABSENT}
    put = {"TableName": table, "Item": item("b")}
    clients[0].transact_write_items(TransactItems=[{"ConditionCheck": check}, {"Put": put}])
    assert clients[1].scan(TableName=table)["Items"] == [item("b")]
    assert "Item" not in clients[2].get_item(TableName=table, Key=item("a"))


def test_transfers_between_accounts_keep_their_total(clients: list[Any]) -> None:
    table = create(clients[0])
    names = [f"account{place}" for place in range(4)]
    for name in names:
        clients[0].put_item(TableName=table, Item=item(name, euros=100))
    totals, is_over = [], threading.Event()

    def transfer(worker: int) -> int:
        client, done = clients[worker % 3], 0
        for turn in range(12):
            source, target = names[(worker + turn) % 4], names[(worker + 2 * turn + 1) % 4]
            if source == target:
                continue
            try:
                client.transact_write_items(
                    TransactItems=[_move(table, source, "-5"), _move(table, target, "5")]
                )
                done += 1
            except client.exceptions.TransactionCanceledException as error:
                codes = {reason["Code"] for reason in error.response["CancellationReasons"]}
                assert codes <= {"None", "TransactionConflict"}
        return done

    def watch() -> None:
        while not is_over.is_set():
            gets = [{"Get": {"TableName": table, "Key": item(name)}} for name in names]
            found = clients[2].transact_get_items(TransactItems=gets)["Responses"]
            totals.append(sum(int(one["Item"]["euros"]["N"]) for one in found))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(6) as pool:
        done = sum(pool.map(transfer, range(6)))
    is_over.set()
    watcher.join()
    assert done > 0
    assert set(totals) == {400}


def _move(table: str, account: str, euros: str) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": table,
            "Key": item(account),
            "UpdateExpression": "ADD euros :euros",
            "ExpressionAttributeValues": {":euros": {"N": euros}},
        }
    }


def test_a_client_token_is_used_once_on_all_servers(clients: list[Any]) -> None:
    table = create(clients[0])
    actions = [_move(table, "a", "1")]
    for client in clients * 2:
        client.transact_write_items(TransactItems=actions, ClientRequestToken="once and no more")
    assert number(clients[1], table, "a", "euros") == 1


def test_counts_and_sizes_are_those_of_all_servers(clients: list[Any]) -> None:
    table = create(clients[0])
    for place in range(30):
        clients[place % 3].put_item(TableName=table, Item=item(f"k{place:02}"))
    for place in range(0, 30, 3):
        clients[(place + 1) % 3].delete_item(TableName=table, Key=item(f"k{place:02}"))
    described = clients[2].describe_table(TableName=table)["Table"]
    assert described["ItemCount"] == 20
    assert described["TableSizeBytes"] == 20 * 5


def test_a_new_index_misses_no_write_of_any_server(clients: list[Any]) -> None:
    table = create(clients[0])
    is_over = threading.Event()
    written = [0, 0, 0]

    def write(server: int) -> None:
        while not is_over.is_set():
            key = f"{server}-{written[server]}"
            clients[server].put_item(TableName=table, Item=item(key, g=written[server] % 5))
            written[server] += 1

    writers = [threading.Thread(target=write, args=[server]) for server in range(3)]
    for writer in writers:
        writer.start()
    time.sleep(0.3)
    clients[0].update_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "N"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "by_g",
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            }
        ],
    )
    deadline = time.monotonic() + 30
    while _index_status(clients[1], table) != "ACTIVE":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    is_over.set()
    for writer in writers:
        writer.join()
    pages = clients[2].get_paginator("scan").paginate(TableName=table, IndexName="by_g")
    indexed = {one["pk"]["S"] for page in pages for one in page["Items"]}
    assert indexed == {f"{server}-{n}" for server in range(3) for n in range(written[server])}


def _index_status(client: Any, table: str) -> str:
    (index,) = client.describe_table(TableName=table)["Table"]["GlobalSecondaryIndexes"]
    return str(index["IndexStatus"])


def test_a_hot_item_without_room_for_all_is_never_an_internal_error(clients: list[Any]) -> None:
    table = create(clients[0])

    def claim(worker: int) -> bool:
        try:
            clients[worker % 3].put_item(
                TableName=table, Item=item("seat", owner=worker), ConditionExpression=ABSENT
            )
        except ClientError as error:
            assert error.response["Error"]["Code"] == "ConditionalCheckFailedException"
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(claim, range(12))) == 1


def test_a_token_in_use_on_another_server_is_a_transaction_in_progress(
    postgresql: PostgreSQL, clients: list[Any]
) -> None:
    table = create(clients[0])
    clients[0].put_item(TableName=table, Item=item("a", euros=0))
    actions = [_move(table, "a", "1")]

    def transact(client: Any) -> str:
        try:
            client.transact_write_items(TransactItems=actions, ClientRequestToken=f"in use {table}")
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return "done"

    with postgresql.connect("shared") as blocker, ThreadPoolExecutor(3) as pool:
        blocker.autocommit = False
        # No commit gets past this lock: all of them are in progress at once.
        blocker.execute("LOCK TABLE partita_commits IN EXCLUSIVE MODE")
        under_way = [pool.submit(transact, client) for client in clients]
        wait_for_commits(postgresql, "shared", len(clients))
        blocker.rollback()
        answers = sorted(one.result() for one in under_way)
    assert answers == ["TransactionInProgressException"] * 2 + ["done"]
    assert number(clients[1], table, "a", "euros") == 1
    assert transact(clients[2]) == "done"
    assert number(clients[1], table, "a", "euros") == 1


def test_writes_to_one_item_collection_from_several_servers_do_not_conflict(
    clients: list[Any],
) -> None:
    client = clients[0]
    client.create_table(
        TableName="collections",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "other")
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by-other",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "other", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )

    def write(worker: int) -> None:
        for turn in range(10):
            row = {"pk": {"S": "one"}, "sk": {"S": f"{worker}-{turn}"}, "other": {"S": "o"}}
            clients[worker % 3].put_item(TableName="collections", Item=row)
            if turn % 2:
                key = {"pk": row["pk"], "sk": row["sk"]}
                clients[(worker + 1) % 3].delete_item(TableName="collections", Key=key)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    # `partita storage check` checks the sizes after all tests.
    found = client.query(
        TableName="collections",
        IndexName="by-other",
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": "one"}},
    )
    assert found["Count"] == 30


def test_large_requests_are_answered_by_every_server(clients: list[Any]) -> None:
    table = create(clients[0])
    large = [{"M": {f"n{place}": {"N": str(place)}}} for place in range(12_000)]
    clients[0].put_item(TableName=table, Item={**item("large"), "list": {"L": large}})
    got = clients[1].get_item(TableName=table, Key=item("large"))["Item"]
    assert len(got["list"]["L"]) == 12_000
    described = clients[2].describe_table(TableName=table)["Table"]
    assert described["ItemCount"] == 1


def test_a_large_request_does_not_keep_the_others_of_its_server_waiting(clients: list[Any]) -> None:
    table = create(clients[0], StreamSpecification={"StreamEnabled": False})
    large = [{"M": {f"n{place}": {"N": str(place)}}} for place in range(12_000)]
    puts = [
        {"PutRequest": {"Item": {**item(f"large{place}"), "list": {"L": large}}}}
        for place in range(12)
    ]
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(clients[0].batch_write_item, RequestItems={table: puts})
        answered = 0
        while not writing.done():
            clients[0].get_item(TableName=table, Key=item("small"))
            answered += 1
        assert writing.result()["UnprocessedItems"] == {}
    assert answered > 10
    assert clients[1].scan(TableName=table, Select="COUNT")["Count"] > 0


def test_a_policy_of_a_table_is_there_for_all_servers(clients: list[Any]) -> None:
    table = create(clients[0])
    arn = clients[0].describe_table(TableName=table)["Table"]["TableArn"]
    statement = {"Effect": "Allow", "Principal": "*", "Action": "dynamodb:GetItem", "Resource": arn}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    clients[0].put_resource_policy(ResourceArn=arn, Policy=policy)
    got = clients[1].get_resource_policy(ResourceArn=arn)["Policy"]
    assert json.loads(got) == json.loads(policy)
    clients[2].delete_resource_policy(ResourceArn=arn)
    with pytest.raises(clients[0].exceptions.PolicyNotFoundException):
        clients[0].get_resource_policy(ResourceArn=arn)


def test_what_a_companion_writes_counts_only_under_the_token_of_the_leader(
    postgresql: PostgreSQL, servers: list[processes.Server], clients: list[Any]
) -> None:
    table = create(clients[0])
    with postgresql.connect("shared") as connection:
        (token,) = connection.execute("SELECT token FROM partita_leases").fetchone()
    fenced, former = (_fenced_client(servers[1], number) for number in (token, token - 1))
    fenced.put_item(TableName=table, Item=item("a", n=1))
    late: dict[str, dict[str, Any]] = {
        "put_item": {"Item": item("a", n=2)},
        "delete_item": {"Key": item("a")},
        "delete_table": {},
    }
    for operation, parameters in late.items():
        with pytest.raises(ClientError) as refused:
            getattr(former, operation)(TableName=table, **parameters)
        assert "Another server has become the leader" in refused.value.response["Error"]["Message"]
    assert number(clients[2], table, "a", "n") == 1


def _fenced_client(server: processes.Server, token: int) -> Any:
    client = server.client()

    def add(request: Any, **_: Any) -> None:
        request.headers["X-Partita-Fence"] = str(token)

    client.meta.events.register("before-sign.dynamodb", add)
    return client

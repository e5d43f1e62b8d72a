"""Many clients at once: transactions are all or nothing, counters are exact."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

THREADS = 16
ROUNDS = 20
ONE = {":one": {"N": "1"}}


@pytest.fixture(scope="module")
def counters(module_table: Any) -> str:
    """A table with the string key pk."""
    return str(module_table())


def at_once(work: Callable[[int], int], threads: int = THREADS) -> list[int]:
    """Runs `work(number)` in several threads at once, and returns their results."""
    barrier = threading.Barrier(threads)

    def run(number: int) -> int:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def value(client: Any, table: str, pk: str, name: str = "n") -> int:
    answer = client.get_item(TableName=table, Key={"pk": {"S": pk}}, ConsistentRead=True)
    return int(answer.get("Item", {}).get(name, {"N": "0"})["N"])


def add(table: str, pk: str) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": {"pk": {"S": pk}},
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": ONE,
    }


def succeeded(client: Any, actions: list[dict[str, Any]]) -> bool:
    """Returns True if the transaction succeeded; the only other permitted outcome is a conflict."""
    try:
        client.transact_write_items(TransactItems=actions)
    except client.exceptions.TransactionCanceledException as cancelled:
        codes = {reason["Code"] for reason in cancelled.response["CancellationReasons"]}
        assert codes <= {"None", "TransactionConflict"}
        assert "TransactionConflict" in codes
        return False
    return True


def test_atomic_counters_lose_nothing(client: Any, counters: str) -> None:
    def work(number: int) -> int:
        for _ in range(ROUNDS):
            client.update_item(**add(counters, "atomic"))
        return ROUNDS

    assert sum(at_once(work)) == value(client, counters, "atomic") == THREADS * ROUNDS


def test_only_one_of_many_conditional_puts_succeeds(client: Any, counters: str) -> None:
    def work(number: int) -> int:
        try:
            client.put_item(
                TableName=counters,
                Item={"pk": {"S": "first"}, "n": {"N": str(number)}},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except client.exceptions.ConditionalCheckFailedException:
            return 0
        return 1

    assert sum(at_once(work)) == 1


def test_optimistic_locks_lose_nothing(client: Any, counters: str) -> None:
    def work(number: int) -> int:
        done = 0
        while done < 5:
            seen = value(client, counters, "locked")
            condition = "n = :seen" if seen else "attribute_not_exists(n)"
            values = {":next": {"N": str(seen + 1)}}
            if seen:
                values[":seen"] = {"N": str(seen)}
            try:
                client.update_item(
                    TableName=counters,
                    Key={"pk": {"S": "locked"}},
                    UpdateExpression="SET n = :next",
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                )
            except client.exceptions.ConditionalCheckFailedException:
                continue
            done += 1
        return done

    assert sum(at_once(work, 8)) == value(client, counters, "locked") == 40


def test_transactions_count_exactly_their_successes(client: Any, counters: str) -> None:
    shared = ["shared 1", "shared 2", "shared 3"]

    def work(number: int) -> int:
        actions = [{"Update": add(counters, pk)} for pk in shared]
        # Each thread has its own order, which must not matter.
        actions = actions[number % 3 :] + actions[: number % 3]
        return sum(succeeded(client, actions) for _ in range(ROUNDS))

    successes = sum(at_once(work))
    assert successes > 0
    assert [value(client, counters, pk) for pk in shared] == [successes] * 3


def test_transactions_and_single_writes_share_a_counter(client: Any, counters: str) -> None:
    def work(number: int) -> int:
        done = 0
        for _ in range(ROUNDS):
            if number % 2:
                done += succeeded(client, [{"Update": add(counters, "both")}])
                continue
            try:
                client.update_item(**add(counters, "both"))
                done += 1
            except ClientError as error:
                # recorded: a write that meets a transaction under way
                assert error.response["Error"]["Code"] == "TransactionConflictException"
        return done

    assert sum(at_once(work)) == value(client, counters, "both")


def test_a_repeated_token_counts_once_however_many_send_it(client: Any, counters: str) -> None:
    action = {"Update": add(counters, "token")}

    def work(number: int) -> int:
        try:
            client.transact_write_items(
                TransactItems=[action], ClientRequestToken="the same token for all"
            )
        except client.exceptions.TransactionInProgressException:
            return 0
        except client.exceptions.TransactionCanceledException as cancelled:
            (reason,) = cancelled.response["CancellationReasons"]
            assert reason["Code"] == "TransactionConflict"
            return 0
        return 1

    assert sum(at_once(work)) >= 1
    assert value(client, counters, "token") == 1


def test_a_transaction_is_never_seen_half_written(client: Any, counters: str) -> None:
    pair = ["left", "right"]
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": counters, "Item": {"pk": {"S": pk}, "n": {"N": "0"}}}}
            for pk in pair
        ]
    )
    gets = [{"Get": {"TableName": counters, "Key": {"pk": {"S": pk}}}} for pk in pair]
    stop = threading.Event()

    def work(number: int) -> int:
        if number % 2:
            try:
                actions = [{"Update": add(counters, pk)} for pk in pair]
                return sum(succeeded(client, actions) for _ in range(ROUNDS * 2))
            finally:
                stop.set()
        reads = 0
        while not stop.is_set() or not reads:
            try:
                responses = client.transact_get_items(TransactItems=gets)["Responses"]
            except client.exceptions.TransactionCanceledException as cancelled:
                codes = {reason["Code"] for reason in cancelled.response["CancellationReasons"]}
                assert codes <= {"None", "TransactionConflict"}
                continue
            left, right = (response["Item"]["n"] for response in responses)
            assert left == right
            reads += 1
        return 0

    successes = sum(at_once(work, 8))
    assert [value(client, counters, pk) for pk in pair] == [successes] * 2


def test_an_index_never_loses_or_doubles_an_entry(client: Any, table: Any) -> None:
    name = table(
        attributes={"g": "S"},
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_g",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )

    def work(number: int) -> int:
        for round_ in range(ROUNDS):
            client.put_item(
                TableName=name,
                Item={
                    "pk": {"S": str(round_ % 4)},
                    "g": {"S": str((number + round_) % 3)},
                    "n": {"N": str(number)},
                },
            )
        return ROUNDS

    at_once(work)
    items = client.scan(TableName=name, ConsistentRead=True)["Items"]
    entries = client.scan(TableName=name, IndexName="by_g")["Items"]
    assert len(items) == 4
    assert sorted(entries, key=lambda item: str(item["pk"]["S"])) == sorted(
        items, key=lambda item: str(item["pk"]["S"])
    )

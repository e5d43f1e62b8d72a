"""Injected faults: which call fails, how, and that it changes nothing."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from partita import testing

ONCE = Config(retries={"total_max_attempts": 1})


@pytest.fixture
def client(database: testing.Database, table: Any) -> Any:
    """A client that does not retry."""
    return database.client(config=ONCE)


def put(client: Any, key: str = "1") -> str:
    """Puts an item; returns the error code, or "" for a success."""
    try:
        client.put_item(TableName="orders", Item={"pk": {"S": key}})
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def test_the_nth_call_is_throttled_and_changes_nothing(
    database: testing.Database, client: Any
) -> None:
    fault = database.faults.throttle("PutItem", nth=3)
    codes = [put(client, str(number)) for number in range(5)]
    assert codes == ["", "", "ProvisionedThroughputExceededException", "", ""]
    assert (fault.calls, fault.hits) == (5, 1)
    found = client.scan(TableName="orders")["Items"]
    assert sorted(item["pk"]["S"] for item in found) == ["0", "1", "3", "4"]


def test_botocore_tries_again_by_itself(database: testing.Database, table: Any) -> None:
    fault = database.faults.throttle("PutItem", nth=1)
    answer = table.put_item(Item={"pk": "1"})
    assert (fault.calls, fault.hits) == (2, 1)
    assert answer["ResponseMetadata"]["RetryAttempts"] == 1


def test_operations_on_tables_are_throttled_in_their_own_way(
    database: testing.Database, client: Any
) -> None:
    database.faults.throttle("DescribeTable")
    with pytest.raises(ClientError) as refused:
        client.describe_table(TableName="orders")
    assert refused.value.response["Error"]["Code"] == "ThrottlingException"


def test_a_failure_has_status_500(database: testing.Database, client: Any) -> None:
    database.faults.fail("Scan", nth=1)
    with pytest.raises(client.exceptions.InternalServerError) as refused:
        client.scan(TableName="orders")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert client.scan(TableName="orders")["Count"] == 0


def test_a_single_write_meets_a_transaction(database: testing.Database, client: Any) -> None:
    database.faults.conflict("PutItem", nth=1)
    assert [put(client), put(client)] == ["TransactionConflictException", ""]


@pytest.mark.parametrize(
    ("operation", "call", "action"),
    [
        ("TransactWriteItems", "transact_write_items", "Put"),
        ("TransactGetItems", "transact_get_items", "Get"),
    ],
)
def test_a_transaction_meets_another(
    database: testing.Database, client: Any, operation: str, call: str, action: str
) -> None:
    database.faults.conflict(operation, nth=1)
    member = {"Put": "Item", "Get": "Key"}[action]
    asked = [
        {action: {"TableName": "orders", member: {"pk": {"S": key}}}} for key in ("one", "two")
    ]
    with pytest.raises(client.exceptions.TransactionCanceledException) as refused:
        getattr(client, call)(TransactItems=asked)
    reasons = refused.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["TransactionConflict"] * 2
    assert client.scan(TableName="orders")["Count"] == 0
    getattr(client, call)(TransactItems=asked)


def hits_of_share(seed: int, *, with_another: bool = False) -> list[str]:
    with testing.database(seed=seed) as database:
        client = database.client(config=ONCE)
        client.create_table(
            TableName="orders",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        if with_another:
            database.faults.fail("Query", share=0.5)
        database.faults.throttle("PutItem", share=0.3)
        return [put(client) for _ in range(60)]


def test_a_share_of_calls_is_the_same_in_every_run_with_a_seed() -> None:
    hits = hits_of_share(seed=1)
    assert 5 < sum(code != "" for code in hits) < 35
    assert hits_of_share(seed=1) == hits
    assert hits_of_share(seed=1, with_another=True) == hits
    assert hits_of_share(seed=2) != hits


def test_a_fault_without_a_number_hits_every_call_until_it_is_cleared(
    database: testing.Database, client: Any
) -> None:
    database.faults.fail("PutItem")
    assert [put(client), put(client)] == ["InternalServerError"] * 2
    database.faults.clear()
    assert put(client) == ""


def test_an_invalid_request_is_told_so_and_not_counted(
    database: testing.Database, client: Any
) -> None:
    fault = database.faults.fail("PutItem", nth=1)
    with pytest.raises(ClientError) as refused:
        client.put_item(TableName="?", Item={"pk": {"S": "1"}})
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert fault.calls == 0


def test_faults_come_over_the_wire_too(database: testing.Database, table: Any) -> None:
    database.faults.throttle("PutItem", nth=1)
    with testing.server(database) as url:
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=ONCE,
        )
        assert [put(client), put(client)] == ["ProvisionedThroughputExceededException", ""]


@pytest.mark.parametrize(
    ("kind", "operation", "order"),
    [
        ("throttle", "PutItems", {}),
        ("throttle", "PutItem", {"nth": 0}),
        ("throttle", "PutItem", {"share": 1.5}),
        ("throttle", "PutItem", {"nth": 1, "share": 0.5}),
        ("conflict", "Query", {}),
    ],
)
def test_an_order_that_cannot_be_met_is_refused(
    database: testing.Database, kind: str, operation: str, order: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"."):
        getattr(database.faults, kind)(operation, **order)

"""ExecuteTransaction: PartiQL statements, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from .refusals import VALIDATION

FAILED = "The conditional request failed"
ITEM: dict[str, Any] = {"pk": {"S": "a"}, "n": {"N": "1"}}

Execute = Callable[..., dict[str, Any]]


@pytest.fixture
def execute(client: Any) -> Execute:
    """`execute("UPDATE ...", {"Statement": ...})`: the whole answer."""

    def transaction(*statements: Any, **more: Any) -> dict[str, Any]:
        asked = [one if isinstance(one, dict) else {"Statement": one} for one in statements]
        answer: dict[str, Any] = client.execute_transaction(TransactStatements=asked, **more)
        del answer["ResponseMetadata"]
        return answer

    return transaction


@pytest.fixture
def things(client: Any, table: Any) -> str:
    name: str = table()
    client.put_item(TableName=name, Item=ITEM)
    return name


def refusal(execute: Execute, *statements: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        execute(*statements, **more)
    return refused.value.response["Error"]["Code"], refused.value.response["Error"]["Message"]


def reasons(execute: Execute, *statements: Any) -> list[dict[str, Any]]:
    with pytest.raises(ClientError) as refused:
        execute(*statements)
    assert refused.value.response["Error"]["Code"] == "TransactionCanceledException"
    found: list[dict[str, Any]] = refused.value.response["CancellationReasons"]
    return found


def item(client: Any, table: str, key: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = client.get_item(TableName=table, Key={"pk": {"S": key}}).get(
        "Item"
    )
    return found


def test_all_writes_are_done(client: Any, execute: Execute, things: str) -> None:
    answer = execute(
        f"INSERT INTO \"{things}\" VALUE {{'pk': 'b', 'n': 5}}",
        {
            "Statement": f'UPDATE "{things}" SET n = n + ? WHERE pk = ?',
            "Parameters": [{"N": "10"}, {"S": "a"}],
        },
        f"DELETE FROM \"{things}\" WHERE pk = 'nobody'",
    )
    assert answer == {"Responses": []}
    assert item(client, things, "a") == {**ITEM, "n": {"N": "11"}}
    assert item(client, things, "b") == {"pk": {"S": "b"}, "n": {"N": "5"}}


def test_parts_of_documents_are_shown_in_their_documents(
    client: Any, execute: Execute, things: str
) -> None:
    # observed on DynamoDB Local; ExecuteStatement shows them beside each other
    document = {"M": {"x": {"N": "1"}, "y": {"L": [{"N": "2"}, {"N": "3"}]}}}
    client.put_item(TableName=things, Item={"pk": {"S": "c"}, "m": document})
    shown = execute(f"SELECT m.x, m.y[1] FROM \"{things}\" WHERE pk = 'c'")["Responses"]
    assert shown == [{"Item": {"m": {"M": {"x": {"N": "1"}, "y": {"L": [{"N": "3"}]}}}}}]


def test_one_failed_condition_undoes_all(client: Any, execute: Execute, things: str) -> None:
    shown = reasons(
        execute,
        f"INSERT INTO \"{things}\" VALUE {{'pk': 'b'}}",
        {
            "Statement": f"UPDATE \"{things}\" SET n = 2 WHERE pk = 'a' AND n = 7",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
        f"DELETE FROM \"{things}\" WHERE pk = 'nobody' AND n = 1",
    )
    failed = {"Code": "ConditionalCheckFailed", "Message": FAILED, "Item": ITEM}
    assert shown == [{"Code": "None"}, failed, {"Code": "None"}]
    assert item(client, things, "b") is None


def test_an_insert_of_a_key_that_is_there_cancels(
    client: Any, execute: Execute, things: str
) -> None:
    shown = reasons(
        execute,
        f"INSERT INTO \"{things}\" VALUE {{'pk': 'a'}}",
        f"INSERT INTO \"{things}\" VALUE {{'pk': 'b'}}",
    )
    duplicate = {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}
    assert shown == [duplicate, {"Code": "None"}]
    assert item(client, things, "b") is None


def test_exists_is_a_condition(client: Any, execute: Execute, things: str) -> None:
    insert = f"INSERT INTO \"{things}\" VALUE {{'pk': 'b'}}"
    check = f"EXISTS(SELECT * FROM \"{things}\" WHERE pk = 'a' AND n = {{n}})"
    (failed, _) = reasons(execute, check.format(n=2), insert)
    assert failed == {"Code": "ConditionalCheckFailed", "Message": FAILED}
    missing = f"EXISTS(SELECT * FROM \"{things}\" WHERE pk = 'nobody' AND n IS MISSING)"
    assert reasons(execute, missing, insert)[0] == failed
    execute(check.format(n=1), insert)
    assert item(client, things, "b")


def test_reads_answer_in_their_order(execute: Execute, things: str) -> None:
    answer = execute(
        f"SELECT * FROM \"{things}\" WHERE pk = 'nobody'",
        f"SELECT n FROM \"{things}\" WHERE pk = 'a'",
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer == {
        "Responses": [{}, {"Item": {"n": {"N": "1"}}}],
        "ConsumedCapacity": [{"TableName": things, "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}],
    }


def test_a_token_is_carried_out_once(client: Any, execute: Execute, things: str) -> None:
    # dynamodb-conformance, recorded from the service: the replay reports a read
    token = str(uuid4())
    statement = f"UPDATE \"{things}\" SET n = n + 1 WHERE pk = 'a'"
    counted: dict[str, Any] = {"ClientRequestToken": token, "ReturnConsumedCapacity": "TOTAL"}
    first = execute(statement, **counted)["ConsumedCapacity"][0]
    again = execute(statement, **counted)["ConsumedCapacity"][0]
    assert (first["WriteCapacityUnits"], again["ReadCapacityUnits"]) == (2.0, 2.0)
    assert item(client, things, "a") == {**ITEM, "n": {"N": "2"}}
    other = f"UPDATE \"{things}\" SET n = n + 2 WHERE pk = 'a'"
    code, _ = refusal(execute, other, **counted)
    assert code == "IdempotentParameterMismatchException"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        # dynamodb-conformance, recorded from the service
        (
            "UPDATE \"{t}\" SET n = 2 WHERE pk = 'a' RETURNING ALL NEW *",
            "RETURNING clause is not supported in ExecuteTransaction.",
        ),
        (
            'SELECT * FROM "{t}"."index" WHERE pk = \'a\'',
            "Reads on indices are not supported within transactions.",
        ),
        (
            'SELECT * FROM "{t}" WHERE n = 1',
            "Select statements within ExecuteTransaction must specify the primary key in the where "
            "clause.",
        ),
        (
            "EXISTS(SELECT * FROM \"{t}\" WHERE pk = 'a')",
            "EXISTS() must contain a single item read with additional condition",
        ),
        # DynamoDB Local
        (
            "SELECT * FROM \"{t}\" WHERE pk = 'a' AND n = 1",
            "Select statements within ExecuteTransaction must specify the primary key in the where "
            "clause.",
        ),
        (
            "UPDATE \"{t}\" SET n = size(1) WHERE pk = 'a'",
            "The function is not allowed in an update expression; function: size",
        ),
        (
            'SELECT * FROM "{t}" WHERE pk = ?',
            "Number of parameters in request and statement don't match.",
        ),
    ],
)
def test_statements_that_no_transaction_takes(
    execute: Execute, things: str, statement: str, message: str
) -> None:
    assert refusal(execute, statement.format(t=things)) == (
        VALIDATION,
        f"Validation failed in TransactStatements[0]: {message}",
    )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            'UPDATE "{t}" SET n = 1 WHERE n = 1',
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
        (
            "UPDATE \"{t}\" SET pk = 'b' WHERE pk = 'a'",
            "One or more parameter values were invalid: Cannot update attribute pk. This attribute "
            "is part of the key",
        ),
        (
            "INSERT INTO \"{t}\" VALUE {{'pk': 1}}",
            "Key attribute's data type should match its data type in table's schema: Key pk",
        ),
        (
            'SELECT * FROM "{t}" WHERE pk = 1',
            "Key attribute's data type should match its data type in table's schema: Key pk",
        ),
    ],
)
def test_keys_that_do_not_fit_cancel(
    execute: Execute, things: str, statement: str, message: str
) -> None:
    assert reasons(execute, statement.format(t=things)) == [
        {"Code": "ValidationError", "Message": message}
    ]


def test_transactions_that_are_refused(execute: Execute, things: str) -> None:
    read = f"SELECT * FROM \"{things}\" WHERE pk = 'a'"
    insert = f"INSERT INTO \"{things}\" VALUE {{'pk': 'b'}}"
    assert refusal(execute, read, insert) == (
        VALIDATION,
        "ExecuteTransaction API does not support both read and write operations in the same "
        "request.",
    )
    several = (VALIDATION, "Transaction request cannot include multiple operations on one item")
    assert refusal(execute, read, read) == several
    assert refusal(execute, insert, f"DELETE FROM \"{things}\" WHERE pk = 'b'") == several
    assert refusal(execute, "foo(1)") == (VALIDATION, "Unsupported operation in transaction.")
    assert refusal(execute, "'a'") == (VALIDATION, "Unsupported operation: Literal")
    missing = "SELECT * FROM \"no_such_table\" WHERE pk = 'a'"
    assert refusal(execute, missing)[0] == "ResourceNotFoundException"
    assert refusal(execute)[0] == VALIDATION
    assert refusal(execute, *[read] * 101)[0] == VALIDATION


def test_a_hundred_statements_are_allowed(execute: Execute, things: str) -> None:
    writes = [f"INSERT INTO \"{things}\" VALUE {{'pk': 'n{number}'}}" for number in range(100)]
    assert execute(*writes) == {"Responses": []}

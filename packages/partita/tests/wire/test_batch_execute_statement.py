"""BatchExecuteStatement: reads or writes of single items, each answered on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .refusals import VALIDATION

ITEM: dict[str, Any] = {"pk": {"S": "a"}, "n": {"N": "1"}}

Batch = Callable[..., dict[str, Any]]


@pytest.fixture
def batch(client: Any) -> Batch:
    """`batch("SELECT ...", {"Statement": ...})`: the whole answer."""

    def execute(*statements: Any, **more: Any) -> dict[str, Any]:
        asked = [one if isinstance(one, dict) else {"Statement": one} for one in statements]
        answer: dict[str, Any] = client.batch_execute_statement(Statements=asked, **more)
        del answer["ResponseMetadata"]
        return answer

    return execute


@pytest.fixture
def things(client: Any, table: Any) -> str:
    name: str = table()
    client.put_item(TableName=name, Item=ITEM)
    client.put_item(TableName=name, Item={"pk": {"S": "b"}})
    return name


def refusal(batch: Batch, *statements: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        batch(*statements)
    return refused.value.response["Error"]["Code"], refused.value.response["Error"]["Message"]


def test_reads_answer_in_their_order(batch: Batch, things: str) -> None:
    answer = batch(
        f"SELECT * FROM \"{things}\" WHERE pk = 'b'",
        f"SELECT * FROM \"{things}\" WHERE pk = 'nobody'",
        {"Statement": f'SELECT n FROM "{things}" WHERE pk = ?', "Parameters": [{"S": "a"}]},
    )
    assert answer == {
        "Responses": [
            {"TableName": things, "Item": {"pk": {"S": "b"}}},
            {"TableName": things},
            {"TableName": things, "Item": {"n": {"N": "1"}}},
        ]
    }


def test_parts_of_documents_are_shown_in_their_documents(
    client: Any, batch: Batch, things: str
) -> None:
    # observed on DynamoDB Local; ExecuteStatement shows them beside each other
    document = {"M": {"x": {"N": "1"}, "y": {"L": [{"N": "2"}, {"N": "3"}]}}}
    client.put_item(TableName=things, Item={"pk": {"S": "c"}, "m": document})
    shown = batch(f"SELECT m.x, m.y[1] FROM \"{things}\" WHERE pk = 'c'")["Responses"]
    assert shown[0]["Item"] == {"m": {"M": {"x": {"N": "1"}, "y": {"L": [{"N": "3"}]}}}}


def test_writes_succeed_and_fail_one_by_one(client: Any, batch: Batch, things: str) -> None:
    answer = batch(
        f"INSERT INTO \"{things}\" VALUE {{'pk': 'a'}}",
        f"INSERT INTO \"{things}\" VALUE {{'pk': 'c'}}",
        f"UPDATE \"{things}\" SET n = 1 WHERE pk = 'nobody'",
        f"UPDATE \"{things}\" SET n = n + 1 WHERE pk = 'b'",
        f"DELETE FROM \"{things}\" WHERE pk = 'none'",
    )
    codes = [one.get("Error", {}).get("Code") for one in answer["Responses"]]
    assert codes == ["DuplicateItem", None, "ConditionalCheckFailed", "ValidationError", None]
    assert all(one["TableName"] == things for one in answer["Responses"])
    assert client.get_item(TableName=things, Key={"pk": {"S": "a"}})["Item"] == ITEM
    assert "Item" in client.get_item(TableName=things, Key={"pk": {"S": "c"}})


def test_returning_and_nothing_to_return(batch: Batch, things: str) -> None:
    # dynamodb-conformance, recorded from the service: an empty projection leaves Item out
    answer = batch(
        f"DELETE FROM \"{things}\" WHERE pk = 'b' RETURNING ALL OLD *",
        f"UPDATE \"{things}\" REMOVE n WHERE pk = 'a' RETURNING MODIFIED NEW *",
    )
    assert answer["Responses"] == [
        {"TableName": things, "Item": {"pk": {"S": "b"}}},
        {"TableName": things},
    ]


def test_a_malformed_member_does_not_spoil_the_others(batch: Batch, things: str) -> None:
    # dynamodb-conformance, recorded from the service
    malformed, found = batch(
        f"SLECT * FROM \"{things}\" WHERE pk = 'a'", f"SELECT * FROM \"{things}\" WHERE pk = 'a'"
    )["Responses"]
    assert malformed == {
        "Error": {
            "Code": "ValidationError",
            "Message": "Statement wasn't well formed, can't be processed: "
            "Expected data manipulation",
        }
    }
    assert found["Item"] == ITEM


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        # dynamodb-conformance, recorded from the service
        (
            'SELECT * FROM "{t}" WHERE n = 1',
            "ValidationError",
            "Select statements within BatchExecuteStatement must specify the primary key in the "
            "where clause.",
        ),
        (
            'SELECT * FROM "{t}"."index" WHERE pk = \'a\'',
            "ValidationError",
            "Select statements within BatchExecuteStatement must specify the primary key in the "
            "where clause.",
        ),
        (
            "DELETE FROM \"{t}\" WHERE pk = 'a' RETURNING MODIFIED OLD *",
            "ValidationError",
            "Invalid returning clause: RETURNING MODIFIED OLD *. Only RETURNING ALL OLD * is "
            "allowed in DELETE statements.",
        ),
        (
            "SELECT * FROM \"no_such_table\" WHERE pk = 'a'",
            "ResourceNotFound",
            "Requested resource not found",
        ),
        # DynamoDB Local
        (
            'UPDATE "{t}" SET n = 1',
            "ValidationError",
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
        (
            "EXISTS(SELECT * FROM \"{t}\" WHERE pk = 'a' AND n = 1)",
            "ValidationError",
            "EXISTS can only be used in ExecuteTransaction write requests.",
        ),
        (
            'DROP TABLE "{t}"',
            "ValidationError",
            "Invalid operation. Only select, insert, update and delete operations are valid",
        ),
    ],
)
def test_members_that_are_refused_before_they_run(
    batch: Batch, things: str, statement: str, code: str, message: str
) -> None:
    (answer,) = batch(statement.format(t=things))["Responses"]
    assert answer == {"Error": {"Code": code, "Message": message}}


def test_the_item_that_failed_a_condition(batch: Batch, things: str) -> None:
    statement = {
        "Statement": f"UPDATE \"{things}\" SET n = 2 WHERE pk = 'a' AND n = 7",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    (answer,) = batch(statement)["Responses"]
    assert (answer["Error"]["Item"], "Item" in answer) == (ITEM, False)


def test_batches_that_are_refused(batch: Batch, things: str) -> None:
    read = f"SELECT * FROM \"{things}\" WHERE pk = 'a'"
    write = f"INSERT INTO \"{things}\" VALUE {{'pk': 'new'}}"
    assert refusal(batch, read, write) == (
        VALIDATION,
        "Read and write requests together in the same batch is not supported.",
    )
    repeated = (VALIDATION, "Provided list of item keys contains duplicates")
    assert refusal(batch, read, read) == repeated
    assert refusal(batch, write, f"DELETE FROM \"{things}\" WHERE pk = 'new'") == repeated
    assert refusal(batch, *[read] * 26)[0] == VALIDATION
    assert refusal(batch) == (
        VALIDATION,
        "1 validation error detected: Value '[]' at 'statements' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1",
    )


def test_twenty_five_statements_are_allowed(batch: Batch, things: str) -> None:
    writes = [f"INSERT INTO \"{things}\" VALUE {{'pk': 'n{number}'}}" for number in range(25)]
    assert batch(*writes) == {"Responses": [{"TableName": things}] * 25}


def test_each_member_is_charged_by_its_own_consistency(batch: Batch, things: str) -> None:
    # dynamodb-conformance, recorded from the service
    answer = batch(
        {"Statement": f"SELECT * FROM \"{things}\" WHERE pk = 'a'", "ConsistentRead": True},
        f"SELECT * FROM \"{things}\" WHERE pk = 'b'",
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"] == [{"TableName": things, "CapacityUnits": 1.5}]


def test_the_capacity_of_writes_is_told_per_table(batch: Batch, things: str, table: Any) -> None:
    other = table()
    answer = batch(
        f"INSERT INTO \"{things}\" VALUE {{'pk': 'new'}}",
        f"INSERT INTO \"{other}\" VALUE {{'pk': 'new'}}",
        f"DELETE FROM \"{things}\" WHERE pk = 'b'",
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"] == [
        {"TableName": things, "CapacityUnits": 2.0},
        {"TableName": other, "CapacityUnits": 1.0},
    ]

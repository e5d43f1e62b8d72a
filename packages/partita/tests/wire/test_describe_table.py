"""DescribeTable: the description of a table, with correct counts and sizes."""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import BAD_NAMES, VALIDATION, refusal


def described(client: Any, name: str) -> dict[str, Any]:
    return dict(client.describe_table(TableName=name)["Table"])


def figures(description: dict[str, Any]) -> tuple[int, int]:
    """Number of items and bytes of a table, or of an index."""
    size = description.get("TableSizeBytes", description.get("IndexSizeBytes"))
    assert size is not None
    return description["ItemCount"], size


def test_a_table_that_has_everything(client: Any, table: Any) -> None:
    # recorded
    name = table(
        sk="N",
        attributes={"g": "S", "l": "B"},
        LocalSecondaryIndexes=[
            {
                "IndexName": "local",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "l", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "global",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    found = described(client, name)
    assert found["TableName"] == name
    assert found["TableStatus"] == "ACTIVE"
    assert found["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    types = {each["AttributeName"]: each["AttributeType"] for each in found["AttributeDefinitions"]}
    assert types == {"pk": "S", "sk": "N", "g": "S", "l": "B"}
    (local,), (a_global,) = found["LocalSecondaryIndexes"], found["GlobalSecondaryIndexes"]
    assert local["IndexArn"] == f"{found['TableArn']}/index/local"
    assert a_global["IndexArn"] == f"{found['TableArn']}/index/global"
    assert a_global["IndexStatus"] == "ACTIVE"
    assert "IndexStatus" not in local
    assert described(client, name) == found


def test_a_table_is_named_by_its_arn_too(client: Any, table: Any) -> None:
    name = table()
    found = described(client, name)
    assert described(client, found["TableArn"]) == found


def test_items_and_bytes_are_counted(client: Any, table: Any) -> None:
    name = table()
    assert figures(described(client, name)) == (0, 0)
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "v": {"S": "12345"}})
    assert figures(described(client, name)) == (1, 9)  # pk + a + v + 12345
    client.put_item(TableName=name, Item={"pk": {"S": "b"}, "n": {"N": "100"}})
    assert figures(described(client, name)) == (2, 9 + 6)
    client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    assert figures(described(client, name)) == (2, 3 + 6)
    client.delete_item(TableName=name, Key={"pk": {"S": "missing"}})
    client.delete_item(TableName=name, Key={"pk": {"S": "b"}})
    assert figures(described(client, name)) == (1, 3)
    client.delete_item(TableName=name, Key={"pk": {"S": "a"}})
    assert figures(described(client, name)) == (0, 0)


def test_entries_of_indexes_are_counted(client: Any, table: Any) -> None:
    name = table(
        attributes={"g": "S"},
        GlobalSecondaryIndexes=[
            {
                "IndexName": kind,
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": projection,
            }
            for kind, projection in {
                "all": {"ProjectionType": "ALL"},
                "keys": {"ProjectionType": "KEYS_ONLY"},
                "some": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]},
            }.items()
        ],
    )
    item = {"pk": {"S": "a"}, "g": {"S": "b"}, "v": {"S": "12345"}, "w": {"S": "123"}}
    client.put_item(TableName=name, Item=item)
    client.put_item(TableName=name, Item={"pk": {"S": "sparse"}, "v": {"S": "12345"}})
    found = described(client, name)
    assert figures(found) == (2, 15 + 14)
    indexes = {each["IndexName"]: figures(each) for each in found["GlobalSecondaryIndexes"]}
    assert indexes == {"all": (1, 15), "keys": (1, 5), "some": (1, 11)}


def test_a_failed_write_counts_nothing(client: Any, table: Any) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    before = figures(described(client, name))
    for condition in ("attribute_not_exists(pk)", "v = :v"):
        values = {":v": {"S": "x"}} if ":v" in condition else None
        more = {"ExpressionAttributeValues": values} if values else {}
        code, _ = refusal(
            client.put_item,
            TableName=name,
            Item={"pk": {"S": "a"}, "v": {"S": "y"}},
            ConditionExpression=condition,
            **more,
        )
        assert code == "ConditionalCheckFailedException"
    assert figures(described(client, name)) == before


def test_a_missing_table_is_not_found_by_its_name(client: Any) -> None:
    # dynalite: the control plane names the table
    assert refusal(client.describe_table, TableName="no_such_table") == (
        "ResourceNotFoundException",
        "Requested resource not found: Table: no_such_table not found",
    )


def test_a_request_without_a_table_is_refused(raw: Any) -> None:
    # dynalite
    answer = raw("DescribeTable", {})
    assert answer.status == 400
    assert answer.body == {
        "__type": "com.amazon.coral.validate#ValidationException",
        "message": "The parameter 'TableName' is required but was not present in the request",
    }


@pytest.mark.parametrize("case", BAD_NAMES)
def test_a_name_that_cannot_be_one_is_refused(client: Any, case: str) -> None:
    name, text = BAD_NAMES[case]
    assert refusal(client.describe_table, TableName=name) == (VALIDATION, text)

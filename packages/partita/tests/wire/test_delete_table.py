"""DeleteTable: a table is gone with all it had, unless it is protected."""

from __future__ import annotations

from typing import Any

from .indexes import index
from .refusals import VALIDATION, refusal

POLL = {"Delay": 0.02, "MaxAttempts": 500}


def delete(client: Any, name: str) -> dict[str, Any]:
    answer = client.delete_table(TableName=name)["TableDescription"]
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=POLL)
    return dict(answer)


# What is left of its description (recorded; ScyllaDB's tests on the service, dynalite's issue 60).
DELETING = {
    "TableName",
    "TableStatus",
    "ProvisionedThroughput",
    "TableSizeBytes",
    "ItemCount",
    "TableArn",
    "TableId",
    "DeletionProtectionEnabled",
    "WarmThroughput",
}


def test_the_answer_describes_a_table_that_is_being_deleted(client: Any, table: Any) -> None:
    name = table(
        sk="S",
        attributes={"g": "S"},
        LocalSecondaryIndexes=[index("local", "pk", "g")],
        GlobalSecondaryIndexes=[index("global", "g")],
    )
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    answer = delete(client, name)
    assert answer.keys() == DELETING | {"BillingModeSummary"}
    assert (answer["TableName"], answer["TableStatus"]) == (name, "DELETING")
    assert (answer["ItemCount"], answer["TableSizeBytes"]) == (1, 6)


def test_the_answer_has_the_units_and_the_stream_of_a_table_that_is_being_deleted(
    client: Any, table: Any
) -> None:
    name = table(
        ProvisionedThroughput={"ReadCapacityUnits": 3, "WriteCapacityUnits": 2},
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    )
    answer = delete(client, name)
    stream = {"StreamSpecification", "LatestStreamArn", "LatestStreamLabel"}
    assert answer.keys() == DELETING | stream
    units = answer["ProvisionedThroughput"]
    assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (3, 2)


def test_a_deleted_table_is_gone(client: Any, table: Any) -> None:
    name = table()
    key = {"pk": {"S": "a"}}
    client.put_item(TableName=name, Item=key)
    delete(client, name)
    assert name not in client.list_tables()["TableNames"]
    not_found = ("ResourceNotFoundException", "Requested resource not found")
    assert refusal(client.get_item, TableName=name, Key=key) == not_found
    assert refusal(client.put_item, TableName=name, Item=key) == not_found
    assert refusal(client.scan, TableName=name) == not_found
    named = f"Requested resource not found: Table: {name} not found"
    assert refusal(client.describe_table, TableName=name) == (not_found[0], named)


def test_a_table_of_the_same_name_starts_empty(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    first = client.describe_table(TableName=name)["Table"]
    for number in range(30):
        client.put_item(TableName=name, Item={"pk": {"S": str(number)}, "g": {"S": "x"}})
    delete(client, name)
    table(TableName=name, attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    second = client.describe_table(TableName=name)["Table"]
    assert second["TableId"] != first["TableId"]
    assert (second["ItemCount"], second["TableSizeBytes"]) == (0, 0)
    assert client.scan(TableName=name)["Items"] == []
    assert client.scan(TableName=name, IndexName="global")["Items"] == []
    tags = client.list_tags_of_resource(ResourceArn=second["TableArn"])["Tags"]
    assert tags == []


def test_time_to_live_and_tags_do_not_pass_to_a_table_of_the_same_name(
    client: Any, table: Any
) -> None:
    name = table(Tags=[{"Key": "team", "Value": "blue"}])
    client.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )
    delete(client, name)
    table(TableName=name)
    described = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "DISABLED"}
    arn = client.describe_table(TableName=name)["Table"]["TableArn"]
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == []


def test_a_protected_table_is_not_deleted(client: Any, table: Any) -> None:
    # catalogue
    name = table(DeletionProtectionEnabled=True)
    client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    assert refusal(client.delete_table, TableName=name) == (
        VALIDATION,
        "Resource cannot be deleted as it is currently protected against deletion. "
        "Disable deletion protection first.",
    )
    assert client.scan(TableName=name)["Count"] == 1
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=POLL)
    delete(client, name)


def test_a_missing_table_is_not_found_by_its_name(client: Any) -> None:
    # dynalite
    assert refusal(client.delete_table, TableName="no_such_table") == (
        "ResourceNotFoundException",
        "Requested resource not found: Table: no_such_table not found",
    )


def test_a_table_is_deleted_once(client: Any, table: Any) -> None:
    name = table()
    delete(client, name)
    assert refusal(client.delete_table, TableName=name)[0] == "ResourceNotFoundException"


def test_a_table_is_named_by_its_arn_too(client: Any, table: Any) -> None:
    name = table()
    client.delete_table(TableName=client.describe_table(TableName=name)["Table"]["TableArn"])
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=POLL)


def test_a_request_without_a_table_is_refused(raw: Any) -> None:
    # dynalite
    answer = raw("DeleteTable", {})
    assert (answer.status, answer.body["message"]) == (
        400,
        "The parameter 'TableName' is required but was not present in the request",
    )


def test_a_name_with_other_characters_is_refused(client: Any) -> None:
    # dynalite
    assert refusal(client.delete_table, TableName="abc;") == (
        VALIDATION,
        "1 validation error detected: Value 'abc;' at 'tableName' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    )

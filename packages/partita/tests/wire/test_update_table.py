"""UpdateTable: every setting that can be changed, indexes on a live table, and its errors.

"recorded" is an answer of the real service kept by a public conformance suite, "catalogue" a
catalogue of its control-plane messages (2026-10), "dynalite" an older recording.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .indexes import index
from .refusals import INVALID, VALIDATION, refusal

FIVE = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
ONE = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
SECONDS_MAX = 60


def defined(*names: str, **types: str) -> list[dict[str, str]]:
    kinds = dict.fromkeys(names, "S") | types
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]


def create(name: str, *keys: str, **more: Any) -> list[dict[str, Any]]:
    return [{"Create": index(name, *keys, **more)}]


def delete(name: str) -> list[dict[str, Any]]:
    return [{"Delete": {"IndexName": name}}]


def described(client: Any, name: str) -> dict[str, Any]:
    return dict(client.describe_table(TableName=name)["Table"])


def settled(client: Any, name: str) -> dict[str, Any]:
    """The table's description once it and all of its indexes are ACTIVE."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        table = described(client, name)
        indexes = table.get("GlobalSecondaryIndexes", [])
        statuses = {table["TableStatus"], *(each["IndexStatus"] for each in indexes)}
        if statuses == {"ACTIVE"}:
            return table
        assert statuses <= {"ACTIVE", "UPDATING", "CREATING", "DELETING"}
        assert time.monotonic() < deadline, f"{name} is still {statuses}"
        time.sleep(0.01)


def updated(client: Any, name: str, **changes: Any) -> dict[str, Any]:
    answer = client.update_table(TableName=name, **changes)["TableDescription"]
    assert answer["TableStatus"] == "UPDATING"
    return settled(client, name)


def scanned(client: Any, name: str, **request: Any) -> list[dict[str, Any]]:
    pages = client.get_paginator("scan").paginate(TableName=name, **request)
    return sorted((item for page in pages for item in page["Items"]), key=str)


def put_many(client: Any, name: str, items: list[dict[str, Any]]) -> None:
    for start in range(0, len(items), 25):
        requests = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        client.batch_write_item(RequestItems={name: requests})


@pytest.fixture
def provisioned(table: Any) -> str:
    """A table of 5 units with one index of 1 unit, and a local index."""
    name: str = table(
        sk="S",
        attributes={"g": "S", "l": "S"},
        ProvisionedThroughput=FIVE,
        LocalSecondaryIndexes=[index("local", "pk", "l")],
        GlobalSecondaryIndexes=[index("global", "g", ProvisionedThroughput=ONE)],
    )
    return name


@pytest.fixture(scope="module")
def steady(client: Any, table_names: Iterator[str]) -> Iterator[str]:
    """A provisioned table for requests that are refused."""
    name = next(table_names)
    client.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=defined("pk", "sk", "g", "l"),
        ProvisionedThroughput=FIVE,
        LocalSecondaryIndexes=[index("local", "pk", "l")],
        GlobalSecondaryIndexes=[index("global", "g", ProvisionedThroughput=ONE)],
    )
    settled(client, name)
    yield name
    client.delete_table(TableName=name)


# Provisioned units.


def test_units_change(client: Any, provisioned: str) -> None:
    units = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 9}
    table = updated(client, provisioned, ProvisionedThroughput=units)
    throughput = table["ProvisionedThroughput"]
    assert {name: throughput[name] for name in units} == units
    assert throughput["NumberOfDecreasesToday"] == 0
    assert "LastIncreaseDateTime" in throughput
    assert "LastDecreaseDateTime" not in throughput


def test_the_answer_still_shows_the_old_units(client: Any, provisioned: str) -> None:
    # dynalite
    units = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 9}
    answer = client.update_table(TableName=provisioned, ProvisionedThroughput=units)
    table = answer["TableDescription"]
    throughput = table["ProvisionedThroughput"]
    assert table["TableStatus"] == "UPDATING"
    assert {name: throughput[name] for name in FIVE} == FIVE
    assert "LastIncreaseDateTime" in throughput


def test_a_decrease_is_counted_when_it_is_done(client: Any, provisioned: str) -> None:
    # dynalite
    units = {"ReadCapacityUnits": 4, "WriteCapacityUnits": 5}
    answer = client.update_table(TableName=provisioned, ProvisionedThroughput=units)
    assert answer["TableDescription"]["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 0
    throughput = settled(client, provisioned)["ProvisionedThroughput"]
    assert throughput["NumberOfDecreasesToday"] == 1
    assert "LastDecreaseDateTime" in throughput
    table = updated(client, provisioned, ProvisionedThroughput=ONE)
    assert table["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 2


def test_units_of_an_index_change(client: Any, provisioned: str) -> None:
    units = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}
    update = {"IndexName": "global", "ProvisionedThroughput": units}
    table = updated(client, provisioned, GlobalSecondaryIndexUpdates=[{"Update": update}])
    throughput = table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]
    assert {name: throughput[name] for name in units} == units
    assert {name: table["ProvisionedThroughput"][name] for name in FIVE} == FIVE


def test_units_of_a_table_and_its_index_change_together(client: Any, provisioned: str) -> None:
    units = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}
    update = {"IndexName": "global", "ProvisionedThroughput": units}
    table = updated(
        client,
        provisioned,
        ProvisionedThroughput=units,
        GlobalSecondaryIndexUpdates=[{"Update": update}],
    )
    for throughput in (
        table["ProvisionedThroughput"],
        table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"],
    ):
        assert {name: throughput[name] for name in units} == units


# Billing mode.


def test_a_provisioned_table_becomes_on_demand_and_provisioned_again(
    client: Any, provisioned: str
) -> None:
    # recorded, dynalite
    answer = client.update_table(TableName=provisioned, BillingMode="PAY_PER_REQUEST")
    assert answer["TableDescription"]["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    table = settled(client, provisioned)
    none = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert "LastUpdateToPayPerRequestDateTime" in table["BillingModeSummary"]
    for throughput in (
        table["ProvisionedThroughput"],
        table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"],
    ):
        assert {name: throughput[name] for name in none} == none
    update = {"IndexName": "global", "ProvisionedThroughput": ONE}
    table = updated(
        client,
        provisioned,
        BillingMode="PROVISIONED",
        ProvisionedThroughput=FIVE,
        GlobalSecondaryIndexUpdates=[{"Update": update}],
    )
    assert table["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    assert {name: table["ProvisionedThroughput"][name] for name in FIVE} == FIVE
    throughput = table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]
    assert {name: throughput[name] for name in ONE} == ONE


def test_an_on_demand_table_may_be_told_so_again(client: Any, table: Any) -> None:
    # recorded
    name = table()
    changed = updated(client, name, BillingMode="PAY_PER_REQUEST")
    assert changed["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_a_table_that_becomes_provisioned_needs_units(client: Any, table: Any) -> None:
    # dynalite, catalogue
    name = table()
    assert refusal(client.update_table, TableName=name, BillingMode="PROVISIONED") == (
        VALIDATION,
        INVALID + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
    )


def test_the_indexes_of_a_table_that_becomes_provisioned_need_units_too(
    client: Any, table: Any
) -> None:
    # dynalite
    indexes = [index(f"index{number}", "g") for number in (3, 4)]
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=indexes)
    assert refusal(
        client.update_table,
        TableName=name,
        BillingMode="PROVISIONED",
        ProvisionedThroughput=FIVE,
    ) == (VALIDATION, INVALID + "ProvisionedThroughput must be specified for index: index3,index4")


def test_an_on_demand_table_takes_no_units(client: Any, table: Any) -> None:
    # catalogue
    name = table()
    text = (
        INVALID + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
        "BillingMode is PAY_PER_REQUEST"
    )
    assert refusal(client.update_table, TableName=name, ProvisionedThroughput=FIVE) == (
        VALIDATION,
        text,
    )
    assert refusal(
        client.update_table,
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        ProvisionedThroughput=FIVE,
    ) == (VALIDATION, text)


# Settings.


def test_deletion_protection_goes_on_and_off(client: Any, table: Any) -> None:
    name = table()
    for is_on in (True, False):
        changed = updated(client, name, DeletionProtectionEnabled=is_on)
        assert changed["DeletionProtectionEnabled"] is is_on


def test_the_table_class_changes(client: Any, table: Any) -> None:
    name = table()
    changed = updated(client, name, TableClass="STANDARD_INFREQUENT_ACCESS")
    assert changed["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert "LastUpdateDateTime" in changed["TableClassSummary"]
    changed = updated(client, name, TableClass="STANDARD")
    assert changed["TableClassSummary"]["TableClass"] == "STANDARD"


def test_encryption_goes_on_and_off(client: Any, table: Any) -> None:
    name = table()
    changed = updated(client, name, SSESpecification={"Enabled": True})
    assert changed["SSEDescription"]["SSEType"] == "KMS"
    assert changed["SSEDescription"]["KMSMasterKeyArn"].startswith("arn:aws:kms:")
    changed = updated(client, name, SSESpecification={"Enabled": False})
    assert "SSEDescription" not in changed


def test_a_table_without_encryption_of_its_own_cannot_lose_it(client: Any, table: Any) -> None:
    # catalogue
    assert refusal(client.update_table, TableName=table(), SSESpecification={"Enabled": False}) == (
        VALIDATION,
        INVALID + "Table is already encrypted by default",
    )


def test_a_stream_goes_on_and_off_and_on(client: Any, table: Any) -> None:
    name = table()
    specification = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    on = updated(client, name, StreamSpecification=specification)
    assert on["StreamSpecification"] == specification
    assert on["LatestStreamArn"].endswith(f"/stream/{on['LatestStreamLabel']}")
    off = updated(client, name, StreamSpecification={"StreamEnabled": False})
    assert "StreamSpecification" not in off
    # The last stream stays readable for a day, so its ARN stays (guide).
    assert off["LatestStreamArn"] == on["LatestStreamArn"]
    again = updated(client, name, StreamSpecification=specification)
    assert again["LatestStreamArn"] != on["LatestStreamArn"]


def test_a_stream_that_is_on_cannot_be_switched_on(client: Any, table: Any) -> None:
    # catalogue
    specification = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    name = table(StreamSpecification=specification)
    assert refusal(client.update_table, TableName=name, StreamSpecification=specification) == (
        VALIDATION,
        f"Table already has an enabled stream: TableName: {name}",
    )


def test_maximums_of_an_on_demand_table_change(client: Any, table: Any) -> None:
    # recorded
    name = table()
    limits = {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5}
    assert updated(client, name, OnDemandThroughput=limits)["OnDemandThroughput"] == limits
    changed = updated(client, name, OnDemandThroughput={"MaxReadRequestUnits": 20})
    assert changed["OnDemandThroughput"] == {**limits, "MaxReadRequestUnits": 20}


def test_warm_throughput_grows(client: Any, table: Any) -> None:
    name = table()
    answer = client.update_table(TableName=name, WarmThroughput={"ReadUnitsPerSecond": 20_000})[
        "TableDescription"
    ]
    # Alternator's tests against AWS
    assert answer["WarmThroughput"]["Status"] == "UPDATING"
    assert settled(client, name)["WarmThroughput"] == {
        "ReadUnitsPerSecond": 20_000,
        "WriteUnitsPerSecond": 4000,
        "Status": "ACTIVE",
    }


def test_warm_throughput_does_not_shrink(client: Any, table: Any) -> None:
    # Alternator's tests against AWS: the text holds these words
    name = table(WarmThroughput={"WriteUnitsPerSecond": 9000})
    code, text = refusal(
        client.update_table, TableName=name, WarmThroughput={"WriteUnitsPerSecond": 8000}
    )
    assert code == VALIDATION
    assert "lower than current WarmThroughput" in text


def test_warm_throughput_and_maximums_of_an_index_change(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    limits = {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5}
    update = {
        "IndexName": "global",
        "OnDemandThroughput": limits,
        "WarmThroughput": {"ReadUnitsPerSecond": 20_000},
    }
    changed = updated(client, name, GlobalSecondaryIndexUpdates=[{"Update": update}])
    (found,) = changed["GlobalSecondaryIndexes"]
    assert found["OnDemandThroughput"] == limits
    assert found["WarmThroughput"]["ReadUnitsPerSecond"] == 20_000


def test_a_setting_leaves_the_others_alone(client: Any, table: Any) -> None:
    name = table(
        attributes={"g": "S"},
        GlobalSecondaryIndexes=[index("global", "g")],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        SSESpecification={"Enabled": True},
        OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5},
        Tags=[{"Key": "team", "Value": "blue"}],
    )
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "g": {"S": "b"}})
    before = described(client, name)
    after = updated(client, name, TableClass="STANDARD_INFREQUENT_ACCESS")
    after.pop("TableClassSummary")
    assert after == before
    arn = before["TableArn"]
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == [
        {"Key": "team", "Value": "blue"}
    ]


# Indexes on a live table.


def test_an_index_is_created_filled_and_active(client: Any, table: Any) -> None:
    name = table(sk="N")
    items = [
        {"pk": {"S": f"p{number % 7}"}, "sk": {"N": str(number)}, "g": {"S": f"g{number % 3}"}}
        for number in range(450)
    ]
    put_many(client, name, items)
    answer = client.update_table(
        TableName=name,
        AttributeDefinitions=defined("g"),
        GlobalSecondaryIndexUpdates=create("late", "g"),
    )["TableDescription"]
    assert answer["TableStatus"] == "UPDATING"
    (late,) = answer["GlobalSecondaryIndexes"]
    assert late["IndexStatus"] == "CREATING"
    assert late["Backfilling"] is False
    (late,) = settled(client, name)["GlobalSecondaryIndexes"]
    assert "Backfilling" not in late
    assert late["ItemCount"] == 450
    assert late["IndexSizeBytes"] == described(client, name)["TableSizeBytes"]
    assert scanned(client, name, IndexName="late") == sorted(items, key=str)


def test_an_index_that_is_being_filled_is_not_read(client: Any, table: Any) -> None:
    name = table()
    put_many(client, name, [{"pk": {"S": str(n)}, "g": {"S": "x"}} for n in range(500)])
    client.update_table(
        TableName=name,
        AttributeDefinitions=defined("g"),
        GlobalSecondaryIndexUpdates=create("late", "g"),
    )
    seen = set()
    deadline = time.monotonic() + SECONDS_MAX
    while "ACTIVE" not in seen:
        try:
            assert client.scan(TableName=name, IndexName="late")["Count"] == 500
        except ClientError as error:
            assert error.response["Error"]["Code"] == VALIDATION
            assert error.response["Error"]["Message"] == (
                "Cannot read from backfilling global secondary index: late"
            )
        (late,) = described(client, name)["GlobalSecondaryIndexes"]
        seen.add(late["IndexStatus"])
        assert time.monotonic() < deadline
    assert seen <= {"CREATING", "ACTIVE"}
    assert client.scan(TableName=name, IndexName="late")["Count"] == 500


def test_an_added_index_follows_later_writes(client: Any, table: Any) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "old"}, "g": {"S": "x"}})
    updated(
        client,
        name,
        AttributeDefinitions=defined("g"),
        GlobalSecondaryIndexUpdates=create("late", "g"),
    )
    client.put_item(TableName=name, Item={"pk": {"S": "new"}, "g": {"S": "x"}})
    client.delete_item(TableName=name, Key={"pk": {"S": "old"}})
    found = client.scan(TableName=name, IndexName="late")["Items"]
    assert found == [{"pk": {"S": "new"}, "g": {"S": "x"}}]


def test_items_whose_attribute_is_of_another_type_stay_out_of_an_added_index(
    client: Any, table: Any
) -> None:
    # Guide, "Detecting and correcting index key violations"
    name = table()
    put_many(
        client,
        name,
        [
            {"pk": {"S": "string"}, "g": {"S": "x"}},
            {"pk": {"S": "number"}, "g": {"N": "1"}},
            {"pk": {"S": "list"}, "g": {"L": []}},
            {"pk": {"S": "empty"}, "g": {"S": ""}},
            {"pk": {"S": "none"}},
        ],
    )
    updated(
        client,
        name,
        AttributeDefinitions=defined("g"),
        GlobalSecondaryIndexUpdates=create("late", "g"),
    )
    found = client.scan(TableName=name, IndexName="late")["Items"]
    assert [item["pk"]["S"] for item in found] == ["string"]
    assert described(client, name)["GlobalSecondaryIndexes"][0]["ItemCount"] == 1
    assert client.scan(TableName=name)["Count"] == 5


@pytest.mark.parametrize("pk", ["number", "list", "empty"])
def test_an_item_that_violates_an_added_index_can_still_be_deleted_and_mended(
    client: Any, table: Any, pk: str
) -> None:
    name = table()
    bad = {"number": {"N": "1"}, "list": {"L": []}, "empty": {"S": ""}}[pk]
    for key in ("deleted", "mended", "touched"):
        client.put_item(TableName=name, Item={"pk": {"S": key}, "g": bad})
    updated(
        client,
        name,
        AttributeDefinitions=defined("g"),
        GlobalSecondaryIndexUpdates=create("late", "g"),
    )
    client.delete_item(TableName=name, Key={"pk": {"S": "deleted"}})
    client.put_item(TableName=name, Item={"pk": {"S": "mended"}, "g": {"S": "x"}})
    found = client.scan(TableName=name, IndexName="late")["Items"]
    assert found == [{"pk": {"S": "mended"}, "g": {"S": "x"}}]
    assert described(client, name)["GlobalSecondaryIndexes"][0]["ItemCount"] == 1


def test_definitions_are_added_to_those_of_the_table(client: Any, table: Any) -> None:
    # recorded
    name = table(sk="S")
    updated(
        client,
        name,
        AttributeDefinitions=defined("g1"),
        GlobalSecondaryIndexUpdates=create("gsi1", "g1"),
    )
    changed = updated(
        client,
        name,
        AttributeDefinitions=defined(g2="N"),
        GlobalSecondaryIndexUpdates=create("gsi2", "g2"),
    )
    types = {
        each["AttributeName"]: each["AttributeType"] for each in changed["AttributeDefinitions"]
    }
    assert types == {"pk": "S", "sk": "S", "g1": "S", "g2": "N"}
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"S": "b"}, "g2": {"N": "1"}})
    assert client.scan(TableName=name, IndexName="gsi2")["Count"] == 1


def test_a_known_attribute_keeps_its_type(client: Any, table: Any) -> None:
    # recorded, eu-west-2 2026-07
    name = table(sk="S")
    answer = client.update_table(
        TableName=name,
        AttributeDefinitions=defined(pk="N", g="S"),
        GlobalSecondaryIndexUpdates=create("late", "g"),
    )["TableDescription"]
    types = {
        each["AttributeName"]: each["AttributeType"] for each in answer["AttributeDefinitions"]
    }
    assert types == {"pk": "S", "sk": "S", "g": "S"}


def test_a_definition_that_no_index_uses_is_dropped(client: Any, table: Any) -> None:
    # recorded
    name = table()
    changed = updated(
        client,
        name,
        AttributeDefinitions=defined("g", "unused"),
        GlobalSecondaryIndexUpdates=create("late", "g"),
    )
    names = {each["AttributeName"] for each in changed["AttributeDefinitions"]}
    assert names == {"pk", "g"}


def test_an_index_is_deleted_with_the_attributes_that_only_it_used(client: Any, table: Any) -> None:
    # recorded
    name = table(
        attributes={"g": "S", "h": "S"},
        GlobalSecondaryIndexes=[index("one", "g"), index("other", "g", "h")],
    )
    item = {"pk": {"S": "a"}, "g": {"S": "b"}, "h": {"S": "c"}}
    client.put_item(TableName=name, Item=item)
    answer = client.update_table(TableName=name, GlobalSecondaryIndexUpdates=delete("other"))
    statuses = {
        each["IndexName"]: each["IndexStatus"]
        for each in answer["TableDescription"]["GlobalSecondaryIndexes"]
    }
    assert statuses == {"one": "ACTIVE", "other": "DELETING"}
    changed = settled(client, name)
    assert [each["IndexName"] for each in changed["GlobalSecondaryIndexes"]] == ["one"]
    assert {each["AttributeName"] for each in changed["AttributeDefinitions"]} == {"pk", "g"}
    assert client.scan(TableName=name, IndexName="one")["Items"] == [item]
    assert refusal(client.scan, TableName=name, IndexName="other")[0] == VALIDATION
    # h is an attribute like any other now
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "h": {"N": "1"}})


def test_the_last_index_is_deleted(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("one", "g")])
    changed = updated(client, name, GlobalSecondaryIndexUpdates=delete("one"))
    assert changed.get("GlobalSecondaryIndexes", []) == []
    assert changed["AttributeDefinitions"] == defined("pk")


def test_an_index_comes_back_empty_of_what_it_had(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("one", "g")])
    put_many(client, name, [{"pk": {"S": str(n)}, "g": {"S": "x"}} for n in range(300)])
    updated(client, name, GlobalSecondaryIndexUpdates=delete("one"))
    for number in range(300):
        if number % 2:
            client.delete_item(TableName=name, Key={"pk": {"S": str(number)}})
    changed = updated(
        client,
        name,
        AttributeDefinitions=defined("g"),
        GlobalSecondaryIndexUpdates=create("one", "g", projection={"ProjectionType": "KEYS_ONLY"}),
    )
    assert changed["GlobalSecondaryIndexes"][0]["ItemCount"] == 150
    assert scanned(client, name, IndexName="one") == scanned(client, name)


def test_an_index_of_several_keys_is_added(client: Any, table: Any) -> None:
    name = table()
    schema = [
        *({"AttributeName": key, "KeyType": "HASH"} for key in "ab"),
        *({"AttributeName": key, "KeyType": "RANGE"} for key in "cd"),
    ]
    items = [
        {"pk": {"S": "1"}, "a": {"S": "x"}, "b": {"S": "y"}, "c": {"N": "2"}, "d": {"S": "z"}},
        {"pk": {"S": "2"}, "a": {"S": "x"}, "b": {"S": "y"}, "c": {"N": "1"}, "d": {"S": "z"}},
        {"pk": {"S": "3"}, "a": {"S": "x"}, "b": {"S": "y"}, "c": {"N": "1"}},
    ]
    put_many(client, name, items)
    updated(
        client,
        name,
        AttributeDefinitions=defined("a", "b", "d", c="N"),
        GlobalSecondaryIndexUpdates=[{"Create": index("late", "a") | {"KeySchema": schema}}],
    )
    found = client.query(
        TableName=name,
        IndexName="late",
        KeyConditionExpression="a = :a AND b = :b",
        ExpressionAttributeValues={":a": {"S": "x"}, ":b": {"S": "y"}},
    )["Items"]
    assert [item["pk"]["S"] for item in found] == ["2", "1"]


# What is refused.

NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, "
    "ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, "
    "OnDemandThroughput, WarmThroughput or TableClass is required"
)
STREAM = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}


def same_units(subject: str, units: int) -> str:
    return (
        f"The provisioned throughput for {subject} will not change. The requested value equals the "
        f"current value. Current ReadCapacityUnits provisioned for the table: {units}. Requested "
        f"ReadCapacityUnits: {units}. Current WriteCapacityUnits provisioned for the table: "
        f"{units}. Requested WriteCapacityUnits: {units}. Refer to the Amazon DynamoDB Developer "
        "Guide for current limits and how to request higher limits."
    )


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    # catalogue
    "nothing": ({}, NOTHING),
    "definitions alone": ({"AttributeDefinitions": defined("pk")}, NOTHING),
    "no index updates": ({"GlobalSecondaryIndexUpdates": []}, NOTHING),
    # dynalite, catalogue
    "the same units": ({"ProvisionedThroughput": FIVE}, same_units("the table", 5)),
    "the same units and mode": (
        {"ProvisionedThroughput": FIVE, "BillingMode": "PROVISIONED"},
        same_units("the table", 5),
    ),
    # dynalite: checked before the table is looked up
    "too many units": (
        {"ProvisionedThroughput": {"ReadCapacityUnits": 1_000_000_000_001,
                                   "WriteCapacityUnits": 1_000_000_000_001}},
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
    ),
    "no units": (
        {"ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 1}},
        "1 validation error detected: Value '0' at 'provisionedThroughput.readCapacityUnits' "
        "failed to satisfy constraint: Member must have value greater than or equal to 1",
    ),
    # catalogue
    "encryption and more": (
        {"SSESpecification": {"Enabled": True}, "ProvisionedThroughput": ONE},
        INVALID + "Server-Side Encryption modification must be the only operation in the request",
    ),
    "table class and more": (
        {"TableClass": "STANDARD", "ProvisionedThroughput": ONE},
        INVALID + "TableClass modification must be the only operation in the request",
    ),
    "deletion protection and more": (
        {"DeletionProtectionEnabled": True, "ProvisionedThroughput": ONE},
        INVALID + "DeletionProtection modification must be the only operation in the request",
    ),
    "maximums and more": (
        {"OnDemandThroughput": {"MaxReadRequestUnits": 5}, "ProvisionedThroughput": ONE},
        INVALID + "OnDemandThroughput can only be combined with BillingMode in an UpdateTable "
        "request",
    ),
    "a stream and units": (
        {"StreamSpecification": STREAM, "ProvisionedThroughput": ONE},
        INVALID + "You cannot modify stream status while updating table IOPS",
    ),
    "an index and units": (
        {"GlobalSecondaryIndexUpdates": delete("global"), "ProvisionedThroughput": ONE},
        INVALID + "You cannot create or delete index while updating table IOPS",
    ),
    "an index and a stream": (
        {"GlobalSecondaryIndexUpdates": delete("global"), "StreamSpecification": STREAM},
        INVALID + "You cannot create or delete index while changing stream status",
    ),
    "a stream without view type": (
        {"StreamSpecification": {"StreamEnabled": True}},
        INVALID + "If stream is being enabled then UpdateViewType is required",
    ),
    "no stream but a view type": (
        {"StreamSpecification": {"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}},
        INVALID + "If stream is being disabled, then UpdateViewType must not be specified",
    ),
    "an unknown table class": (
        {"TableClass": "GLACIER"},
        "Invalid table-class parameter provided. Please try again with a valid table-class value: "
        "[STANDARD, STANDARD_INFREQUENT_ACCESS].",
    ),
    "maximums of a provisioned table": (
        {"OnDemandThroughput": {"MaxReadRequestUnits": 5}},
        INVALID + "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table "
        "BillingMode is PROVISIONED",
    ),
    "an index that exists": (
        {"AttributeDefinitions": defined("g"),
         "GlobalSecondaryIndexUpdates": create("global", "g", ProvisionedThroughput=ONE)},
        "Attempting to create an index which already exists",
    ),
    "an index without definitions": (
        {"GlobalSecondaryIndexUpdates": create("late", "g", ProvisionedThroughput=ONE)},
        INVALID + "AttributeDefinitions is not specified for index: late",
    ),
    "an index without units": (
        {"AttributeDefinitions": defined("g"), "GlobalSecondaryIndexUpdates": create("late", "g")},
        INVALID + "ProvisionedThroughput is not specified for index: late",
    ),
    # recorded: what the table has defined does not count (the words are CreateTable's)
    "a key that this request does not define": (
        {"AttributeDefinitions": defined("g3"),
         "GlobalSecondaryIndexUpdates": create("late", "pk", "g3", ProvisionedThroughput=ONE)},
        INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [g3, pk], AttributeDefinitions: [g3]",
    ),
    # catalogue
    "deleting a local index": (
        {"GlobalSecondaryIndexUpdates": delete("local")},
        "Cannot delete an index that is not a GlobalSecondaryIndex: local",
    ),
    "updating a local index": (
        {"GlobalSecondaryIndexUpdates": [
            {"Update": {"IndexName": "local", "ProvisionedThroughput": ONE}}]},
        "Cannot update an index that is not a GlobalSecondaryIndex: local",
    ),
    "the same index twice": (
        {"GlobalSecondaryIndexUpdates": delete("global") * 2},
        INVALID + "Only one global secondary index update per index is allowed simultaneously. "
        "Index: global",
    ),
    "two actions in one": (
        {"GlobalSecondaryIndexUpdates": [
            {"Delete": {"IndexName": "global"},
             "Update": {"IndexName": "global", "ProvisionedThroughput": FIVE}}]},
        INVALID + "Only one global secondary index action is allowed per "
        "GlobalSecondaryIndexUpdate object",
    ),
    # dynalite
    "no action": (
        {"GlobalSecondaryIndexUpdates": [{}]},
        INVALID + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
        "GlobalSecondaryIndexUpdate.Delete must not be null",
    ),
    "updating an unknown index": (
        {"GlobalSecondaryIndexUpdates": [
            {"Update": {"IndexName": "unknown", "ProvisionedThroughput": ONE}}]},
        "This operation cannot be performed with given input values. Please contact DynamoDB "
        "service team for more info: Action Blocked: IndexUpdate",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(
    client: Any, steady: str, changes: dict[str, Any], text: str
) -> None:
    before = described(client, steady)
    assert refusal(client.update_table, TableName=steady, **changes) == (VALIDATION, text)
    assert described(client, steady) == before


def test_a_stream_that_is_off_cannot_be_switched_off(client: Any, steady: str) -> None:
    # catalogue
    assert refusal(
        client.update_table, TableName=steady, StreamSpecification={"StreamEnabled": False}
    ) == (VALIDATION, f"Table has no stream to disable: TableName: {steady}")


def test_the_same_units_of_an_index_are_refused(client: Any, steady: str) -> None:
    # catalogue
    update = {"IndexName": "global", "ProvisionedThroughput": ONE}
    code, text = refusal(
        client.update_table, TableName=steady, GlobalSecondaryIndexUpdates=[{"Update": update}]
    )
    assert code == VALIDATION
    assert text.startswith(
        "The provisioned throughput for the index global will not change. "
        "The requested value equals the current value."
    )


def test_an_unknown_index_is_not_found(client: Any, steady: str) -> None:
    # recorded
    assert refusal(
        client.update_table, TableName=steady, GlobalSecondaryIndexUpdates=delete("unknown")
    ) == ("ResourceNotFoundException", "Requested resource not found")


def test_one_index_at_a_time(client: Any, steady: str) -> None:
    # dynalite
    updates = [{"Delete": {"IndexName": f"index{number}"}} for number in range(6)]
    assert refusal(client.update_table, TableName=steady, GlobalSecondaryIndexUpdates=updates) == (
        "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously "
        "per table",
    )


def test_a_table_has_at_most_20_global_indexes(client: Any, table: Any) -> None:
    # catalogue: LimitExceededException here, ValidationException in CreateTable
    indexes = [index(f"index{number}", "g") for number in range(20)]
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=indexes)
    code, _ = refusal(
        client.update_table,
        TableName=name,
        AttributeDefinitions=defined("g"),
        GlobalSecondaryIndexUpdates=create("late", "g"),
    )
    assert code == "LimitExceededException"


def test_a_missing_table_is_not_found_by_its_name(client: Any) -> None:
    # dynalite
    assert refusal(
        client.update_table, TableName="no_such_table", BillingMode="PAY_PER_REQUEST"
    ) == (
        "ResourceNotFoundException",
        "Requested resource not found: Table: no_such_table not found",
    )


def test_a_request_without_a_table_is_refused(raw: Any) -> None:
    # dynalite
    answer = raw("UpdateTable", {"BillingMode": "PAY_PER_REQUEST"})
    assert answer.status == 400
    assert answer.body["message"] == (
        "The parameter 'TableName' is required but was not present in the request"
    )


def test_replicas_are_refused_and_not_ignored(client: Any, steady: str) -> None:
    replicas = [{"Create": {"RegionName": "eu-west-1"}}]
    assert refusal(client.update_table, TableName=steady, ReplicaUpdates=replicas)[0] == VALIDATION


def test_a_table_is_named_by_its_arn_too(client: Any, table: Any) -> None:
    name = table()
    arn = described(client, name)["TableArn"]
    client.update_table(TableName=arn, TableClass="STANDARD_INFREQUENT_ACCESS")
    summary = settled(client, name)["TableClassSummary"]
    assert summary["TableClass"] == "STANDARD_INFREQUENT_ACCESS"

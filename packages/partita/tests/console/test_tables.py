"""The tables page: listing, creating, changing and deleting tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit.browser.person import Person, wait_for
from testkit.servers.processes import Server


def test_the_list_shows_what_a_table_is(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table(
        "customer",
        "date",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        LocalSecondaryIndexes=[
            {
                "IndexName": "same",
                "KeySchema": [
                    {"AttributeName": "customer", "KeyType": "HASH"},
                    {"AttributeName": "date", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    client.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"AttributeName": "ends", "Enabled": True}
    )
    for n in range(3):
        client.put_item(TableName=name, Item={"customer": {"S": "a"}, "date": {"S": str(n)}})
    person.open()

    def described() -> list[str] | None:
        rows = [cells for cells in person.cells("#tables") if cells[0] == name]
        return rows[0] if rows and rows[0][8] else None

    row = wait_for(described, name)
    assert row[1].split() == ["customer", "(S)", "·", "date", "(S)"]
    assert row[2] == "3"
    assert row[4:9] == ["on demand", "1", "New image", "ends", "off"]
    person.photographs(pictures / "tables.png")
    person.fills("Filter by name", name)
    address = person.browser.evaluate("location.hash")
    person.open(address)
    person.sees("New image", "#tables")
    assert person.value("Filter by name") == name
    assert all(name in cells[0] for cells in person.cells("#tables"))


def test_a_table_is_created_with_an_index_as_the_shown_call_says(
    person: Person, client: Any, pictures: Path
) -> None:
    person.open("#/tables?create=1")
    person.fills("Name", "Orders")
    person.fills("Partition key", "customer")
    person.fills("Sort key (optional)", "placed")
    person.clicks("Add index")
    person.sees("Index 1")
    person.browser.evaluate("document.querySelectorAll('fieldset input')[0].focus()")
    person.types("by-state")
    person.browser.evaluate("document.querySelectorAll('fieldset input')[1].focus()")
    person.types("state")
    person.clicks("API call: CreateTable")
    person.sees('"IndexName": "by-state"', "[role=dialog]")
    person.photographs(pictures / "create-table.png")
    person.clicks("Create table")
    person.sees("Table Orders was created.")
    found = client.describe_table(TableName="Orders")["Table"]
    assert [key["AttributeName"] for key in found["KeySchema"]] == ["customer", "placed"]
    assert found["GlobalSecondaryIndexes"][0]["IndexName"] == "by-state"
    assert found["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_a_refused_table_says_why_and_keeps_what_was_typed(
    person: Person, table: Callable[..., str]
) -> None:
    name = table()
    person.open("#/tables?create=1")
    person.fills("Name", name)
    person.clicks("Create table")
    person.sees("ResourceInUseException")
    assert person.value("Name") == name


def test_settings_are_changed_by_the_calls_that_are_shown(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table()
    person.open(f"#/tables/{name}")
    person.sees("Point-in-time recovery")
    person.photographs(pictures / "table.png")
    person.clicks("Change")
    person.chooses("Stream", "KEYS_ONLY")
    person.fills("Time to live attribute (empty: off)", "ends")
    person.fills("Name", "by-city")
    person.fills("Partition key", "city")
    person.sees("UpdateTimeToLive", "[role=dialog]")
    person.clicks("Apply")
    person.sees(f"Table {name} was changed.")
    found = client.describe_table(TableName=name)["Table"]
    assert found["StreamSpecification"]["StreamViewType"] == "KEYS_ONLY"
    assert found["GlobalSecondaryIndexes"][0]["IndexName"] == "by-city"
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert expiry["AttributeName"] == "ends"


def test_a_table_is_deleted_only_by_its_name(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table()
    person.open(f"#/tables/{name}")
    person.clicks("Delete")
    person.fills(f"Type {name} to confirm", "something else")
    assert not person.can("Delete table")
    person.photographs(pictures / "delete-table.png")
    person.fills(f"Type {name} to confirm", name)
    person.clicks("Delete table")
    person.sees(f"Table {name} was deleted.")
    with pytest.raises(ClientError, match="not found"):
        client.describe_table(TableName=name)


def test_a_table_is_created_and_changed_with_every_option(
    person: Person, client: Any, numbered: Callable[[], str]
) -> None:
    name = numbered()
    person.open("#/tables?create=1")
    person.fills("Name", name)
    person.fills("Maximum read units", "900")
    person.fills("Warm write units", "8000")
    person.chooses("Encryption", "KMS")
    person.clicks("Infrequent access class", "input")
    person.clicks("Tags and policy")
    person.fills("Tags, one name=value per line", "team=blue\nstage=test")
    person.clicks("Create table")
    person.sees(f"Table {name} was created.")
    found = client.describe_table(TableName=name)["Table"]
    arn = found["TableArn"]
    assert found["OnDemandThroughput"]["MaxReadRequestUnits"] == 900
    assert found["WarmThroughput"]["WriteUnitsPerSecond"] == 8000
    assert found["SSEDescription"]["SSEType"] == "KMS"
    assert found["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"

    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::123456789012:user/ann"},
                "Action": "dynamodb:GetItem",
                "Resource": arn,
            }
        ],
    }
    person.open(f"#/tables/{name}")
    person.sees("team=blue")
    person.clicks("Change")
    person.chooses("Capacity", "PROVISIONED")
    person.fills("Read units", "7")
    person.chooses("Point-in-time recovery", "on")
    person.fills("Days to go back", "7")
    person.clicks("Deletion protection", "input")
    person.clicks("Tags and policy")
    person.fills("Tags, one name=value per line", "team=red")
    person.fills("Resource policy, in JSON", json.dumps(policy))
    person.sees("UntagResource", "[role=dialog]")
    person.clicks("Apply")
    person.sees(f"Table {name} was changed.")
    found = client.describe_table(TableName=name)["Table"]
    assert found["ProvisionedThroughput"]["ReadCapacityUnits"] == 7
    assert found["DeletionProtectionEnabled"]
    told = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    recovery = told["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    assert recovery["RecoveryPeriodInDays"] == 7
    person.sees("on, 7 days")
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == [
        {"Key": "team", "Value": "red"}
    ]
    assert json.loads(client.get_resource_policy(ResourceArn=arn)["Policy"]) == policy


def test_capacity_of_an_index_is_changed_by_itself(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    index = {
        "IndexName": "by-city",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        "ProvisionedThroughput": units,
    }
    name = table(
        BillingMode="PROVISIONED", ProvisionedThroughput=units, GlobalSecondaryIndexes=[index]
    )
    person.open(f"#/tables/{name}")
    person.clicks("Change index by-city")
    person.fills("Write units", "11")
    person.clicks("Apply")
    person.sees("Index by-city was changed.")
    found = client.describe_table(TableName=name)["Table"]
    (changed,) = found["GlobalSecondaryIndexes"]
    assert changed["ProvisionedThroughput"]["WriteCapacityUnits"] == 11
    assert found["ProvisionedThroughput"]["WriteCapacityUnits"] == 5


def test_changes_of_a_table_go_to_a_kinesis_stream_and_stop(
    person: Person, server: Server, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    kinesis = server.client("kinesis")
    kinesis.create_stream(StreamName="copies", ShardCount=1)
    kinesis.get_waiter("stream_exists").wait(
        StreamName="copies", WaiterConfig={"Delay": 0.02, "MaxAttempts": 3000}
    )
    arn = kinesis.describe_stream_summary(StreamName="copies")["StreamDescriptionSummary"][
        "StreamARN"
    ]

    def destination() -> dict[str, str]:
        told = client.describe_kinesis_streaming_destination(TableName=name)
        return dict((told["KinesisDataStreamDestinations"] or [{}])[0])

    person.open(f"#/tables/{name}")
    person.clicks("Send changes to a Kinesis stream")
    person.fills("ARN of the stream", arn)
    person.clicks("Send changes")
    person.sees("ACTIVE", "#destinations")
    assert destination()["StreamArn"] == arn
    person.clicks("Change times of copies")
    person.clicks("Change times")
    person.sees("microseconds", "#destinations")
    assert destination()["ApproximateCreationDateTimePrecision"] == "MICROSECOND"
    person.sees("ACTIVE", "#destinations")
    person.clicks("Stop sending to copies")
    person.fills("Type copies to confirm", "copies")
    person.clicks("Stop sending")
    person.sees("DISABLED", "#destinations")
    assert destination()["DestinationStatus"] == "DISABLED"

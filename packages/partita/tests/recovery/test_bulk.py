"""Bulk puts into a table that is in use: conditions, reports, cancelling, and kills."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit.servers import processes

SECONDS_MAX = 60
RUNNING = ("IN_PROGRESS", "CANCELLING")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bucket")


@pytest.fixture(scope="module")
def settings(bucket: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "partita.toml"
    path.write_text(f'[[buckets]]\nname = "files"\nfolder = "{bucket}"\n')
    return path


@pytest.fixture(scope="module")
def client(settings: Path) -> Iterator[Any]:
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory", "--config", str(settings))
        yield server.client()


def create(client: Any, name: str, **more: Any) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_g",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
        **more,
    )


def write(bucket: Path, name: str, records: list[Any]) -> None:
    path = bucket / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def asked(name: str, prefix: str, **more: Any) -> dict[str, Any]:
    source = {"S3Bucket": "files", "S3KeyPrefix": prefix, "InputFormat": "DYNAMODB_JSON"}
    if prefix.endswith("gz/"):
        source["InputCompressionType"] = "GZIP"
    output = {
        "S3Bucket": "files",
        "S3KeyPrefix": f"told-{name}",
        "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
    }
    return {
        "TableName": name,
        "InputS3Configuration": source,
        "OutputS3Configuration": output,
        **more,
    }


def ended(client: Any, arn: str) -> dict[str, Any]:
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        answer = client.describe_bulk_operation(BulkOperationArn=arn)
        found: dict[str, Any] = answer["BulkOperationDescription"]
        if found["BulkOperationStatus"] not in RUNNING:
            return found
        assert time.monotonic() < deadline
        time.sleep(0.02)


def put_in_bulk(client: Any, name: str, prefix: str, **more: Any) -> dict[str, Any]:
    started = client.start_bulk_put_items(**asked(name, prefix, **more))
    return ended(client, started["BulkOperationDescription"]["BulkOperationArn"])


def reports(bucket: Path, name: str) -> list[dict[str, Any]]:
    files = (bucket / f"told-{name}").rglob("data/*.json")
    return [json.loads(line) for path in sorted(files) for line in path.read_text().splitlines()]


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": f"k{number}"}, "g": {"S": f"g{number % 7}"}, **more}


def scanned(client: Any, name: str, **more: Any) -> dict[str, Any]:
    pages = client.get_paginator("scan").paginate(TableName=name, **more)
    return {one["pk"]["S"]: one for page in pages for one in page["Items"]}


def test_items_are_put_with_their_index_entries_and_the_stream_sees_them(
    client: Any, bucket: Path
) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    create(client, "filled", StreamSpecification=stream)
    client.put_item(TableName="filled", Item=item(1, old={"BOOL": True}))
    client.put_item(TableName="filled", Item={"pk": {"S": "mine"}})
    write(bucket, "gz/one.json.gz", [{"Item": item(number)} for number in range(600)])
    write(bucket, "gz/two.json.gz", [{"Item": item(number)} for number in range(600, 700)])
    done = put_in_bulk(client, "filled", "gz/")
    assert done["BulkOperationStatus"] == "COMPLETED", done
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (700, 0)
    assert done["ProcessedInputBytes"] == done["TotalInputBytes"] > 0
    assert done["PerformanceTier"] == "STANDARD"
    found = scanned(client, "filled")
    assert found.pop("mine") == {"pk": {"S": "mine"}}
    assert found == {f"k{number}": item(number) for number in range(700)}
    assert scanned(client, "filled", IndexName="by_g") == found
    (usage,) = done["BulkOperationUsage"]
    of_index = usage["GlobalSecondaryIndexes"]["by_g"]["BulkPutBytes"]
    assert usage["BulkPutBytes"] == usage["Table"]["BulkPutBytes"] + of_index
    arn = client.describe_table(TableName="filled")["Table"]["LatestStreamArn"]
    assert arn.startswith("arn:aws:dynamodb:")
    listed = client.list_bulk_operations()["BulkOperationsSummaryList"]
    assert done["BulkOperationArn"] in [one["BulkOperationArn"] for one in listed]


def test_conditions_are_asked_for_each_item_and_failures_are_reported(
    client: Any, bucket: Path
) -> None:
    create(client, "conditional")
    client.put_item(TableName="conditional", Item=item(1, v={"N": "5"}))
    absent = {"ConditionExpression": "attribute_not_exists(pk)"}
    newer = {
        "ConditionExpression": "#v < :v",
        "ExpressionAttributeNames": {"#v": "v"},
        "ExpressionAttributeValues": {":v": {"N": "9"}},
    }
    write(
        bucket,
        "conditions/one.json",
        [
            {"Item": item(1, v={"N": "1"}), **absent},
            {"Item": item(2), **absent},
            {"Item": item(1, v={"N": "9"}), **newer},
            {"Item": item(3), "ConditionExpression": "nonsense ("},
            {"Item": {"g": {"S": "no key"}}},
            {"Item": {"pk": {"N": "1"}}},
            "not JSON",
        ],
    )
    done = put_in_bulk(client, "conditional", "conditions/")
    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (7, 4)
    assert scanned(client, "conditional") == {"k1": item(1, v={"N": "9"}), "k2": item(2)}
    told = reports(bucket, "conditional")
    assert [(one["Type"], one["Record"]) for one in told] == [
        ("CONDITION_CHECK_FAILURE", 1),
        ("ERROR", 4),
        ("ERROR", 5),
        ("ERROR", 6),
        ("ERROR", 7),
    ]
    assert told[0]["ExistingItem"] == item(1, v={"N": "5"})
    (manifest,) = (bucket / "told-conditional").rglob("manifest-files.json")
    assert [json.loads(line)["itemCount"] for line in manifest.read_text().splitlines()] == [5]


def test_what_the_service_refuses_is_refused(client: Any, bucket: Path) -> None:
    create(client, "refused")
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.start_bulk_put_items(**asked("not-there", "gz/"))
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        arn = client.describe_table(TableName="refused")["Table"]["TableArn"]
        client.describe_bulk_operation(BulkOperationArn=f"{arn}/bulk/0123-abc")
    write(bucket, "token/one.json", [{"Item": item(1)}])
    first = client.start_bulk_put_items(**asked("refused", "token/", ClientToken="same"))
    again = client.start_bulk_put_items(**asked("refused", "token/", ClientToken="same"))
    arn = first["BulkOperationDescription"]["BulkOperationArn"]
    assert again["BulkOperationDescription"]["BulkOperationArn"] == arn
    with pytest.raises(client.exceptions.IdempotentParameterMismatchException):
        client.start_bulk_put_items(**asked("refused", "other/", ClientToken="same"))
    ended(client, arn)
    with pytest.raises(ClientError, match="has ended already"):
        client.cancel_bulk_operation(BulkOperationArn=arn)
    failed = put_in_bulk(client, "refused", "nothing-here/")
    assert (failed["BulkOperationStatus"], failed["FailureCode"]) == ("FAILED", "S3NoSuchKey")


def test_a_limited_operation_is_slow_and_can_be_cancelled(client: Any, bucket: Path) -> None:
    create(client, "cancelled")
    write(bucket, "many/one.json", [{"Item": item(number)} for number in range(9000)])
    started = client.start_bulk_put_items(**asked("cancelled", "many/", MaxWriteRequestUnits=1024))[
        "BulkOperationDescription"
    ]
    with pytest.raises(client.exceptions.ResourceInUseException):
        client.start_bulk_put_items(**asked("cancelled", "many/"))
    arn = started["BulkOperationArn"]
    answer = client.cancel_bulk_operation(BulkOperationArn=arn)
    assert answer == {**answer, "BulkOperationArn": arn, "BulkOperationStatus": "CANCELLING"}
    done = ended(client, arn)
    assert done["BulkOperationStatus"] == "CANCELLED"
    assert done["FailureMessage"]
    assert len(scanned(client, "cancelled")) == done["ProcessedItemCount"] < 9000


def test_an_operation_goes_on_after_kills_and_asks_no_condition_twice(
    bucket: Path, settings: Path, tmp_path: Path
) -> None:
    absent = {"ConditionExpression": "attribute_not_exists(pk)"}
    records = [{"Item": item(number), **absent} for number in range(6000)]
    write(bucket, "killed/one.json", [*records[:3000], "torn {"])
    write(bucket, "killed/two.json", [*records[3000:], records[0]])
    with processes.starting() as start:
        options = ("--port", "0", "--data", str(tmp_path / "data"), "--config", str(settings))
        server = start("serve", *options)
        client = server.client()
        create(client, "killed")
        arn = client.start_bulk_put_items(**asked("killed", "killed/"))["BulkOperationDescription"][
            "BulkOperationArn"
        ]
        for pause in (0.02, 0.05):
            time.sleep(pause)
            server.kill()
            server = start("serve", *options)
            client = server.client()
        done = ended(client, arn)
        assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
        assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (6002, 1)
        assert scanned(client, "killed") == {f"k{n}": item(n) for n in range(6000)}
        server.terminate()
    told = reports(bucket, "killed")
    assert [(one["Type"], one["Record"]) for one in told] == [
        ("ERROR", 3001),
        ("CONDITION_CHECK_FAILURE", 3001),
    ]
    assert processes.run("check", tmp_path / "data").returncode == 0

"""The AWS CLI: the commands of AWS's own tutorial, against AWS_ENDPOINT_URL_DYNAMODB.

The CLI is searched for in PARTITA_AWS_CLI, next to our Python, and on the PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

COMMAND_SECONDS_MAX = 120


def find_cli() -> str | None:
    beside_python = Path(sys.executable).with_name("aws")
    if given := os.environ.get("PARTITA_AWS_CLI"):
        return given
    return str(beside_python) if beside_python.exists() else shutil.which("aws")


AWS = find_cli()
pytestmark = pytest.mark.skipif(
    AWS is None, reason="no `aws` here: pip install awscli, or set PARTITA_AWS_CLI"
)

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def run(environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run("list-tables", "--max-items", "1")` runs a command and returns its finished process."""

    streams = {"AWS_ENDPOINT_URL_DYNAMODB_STREAMS": environment["AWS_ENDPOINT_URL_DYNAMODB"]}

    def execute(*arguments: str, service: str = "dynamodb") -> subprocess.CompletedProcess[str]:
        assert AWS is not None
        return subprocess.run(
            [AWS, service, *arguments],
            env={**environment, **streams, "AWS_PAGER": "", "AWS_DEFAULT_OUTPUT": "json"},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        )

    return execute


@pytest.fixture(scope="module")
def aws(run: Callable[..., subprocess.CompletedProcess[str]]) -> Cli:
    """`aws("get-item", ...)` returns the JSON that a command prints; it must succeed."""

    def execute(*arguments: str, **service: str) -> Any:
        completed = run(*arguments, **service)
        assert completed.returncode == 0, completed.stderr
        return json.loads(completed.stdout) if completed.stdout.strip() else None

    return execute


def text(**item: Any) -> str:
    return json.dumps(item)


@pytest.fixture(scope="module")
def music(aws: Cli, names: Iterator[str]) -> Iterator[str]:
    name = next(names)
    created = aws(
        "create-table",
        *("--table-name", name, "--billing-mode", "PAY_PER_REQUEST"),
        "--attribute-definitions",
        "AttributeName=Artist,AttributeType=S",
        "AttributeName=SongTitle,AttributeType=S",
        "AttributeName=Genre,AttributeType=S",
        "--key-schema",
        "AttributeName=Artist,KeyType=HASH",
        "AttributeName=SongTitle,KeyType=RANGE",
        "--global-secondary-indexes",
        "IndexName=GenreIndex,KeySchema=[{AttributeName=Genre,KeyType=HASH}],"
        "Projection={ProjectionType=ALL}",
        "--tags",
        "Key=team,Value=blue",
    )
    assert created["TableDescription"]["TableName"] == name
    aws("wait", "table-exists", "--table-name", name)
    requests = [
        {"PutRequest": {"Item": {
            "Artist": {"S": f"artist{number % 2}"},
            "SongTitle": {"S": f"song{number:02}"},
            "Genre": {"S": "rock"},
            "Plays": {"N": str(number)},
        }}}
        for number in range(20)
    ]  # fmt: skip
    answer = aws("batch-write-item", "--request-items", json.dumps({name: requests}))
    assert answer["UnprocessedItems"] == {}
    yield name
    aws("delete-table", "--table-name", name)
    aws("wait", "table-not-exists", "--table-name", name)


def test_the_table_is_listed_and_described(aws: Cli, music: str) -> None:
    assert music in aws("list-tables")["TableNames"]
    table = aws("describe-table", "--table-name", music)["Table"]
    assert (table["TableStatus"], table["ItemCount"]) == ("ACTIVE", 20)
    tags = aws("list-tags-of-resource", "--resource-arn", table["TableArn"])["Tags"]
    assert tags == [{"Key": "team", "Value": "blue"}]


def test_an_item_is_put_updated_read_and_deleted(aws: Cli, music: str) -> None:
    key = text(Artist={"S": "a"}, SongTitle={"S": "s"})
    item = text(Artist={"S": "a"}, SongTitle={"S": "s"}, Plays={"N": "1"})
    aws("put-item", "--table-name", music, "--item", item)
    updated = aws(
        "update-item",
        *("--table-name", music, "--key", key, "--return-values", "ALL_NEW"),
        *("--update-expression", "SET Plays = Plays + :one, #l = :l"),
        *("--expression-attribute-names", '{"#l": "Label"}'),
        *("--expression-attribute-values", '{":one": {"N": "1"}, ":l": {"S": "new"}}'),
        *("--return-consumed-capacity", "TOTAL"),
    )
    assert updated["Attributes"]["Plays"] == {"N": "2"}
    assert updated["ConsumedCapacity"] == {"TableName": music, "CapacityUnits": 1.0}
    found = aws("get-item", "--table-name", music, "--key", key, "--consistent-read")["Item"]
    assert (found["Label"], found["Plays"]) == ({"S": "new"}, {"N": "2"})
    deleted = aws("delete-item", "--table-name", music, "--key", key, "--return-values", "ALL_OLD")
    assert deleted["Attributes"] == found


def test_a_query_is_paged_by_the_cli(aws: Cli, music: str) -> None:
    arguments = (
        *("query", "--table-name", music, "--key-condition-expression", "Artist = :a"),
        *("--expression-attribute-values", '{":a": {"S": "artist0"}}'),
    )
    everything = aws(*arguments, "--page-size", "3")
    assert everything["Count"] == 10
    first = aws(*arguments, "--max-items", "4")
    rest = aws(*arguments, "--starting-token", first["NextToken"])
    titles = [item["SongTitle"]["S"] for item in first["Items"] + rest["Items"]]
    assert titles == [f"song{number:02}" for number in range(0, 20, 2)]


def test_an_index_is_queried_backwards_with_a_filter(aws: Cli, music: str) -> None:
    found = aws(
        *("query", "--table-name", music, "--index-name", "GenreIndex", "--no-scan-index-forward"),
        *("--key-condition-expression", "Genre = :g", "--filter-expression", "Plays > :p"),
        *("--expression-attribute-values", '{":g": {"S": "rock"}, ":p": {"N": "17"}}'),
        *("--projection-expression", "SongTitle"),
    )
    assert sorted(item["SongTitle"]["S"] for item in found["Items"]) == ["song18", "song19"]
    assert found["ScannedCount"] == 20


def test_a_scan_counts(aws: Cli, music: str) -> None:
    counted = aws("scan", "--table-name", music, "--select", "COUNT", "--page-size", "6")
    assert (counted["Count"], "Items" in counted) == (20, False)


def test_a_transaction(aws: Cli, run: Any, music: str) -> None:
    def put(title: str, **more: Any) -> dict[str, Any]:
        item = {"Artist": {"S": "t"}, "SongTitle": {"S": title}}
        return {"Put": {"TableName": music, "Item": item, **more}}

    aws("transact-write-items", "--transact-items", json.dumps([put("1"), put("2")]))
    guarded = put("2", ConditionExpression="attribute_not_exists(Artist)")
    refused = run("transact-write-items", "--transact-items", json.dumps([put("3"), guarded]))
    assert refused.returncode > 0
    assert "TransactionCanceledException" in refused.stderr
    assert "[None, ConditionalCheckFailed]" in refused.stderr
    gets = [{"Get": {"TableName": music, "Key": put(title)["Put"]["Item"]}} for title in ("1", "3")]
    found = aws("transact-get-items", "--transact-items", json.dumps(gets))["Responses"]
    assert ["Item" in each for each in found] == [True, False]


def test_statements(aws: Cli, run: Any, music: str) -> None:
    def execute(statement: str, *parameters: dict[str, str]) -> Any:
        given = ("--parameters", json.dumps(parameters)) if parameters else ()
        return aws("execute-statement", "--statement", statement.format(f'"{music}"'), *given)

    execute("INSERT INTO {} VALUE {{'Artist': 'p', 'SongTitle': '1', 'Plays': 1}}")
    where = "WHERE Artist = ? AND SongTitle = ?"
    key = ({"S": "p"}, {"S": "1"})
    updated = execute(f"UPDATE {{}} SET Plays = Plays + 1 {where} RETURNING MODIFIED NEW *", *key)
    assert updated["Items"] == [{"Plays": {"N": "2"}}]
    assert execute(f"SELECT Plays FROM {{}} {where}", *key)["Items"] == updated["Items"]
    execute(f"DELETE FROM {{}} {where}", *key)
    pages = execute("SELECT SongTitle FROM {} WHERE Artist = 'artist0' ORDER BY SongTitle DESC")
    assert [item["SongTitle"]["S"] for item in pages["Items"]][:2] == ["song18", "song16"]
    statements = json.dumps([{"Statement": f'SELECT * FROM "{music}" {where}', "Parameters": key}])
    assert aws("batch-execute-statement", "--statements", statements)["Responses"] == [
        {"TableName": music}
    ]
    refused = run("execute-statement", "--statement", "SELEC * FROM nothing")
    assert "(ValidationException)" in refused.stderr
    assert "Statement wasn't well formed, can't be processed" in refused.stderr


def test_a_stream_is_read(aws: Cli, music: str) -> None:
    aws(
        "update-table",
        *("--table-name", music, "--stream-specification"),
        "StreamEnabled=true,StreamViewType=NEW_IMAGE",
    )
    item = text(Artist={"S": "z"}, SongTitle={"S": "streamed"})
    aws("put-item", "--table-name", music, "--item", item)
    listed = aws("list-streams", "--table-name", music, service="dynamodbstreams")["Streams"]
    arn = listed[0]["StreamArn"]
    stream = aws("describe-stream", "--stream-arn", arn, service="dynamodbstreams")
    images = []
    for shard in stream["StreamDescription"]["Shards"]:
        iterator = aws(
            "get-shard-iterator",
            *("--stream-arn", arn, "--shard-id", shard["ShardId"]),
            *("--shard-iterator-type", "TRIM_HORIZON"),
            service="dynamodbstreams",
        )["ShardIterator"]
        answer = aws("get-records", "--shard-iterator", iterator, service="dynamodbstreams")
        images += [record["dynamodb"]["NewImage"] for record in answer["Records"]]
    assert images == [json.loads(item)]


def test_the_table_is_changed(aws: Cli, music: str) -> None:
    aws(
        "update-time-to-live",
        *("--table-name", music, "--time-to-live-specification"),
        "Enabled=true,AttributeName=ttl",
    )
    described = aws("describe-time-to-live", "--table-name", music)["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}
    changed = aws("update-table", "--table-name", music, "--deletion-protection-enabled")
    assert changed["TableDescription"]["DeletionProtectionEnabled"] is True
    aws("update-table", "--table-name", music, "--no-deletion-protection-enabled")


def test_errors_are_told(run: Any) -> None:
    completed = run("describe-table", "--table-name", "no_such_table")
    assert completed.returncode > 0
    assert "(ResourceNotFoundException)" in completed.stderr
    assert "Requested resource not found: Table: no_such_table not found" in completed.stderr


def test_limits(aws: Cli) -> None:
    assert aws("describe-limits")["TableMaxReadCapacityUnits"] > 0

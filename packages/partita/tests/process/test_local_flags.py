"""`partita local`: DynamoDB Local's own flags, for scripts that start it by its command line."""

from __future__ import annotations

from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes

from ..wire.raw_http import raw_requests


def test_the_flags_of_a_usual_script(serve: Any) -> None:
    server = serve("local", "-inMemory", "-sharedDb", "-port", "0")
    assert server.ready_line == f"Partita is ready on {server.url} (in memory)\n"
    assert server.client().list_tables()["TableNames"] == []
    assert server.terminate() == (0, "")


def test_db_path_keeps_the_data(serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    server = serve("local", "-sharedDb", "-dbPath", folder, "-port", "0")
    server.client().create_table(
        TableName="kept",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    server.terminate()
    server = serve("local", "-dbPath", folder, "-port", "0")
    assert server.client().list_tables()["TableNames"] == ["kept"]


@pytest.mark.parametrize(
    "flags",
    [
        ("-cors", "*"),
        ("-cors", "example.com,localhost"),
        ("-optimizeDbBeforeStartup",),
        ("-disableTelemetry",),
        ("-delayTransientStatuses",),
    ],
    ids=" ".join,
)
def test_the_other_flags_are_understood(serve: Any, flags: tuple[str, ...]) -> None:
    server = serve("local", "-inMemory", "-port", "0", *flags)
    assert server.client().list_tables()["TableNames"] == []


@pytest.mark.parametrize(
    ("flags", "allowed", "refused"),
    [
        ((), [], ["http://example.com", "http://localhost", "null"]),
        (("-cors", "*"), ["http://example.com", "null"], []),
        # DynamoDB Local compares whole origins; its guide speaks of domains.
        (
            ("-cors", "http://example.com:3000, localhost"),
            ["http://example.com:3000", "http://localhost:8080", "https://localhost"],
            ["http://example.com", "https://example.com:3000", "http://a.example", "null"],
        ),
    ],
    ids=["none", "all", "a list"],
)
def test_cors_lists_whose_pages_may_use_the_server(
    serve: Any, flags: tuple[str, ...], allowed: list[str], refused: list[str]
) -> None:
    server = serve("local", "-inMemory", "-port", "0", *flags)
    for origin in (*allowed, *refused):
        connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/", headers={"Origin": origin})
        answer = connection.getresponse()
        assert (answer.status, origin) == (200 if origin in allowed else 403, origin)
        connection.close()


def test_transient_statuses_are_delayed(serve: Any) -> None:
    client = serve("local", "-inMemory", "-port", "0", "-delayTransientStatuses").client()

    def is_busy(table: str) -> bool:
        """True if a new table is visible but cannot be deleted yet."""
        client.create_table(
            TableName=table,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        status = client.describe_table(TableName=table)["Table"]["TableStatus"]
        with suppress(client.exceptions.ResourceInUseException):
            client.delete_table(TableName=table)
            return False
        return bool(status == "CREATING")

    # For a second, and we may be held up as long.
    assert any(is_busy(f"slow{number}") for number in range(5))


def test_two_dashes_do_too(serve: Any) -> None:
    server = serve("local", "--inMemory", "--port", "0", "--sharedDb")
    assert server.client().list_tables()["TableNames"] == []


@pytest.mark.parametrize("flag", ["-help", "-h"])
def test_help_lists_the_flags(run: Any, flag: str) -> None:
    completed = run("local", flag)
    assert (completed.returncode, completed.stderr) == (0, "")
    for name in (
        *("-inMemory", "-dbPath", "-port", "-sharedDb", "-cors", "-delayTransientStatuses"),
        *("-optimizeDbBeforeStartup", "-disableTelemetry", "-version", "-help"),
    ):
        assert name in completed.stdout


@pytest.mark.parametrize("flag", ["-version", "-v"])
def test_version_prints_it(run: Any, flag: str) -> None:
    completed = run("local", flag)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.startswith("partita ")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-nonsense",), "Unknown option '-nonsense'"),
        (("-port",), "-port needs a value"),
        (("-port", "http"), "-port takes a number"),
        (("-port", "70000"), "-port takes a number"),
        (("-dbPath",), "-dbPath needs a value"),
        (("-cors", "a b"), "'a b' is not an origin"),
        # DynamoDB Local refuses this pair too.
        (("-inMemory", "-dbPath", "somewhere"), "Give -inMemory or -dbPath, not both"),
        (("--inMemory", "--dbPath", "somewhere"), "Give -inMemory or -dbPath, not both"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_in_one_sentence(
    run: Any, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    completed = run("local", *flags, cwd=tmp_path)
    assert completed.returncode == 1
    assert completed.stderr.startswith(f"partita: {said}")
    assert completed.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# What clients send that have only met DynamoDB Local, what is made of it, and what the log says.

UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}


def keys(*names: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


def defined(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


def an_index(*names: str, **more: Any) -> dict[str, Any]:
    return {
        "IndexName": "byG",
        "KeySchema": keys(*names),
        "Projection": {"ProjectionType": "ALL"},
        **more,
    }


ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}
SURPLUS: dict[str, tuple[dict[str, Any], str]] = {
    "a definition that no key uses": (
        {"AttributeDefinitions": defined("x", "pk"), **ON_DEMAND},
        "definitions of attributes that no key uses (x) are left out",
    ),
    "definitions that neither table nor index use": (
        {
            "AttributeDefinitions": defined("pk", "x", "g", "y"),
            "GlobalSecondaryIndexes": [an_index("g", ProvisionedThroughput=UNITS)],
            "ProvisionedThroughput": UNITS,
        },
        "definitions of attributes that no key uses (x, y) are left out",
    ),
    "units of a table on demand": (
        {"AttributeDefinitions": defined("pk"), "ProvisionedThroughput": UNITS, **ON_DEMAND},
        "provisioned units of a table on demand are left out",
    ),
    "units of an index on demand": (
        {
            "AttributeDefinitions": defined("pk", "g"),
            "GlobalSecondaryIndexes": [an_index("g", ProvisionedThroughput=UNITS)],
            **ON_DEMAND,
        },
        "provisioned units of indexes on demand are left out",
    ),
    "no local indexes": (
        {"AttributeDefinitions": defined("pk"), "LocalSecondaryIndexes": [], **ON_DEMAND},
        "an empty list of LocalSecondaryIndexes is left out",
    ),
}


@pytest.mark.parametrize("case", SURPLUS)
def test_a_table_that_only_dynamodb_local_takes_is_created_with_a_warning(
    serve: Any, case: str
) -> None:
    more, warning = SURPLUS[case]
    server = serve("local", "-inMemory", "-port", "0")
    client = server.client()
    client.create_table(TableName="music", KeySchema=keys("pk"), **more)
    described = client.describe_table(TableName="music")["Table"]
    names = {one["AttributeName"] for one in described["AttributeDefinitions"]}
    assert names == ({"pk", "g"} if "GlobalSecondaryIndexes" in more else {"pk"})
    client.put_item(TableName="music", Item={"pk": {"S": "a"}, "x": {"N": "1"}})
    code, said = server.terminate()
    assert code == 0
    assert said == f"CreateTable of music: {warning}; Amazon DynamoDB refuses such a request.\n"


@pytest.mark.parametrize("case", SURPLUS)
def test_the_same_table_is_refused_without_dynamodb_locals_flags(serve: Any, case: str) -> None:
    more, _ = SURPLUS[case]
    client = serve("serve", "--in-memory", "--port", "0").client()
    with pytest.raises(client.exceptions.ClientError, match="ValidationException"):
        client.create_table(TableName="music", KeySchema=keys("pk"), **more)
    assert client.list_tables()["TableNames"] == []


def test_a_table_that_dynamodb_local_refuses_too_is_refused(serve: Any) -> None:
    server = serve("local", "-inMemory", "-port", "0")
    client = server.client()
    with pytest.raises(client.exceptions.ClientError, match="ValidationException"):
        client.create_table(
            TableName="music",
            KeySchema=keys("pk", "sk"),
            AttributeDefinitions=defined("pk"),
            **ON_DEMAND,
        )
    client.create_table(
        TableName="music", KeySchema=keys("pk"), AttributeDefinitions=defined("pk"), **ON_DEMAND
    )
    assert server.terminate() == (0, "")


def test_refusals_name_what_this_command_has(serve: Any) -> None:
    environment = {**processes.ENVIRONMENT, "PARTITA_ALLOW_HOST": "db.test"}
    ask = raw_requests(serve("local", "-inMemory", "-port", "0", env=environment).url)
    assert ask("ListTables", {}, {"Origin": "http://evil.example"}).body["Message"] == (
        "Pages of http://evil.example may not use this server; -cors lets them."
    )
    assert ask("ListTables", {}, {"Host": "db.test"}).status == 200
    assert (
        ask("ListTables", {}, {"Host": "other.test"})
        .body["Message"]
        .endswith("ask for localhost, or set PARTITA_ALLOW_HOST=other.test.")
    )

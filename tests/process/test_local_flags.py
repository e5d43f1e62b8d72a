"""`partita local`: DynamoDB Local's own flags, for scripts that start it by its command line."""

from __future__ import annotations

from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest


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
        """Whether a new table can be seen, and not yet be deleted."""
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
        (("-inMemory", "-dbPath", "somewhere"), "-inMemory and -dbPath exclude each other"),
        (("--inMemory", "--dbPath", "somewhere"), "-inMemory and -dbPath exclude each other"),
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

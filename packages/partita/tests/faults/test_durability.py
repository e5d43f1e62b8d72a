"""`--durability relaxed`: said in the ready line, and complete after a clean stop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def create_table(client: Any) -> None:
    client.create_table(
        TableName="table",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def test_commits_wait_for_the_disk_unless_it_says_otherwise(serve: Any, tmp_path: Path) -> None:
    server = serve(tmp_path)
    assert server.ready_line == f"Partita is ready on {server.url} (data in {tmp_path})\n"


def test_relaxed_durability_is_said(serve: Any, tmp_path: Path) -> None:
    server = serve(tmp_path, "--durability", "relaxed")
    assert server.ready_line == (
        f"Partita is ready on {server.url} (data in {tmp_path}, "
        "durability relaxed: a crash of the machine can lose it)\n"
    )


def test_a_relaxed_server_that_stops_leaves_everything(
    serve: Any, tmp_path: Path, assert_clean: Callable[[Path], None]
) -> None:
    server = serve(tmp_path, "--durability", "relaxed")
    client = server.client()
    create_table(client)
    client.put_item(TableName="table", Item={"pk": {"S": "kept"}})
    assert server.terminate() == (0, "")
    assert_clean(tmp_path)
    items = serve(tmp_path).client().scan(TableName="table")["Items"]
    assert items == [{"pk": {"S": "kept"}}]


def test_a_relaxed_server_that_is_killed_loses_nothing_either(
    serve: Any, tmp_path: Path, assert_clean: Callable[[Path], None]
) -> None:
    """The system has what the process wrote; only the machine could lose it."""
    server = serve(tmp_path, "--durability", "relaxed")
    client = server.client()
    create_table(client)
    client.put_item(TableName="table", Item={"pk": {"S": "kept"}})
    server.kill()
    assert_clean(tmp_path)
    assert serve(tmp_path).client().scan(TableName="table")["Count"] == 1

"""Two versions of Partita on one database: servers are upgraded one by one, then the schema."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit import ROOT
from testkit.data.item_tables import create, item, number
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

LAST_WITH_SCHEMA_1 = "e428226"
"""The last commit without tables for recovery."""
BACK_TO_SCHEMA_1 = """
    DROP TABLE partita_archive, partita_recovery; UPDATE partita_format SET version = 1"""


def _refusal(client: Any, table: str) -> str:
    with pytest.raises(ClientError) as refused:
        client.create_backup(TableName=table, BackupName="early")
    return str(refused.value.response["Error"]["Code"])


@contextmanager
def writing(client: Any, table: str) -> Iterator[None]:
    """Increments an item during the block; no increment may fail."""
    is_over = threading.Event()
    counted: list[Any] = []

    def count() -> None:
        while not is_over.is_set():
            client.update_item(
                TableName=table,
                Key=item("counter"),
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
            counted.append(1)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    assert number(client, table, "counter", "n") == len(counted) > 0


def test_a_server_works_with_the_schema_before_its_own_and_goes_on_with_the_next(
    postgresql: PostgreSQL,
) -> None:
    url = storage_url(postgresql, "earlier")
    assert processes.run("storage", "init", url).returncode == 0
    postgresql.execute(BACK_TO_SCHEMA_1, "earlier")
    with processes.starting() as start:
        client = start("serve", "--port", "0", "--storage", url).client()
        table = create(client)
        assert _refusal(client, table) == "UnknownOperationException"
        with writing(client, table):
            assert "schema 1" in processes.run("storage", "status", url).stdout
            assert "ready for servers" in processes.run("storage", "init", url).stdout
            assert "schema 2" in processes.run("storage", "status", url).stdout
        client.create_backup(TableName=table, BackupName="now")


@pytest.mark.soak
def test_servers_are_replaced_by_those_of_the_next_version_without_downtime(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    archive = subprocess.run(
        ["git", "archive", LAST_WITH_SCHEMA_1, "src"], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"this clone does not have {LAST_WITH_SCHEMA_1}")
    subprocess.run(["tar", "x", "-C", str(tmp_path)], input=archive.stdout, check=True)
    earlier = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    url = storage_url(postgresql, "versions")
    command = [*processes.COMMAND, "storage", "init", url]
    subprocess.run(command, check=True, capture_output=True, env=earlier)
    with processes.starting() as start:
        old = start("serve", "--port", "0", "--storage", url, env=earlier)
        table = create(old.client(), **_stream())
        new = start("serve", "--port", "0", "--storage", url)
        with writing(new.client(), table):
            for place in range(20):
                client = (old, new)[place % 2].client()
                client.put_item(TableName=table, Item=item(f"k{place}", n=place))
                other = (new, old)[place % 2].client()
                assert number(other, table, f"k{place}", "n") == place
            assert old.terminate()[0] == 0
            assert processes.run("storage", "init", url).returncode == 0
        new.client().create_backup(TableName=table, BackupName="now")
        refused = subprocess.run(
            [*processes.COMMAND, "serve", "--port", "0", "--storage", url],
            capture_output=True,
            text=True,
            check=False,
            env=earlier,
        )
        assert refused.returncode == 1
        assert "The database has schema 2, this Partita works with 1" in refused.stderr
    assert processes.run("storage", "check", url).returncode == 0


def _stream() -> dict[str, Any]:
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}

"""The file system of PostgreSQL is full."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit.data.item_tables import create, item, number
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

USABLE_SECONDS_MAX = 30
ROOM = "64m"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("a file system can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _fill(file: Path) -> None:
    """Fill the file system."""
    with file.open("wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(4096)):
                pass
        except OSError:
            return


def _put_until_refused(client: Any, table: str) -> int:
    """The number of large items that were put before one was refused."""
    for place in range(1000):
        large = {**item(f"large{place}", n=place), "text": {"S": os.urandom(50_000).hex()}}
        try:
            client.put_item(TableName=table, Item=large)
        except ClientError as error:
            assert error.response["Error"]["Code"] == "InternalServerError"
            return place
    raise AssertionError("the disk was never full")


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_on_a_full_disk_and_writes_go_on_when_there_is_room() -> None:
    PostgreSQL.require()
    with PostgreSQL() as postgresql, small_disk(postgresql.folder / "small") as disk:
        place = disk / "tablespace"
        place.mkdir()
        shutil.chown(place, "postgres", "postgres")
        url = storage_url(postgresql, "filled")
        postgresql.execute(f"CREATE TABLESPACE small LOCATION '{place}'", "postgres")
        postgresql.execute("ALTER DATABASE filled SET TABLESPACE small", "postgres")
        assert processes.run("storage", "init", url).returncode == 0
        with processes.starting() as start:
            server = start("serve", "--port", "0", "--storage", url)
            client = server.client()
            table = create(client)
            client.put_item(TableName=table, Item=item("a", n=1))
            _fill(disk / "ballast")
            acknowledged = _put_until_refused(client, table)
            assert number(client, table, "a", "n") == 1
            (disk / "ballast").unlink()
            deadline = time.monotonic() + USABLE_SECONDS_MAX
            while True:
                try:
                    client.put_item(TableName=table, Item=item("a", n=2))
                    break
                except ClientError:
                    assert time.monotonic() < deadline
            for one in range(acknowledged):
                assert number(client, table, f"large{one}", "n") == one
            code, said = server.terminate()
        assert code == 0
        assert "No space left on device" in said
        assert "can be used again" in said
        assert processes.run("storage", "check", url).returncode == 0

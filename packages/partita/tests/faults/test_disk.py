"""A full disk, and one that refuses to write: a clear error, reads go on, nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .tables import indexed

TABLE = "table"
DISK_BYTES = 4 << 20
BALLAST_BYTES = 1 << 20
ITEM_CHARS = 20_000
ITEMS_MAX = 1000
ROOM_BYTES = 512 << 10

AssertClean = Callable[[Path], None]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of a few megabytes."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a filesystem")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no filesystem can be mounted here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def put(client: Any, number: int) -> None:
    item = {"pk": {"S": str(number)}, "g": {"S": "x"}, "text": {"S": "x" * ITEM_CHARS}}
    client.put_item(TableName=TABLE, Item=item)


def put_until_refused(client: Any, start: int = 0) -> tuple[int, ClientError]:
    """The number of the item that was refused, and the error."""
    for number in range(start, start + ITEMS_MAX):
        try:
            put(client, number)
        except ClientError as error:
            return number, error
    raise AssertionError("never refused")


def found(client: Any, **request: Any) -> list[int]:
    pages = client.get_paginator("scan").paginate(TableName=TABLE, **request)
    return sorted(int(item["pk"]["S"]) for page in pages for item in page["Items"])


def assert_has_exactly(client: Any, count: int) -> None:
    assert found(client) == found(client, IndexName="index") == list(range(count))
    described = client.describe_table(TableName=TABLE)["Table"]
    assert described["ItemCount"] == described["GlobalSecondaryIndexes"][0]["ItemCount"] == count


def assert_refuses_every_write(client: Any) -> None:
    """Not a part of a batch or of a transaction is kept."""
    text = {"S": "x" * ITEM_CHARS}
    puts = [{"pk": {"S": f"-{number}"}, "text": text} for number in range(1, 26)]
    batch = {TABLE: [{"PutRequest": {"Item": item}} for item in puts]}
    actions = [{"Put": {"TableName": TABLE, "Item": item}} for item in puts]
    with pytest.raises(ClientError) as refused:
        client.batch_write_item(RequestItems=batch)
    assert refused.value.response["Error"]["Code"] == "InternalServerError"
    with pytest.raises(ClientError) as refused:
        client.transact_write_items(TransactItems=actions)
    assert refused.value.response["Error"]["Code"] == "InternalServerError"


def assert_healthy(url: str) -> None:
    with urllib.request.urlopen(f"{url}/health") as health:
        assert health.status == 200


def test_a_full_disk_refuses_writes_until_there_is_room(
    serve: Any, small_disk: Path, assert_clean: AssertClean
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\x00" * BALLAST_BYTES)
    folder = small_disk / "data"
    server = serve(folder)
    client = server.client()
    client.create_table(TableName=TABLE, **indexed("KEYS_ONLY"))
    count, error = put_until_refused(client)
    assert count > 10
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert error.response["Error"]["Code"] == "InternalServerError"
    assert f"the disk that holds {folder} is full" in error.response["Error"]["Message"]
    assert_refuses_every_write(client)
    assert_has_exactly(client, count)
    assert_healthy(server.url)
    ballast.unlink()
    put(client, count)
    more, _ = put_until_refused(client, count + 1)
    assert more > count + 1
    assert_has_exactly(client, more)
    code, said = server.terminate()
    assert code == 0
    assert "is full" in said and "Traceback" not in said
    assert_clean(folder)
    assert_has_exactly(serve(folder).client(), more)


def test_a_server_that_is_killed_on_a_full_disk_starts_again_on_it(
    serve: Any, small_disk: Path, assert_clean: AssertClean
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\x00" * BALLAST_BYTES)
    folder = small_disk / "data"
    server = serve(folder)
    server.client().create_table(TableName=TABLE, **indexed("KEYS_ONLY"))
    count, _ = put_until_refused(server.client())
    server.kill()
    assert_clean(folder)
    client = serve(folder).client()
    assert_has_exactly(client, count)
    ballast.unlink()
    put(client, count)
    assert_has_exactly(client, count + 1)


def test_a_disk_without_room_for_a_new_folder_is_refused_in_words(
    small_disk: Path, refused_by_serve: Callable[[Path], Any], serve: Any
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\x00" * (DISK_BYTES - 4096))
    completed = refused_by_serve(small_disk / "data")
    assert completed.returncode == 1
    assert completed.stderr.startswith("partita: ")
    assert completed.stderr.count("\n") == 1
    ballast.unlink()
    assert serve(small_disk / "data").client().list_tables()["TableNames"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_a_disk_that_refuses_to_write_is_no_loss(
    serve: Any, tmp_path: Path, assert_clean: AssertClean
) -> None:
    """The kernel fails every write behind a certain byte of the file (RLIMIT_FSIZE)."""
    import resource

    def limit(size_bytes: int) -> None:
        limits = (size_bytes, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)

    server = serve(tmp_path)
    client = server.client()
    client.create_table(TableName=TABLE, **indexed("KEYS_ONLY"))
    limit((tmp_path / "data.mdb").stat().st_size + ROOM_BYTES)
    count, error = put_until_refused(client)
    assert error.response["Error"]["Code"] == "InternalServerError"
    assert error.response["Error"]["Message"] == (
        "The commit could not be written: File too large."
    )
    assert_refuses_every_write(client)
    assert_has_exactly(client, count)
    assert_healthy(server.url)
    limit(resource.RLIM_INFINITY)
    put(client, count)
    assert_has_exactly(client, count + 1)
    limit(1)
    with pytest.raises(ClientError):
        put(client, count + 1)
    assert_has_exactly(client, count + 1)
    server.kill()
    assert_clean(tmp_path)
    client = serve(tmp_path).client()
    assert_has_exactly(client, count + 1)
    put(client, count + 1)
    assert_has_exactly(client, count + 2)

"""A disk whose syncs or reads fail: a clear error, reads go on, and nothing is lost.

`failing_disk.c` stands between the server and the system, and fails what a test asks for.
"""

from __future__ import annotations

import shutil
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from partita.database.storage.data_folder.embedded_engine import CHECKPOINT_BYTES
from testkit.servers import processes

from .preloading import compiled
from .tables import indexed

TABLE = "table"
SOURCE = Path(__file__).with_name("failing_disk.c")
BEFORE = 200
ATTEMPTS = 30
WRITERS = 6
TEXT = "x" * 3000

AssertClean = Callable[[Path], None]


class Disk:
    """What fails, and the environment of a server on it."""

    def __init__(self, folder: Path, library: Path) -> None:
        self._folder = folder
        self.environment = {
            **processes.ENVIRONMENT,
            "LD_PRELOAD": str(library),
            "PARTITA_FAILING_DISK": str(folder),
        }

    @contextmanager
    def failing(self, what: str) -> Iterator[None]:
        fault = self._folder / what
        fault.touch()
        try:
            yield
        finally:
            fault.unlink()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(SOURCE, tmp_path_factory.mktemp("library"))


@pytest.fixture
def disk(library: Path, tmp_path: Path) -> Disk:
    folder = tmp_path / "faults"
    folder.mkdir()
    return Disk(folder, library)


def item_of(number: int, text: str = TEXT) -> dict[str, Any]:
    return {"pk": {"S": str(number)}, "g": {"S": str(number % 7)}, "text": {"S": text}}


def put(client: Any, number: int, text: str = TEXT) -> None:
    client.put_item(TableName=TABLE, Item=item_of(number, text))


def found(client: Any, **request: Any) -> dict[int, str]:
    pages = client.get_paginator("scan").paginate(TableName=TABLE, **request)
    return {int(item["pk"]["S"]): item["text"]["S"][:5] for page in pages for item in page["Items"]}


def assert_has(client: Any, expected: dict[int, str]) -> None:
    assert found(client) == found(client, IndexName="index") == expected
    assert client.describe_table(TableName=TABLE)["Table"]["ItemCount"] == len(expected)


def refusal(client: Any, number: int) -> str:
    """What the server says to a put, of an item that is there and of one that is not."""
    with pytest.raises(ClientError) as refused:
        put(client, number, "lost")
    answer = refused.value.response
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert answer["Error"]["Code"] == "InternalServerError"
    return str(answer["Error"]["Message"])


def filled(serve: Any, folder: Path, disk: Disk) -> tuple[Any, dict[int, str]]:
    """A server on that disk, and what it has."""
    server = serve(folder, env=disk.environment)
    client = server.client()
    client.create_table(TableName=TABLE, **indexed("ALL"))
    for first in range(0, BEFORE, 25):
        puts = [{"PutRequest": {"Item": item_of(number)}} for number in range(first, first + 25)]
        client.batch_write_item(RequestItems={TABLE: puts})
    return server, dict.fromkeys(range(BEFORE), TEXT[:5])


def test_a_sync_that_fails_refuses_the_write_and_nothing_else(
    serve: Any, tmp_path: Path, disk: Disk, assert_clean: AssertClean
) -> None:
    folder = tmp_path / "data"
    server, expected = filled(serve, folder, disk)
    client = server.client()
    with disk.failing("sync"):
        for number in range(BEFORE - ATTEMPTS // 2, BEFORE + ATTEMPTS // 2):
            said = refusal(client, number)
            assert said.startswith("The commit could not be written: ")
            assert "Input/output error" in said
        assert_has(client, expected)
        with urllib.request.urlopen(f"{server.url}/health") as health:
            assert health.status == 200
    put(client, BEFORE)
    expected[BEFORE] = TEXT[:5]
    assert_has(client, expected)
    with disk.failing("sync"):
        refusal(client, 0)
        said = server.kill()
    assert "Input/output error" in said and "Traceback" not in said
    assert_clean(folder)
    assert_has(serve(folder).client(), expected)


def test_syncs_that_fail_under_load_lose_nothing_that_was_acknowledged(
    serve: Any, tmp_path: Path, disk: Disk, assert_clean: AssertClean
) -> None:
    folder = tmp_path / "data"
    server, expected = filled(serve, folder, disk)
    client = server.client()

    def write(writer: int) -> dict[int, str]:
        acknowledged = {}
        for attempt in range(ATTEMPTS):
            number = BEFORE + writer * ATTEMPTS + attempt
            try:
                put(client, number)
                acknowledged[number] = TEXT[:5]
            except ClientError as error:
                assert error.response["Error"]["Code"] == "InternalServerError"
        return acknowledged

    with ThreadPoolExecutor(WRITERS) as pool:
        working = [pool.submit(write, writer) for writer in range(WRITERS)]
        while not all(one.done() for one in working):
            with disk.failing("sync"):
                found(client)
        for one in working:
            expected |= one.result()
    put(client, -1)
    expected[-1] = TEXT[:5]
    assert_has(client, expected)
    code, said = server.terminate()
    assert code == 0
    assert "Traceback" not in said
    assert_clean(folder)
    assert_has(serve(folder).client(), expected)


def test_what_the_tree_does_not_take_is_kept_by_the_write_ahead_log(
    serve: Any, tmp_path: Path, disk: Disk, assert_clean: AssertClean
) -> None:
    """LMDB does not know then what the disk has, and takes no write any more."""
    folder = tmp_path / "data"
    server, expected = filled(serve, folder, disk)
    client = server.client()
    text = "y" * 300_000
    with disk.failing("meta"):
        for number in range(BEFORE, BEFORE + 4 * CHECKPOINT_BYTES // len(text)):
            put(client, number, text)
            expected[number] = text[:5]
        assert_has(client, expected)
    put(client, -1)
    expected[-1] = TEXT[:5]
    assert_has(client, expected)
    code, said = server.terminate()
    assert code == 0
    assert "The changes are still in the write-ahead log." in said and "Traceback" not in said
    assert_clean(folder)
    client = serve(folder).client()
    assert_has(client, expected)
    put(client, -2)
    assert_has(client, {**expected, -2: TEXT[:5]})


def test_a_folder_that_cannot_be_read_is_refused_in_words(
    serve: Any, tmp_path: Path, disk: Disk
) -> None:
    folder = tmp_path / "data"
    server, expected = filled(serve, folder, disk)
    server.terminate()
    said = (
        f"partita: Cannot open the data folder {folder}: "
        "data.mdb cannot be read (Input/output error).\n"
    )
    with disk.failing("read"):
        served = processes.run("serve", "--port", "0", "--data", folder, env=disk.environment)
        checked = processes.run("check", folder, env=disk.environment)
    assert (served.returncode, served.stdout, served.stderr) == (1, "", said)
    assert (checked.returncode, checked.stdout, checked.stderr) == (2, "", said)
    assert_has(serve(folder).client(), expected)


@pytest.mark.skipif(sys.platform != "linux", reason="what a lost page does is Linux's")
def test_a_page_that_is_lost_under_a_server_ends_it_and_no_data(
    serve: Any, tmp_path: Path, disk: Disk, assert_clean: AssertClean
) -> None:
    """The file is mapped: the system answers a read that fails with a signal (SIGBUS).

    Cutting the file off is what can be done to it from here with the same effect.
    """
    folder = tmp_path / "data"
    server, expected = filled(serve, folder, disk)
    # What is in the write-ahead log only is not read from the file.
    server.terminate()
    server = serve(folder, env=disk.environment)
    copy = tmp_path / "copy.mdb"
    shutil.copy(folder / "data.mdb", copy)
    with (folder / "data.mdb").open("r+b") as file:
        file.truncate(2 * 4096)
    with pytest.raises(BotoCoreError):
        found(server.client())
    code, _ = server.ended()
    assert code == -signal.SIGBUS
    shutil.copy(copy, folder / "data.mdb")
    assert_clean(folder)
    assert_has(serve(folder).client(), expected)

"""A folder that is damaged, newer, or none at all: refused in words, and nothing is made of it."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest

from partita.database.operations.operation_context import PermittedRequest
from partita.database.storage.data_folder.lmdb_pages import check_pages

from .tables import indexed

PAGE = 4096
FORMAT_KEY = b"\x00format"
CATALOG_KEY = b"\x01table"
RANDOM_DAMAGES = 15

Completed = subprocess.CompletedProcess[str]
Look = Callable[[Path], Completed]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with more than one page of everything, values in overflow pages among them."""
    # Through the operations, not over HTTP: quick, and the file is the same.
    from partita.assembly.database_engines import open_engine
    from partita.assembly.service_registry import WRITES
    from partita.database.execution.embedded_database import EmbeddedDatabase
    from partita.foundation.clock import system_clock

    folder = tmp_path_factory.mktemp("prepared")
    soon: list[Callable[[], None]] = []
    database = EmbeddedDatabase(
        open_engine(folder, durable=False),
        call_soon=soon.append,
        call_from_thread=soon.append,
        call_later=lambda seconds, function: None,
        clock=system_clock,
    )

    def write(operation: str, **request: Any) -> None:
        answers: list[Any] = []
        database.write(
            WRITES[operation], PermittedRequest({"TableName": "table", **request}), answers.append
        )
        while not answers:
            if soon:
                soon.pop(0)()
        assert isinstance(answers[0], bytes)

    write("CreateTable", **indexed("ALL"))
    for number in range(400):
        write(
            "PutItem",
            Item={
                "pk": {"S": str(number)},
                "g": {"S": str(number % 7)},
                "text": {"S": "x" * (5000 if number % 20 == 0 else 100)},
            },
        )
    database.close()
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "copy"))


def data(folder: Path) -> Path:
    return folder / "data.mdb"


def assert_refused(completed: Completed, code: int) -> str:
    assert completed.returncode == code, completed
    assert completed.stdout == ""
    assert completed.stderr.startswith("partita: ")
    assert completed.stderr.count("\n") == 1
    return completed.stderr


def assert_both_refuse(folder: Path, check: Look, refused_by_serve: Look) -> str:
    before = data(folder).read_bytes()
    said = assert_refused(refused_by_serve(folder), 1)
    assert assert_refused(check(folder), 2) == said
    assert data(folder).read_bytes() == before
    return said


def change(folder: Path, key: bytes, value: bytes | None) -> None:
    with (
        lmdb.open(str(folder), map_size=1 << 30) as environment,
        environment.begin(write=True) as transaction,
    ):
        if value is None:
            transaction.delete(key)
        else:
            transaction.put(key, value)


def test_a_sound_folder_is_clean(folder: Path, assert_clean: Callable[[Path], None]) -> None:
    assert_clean(folder)


@pytest.mark.parametrize("kept", [0, 1, 100, PAGE, PAGE + 100, 2 * PAGE])
def test_a_file_cut_off_near_its_beginning(
    folder: Path, kept: int, check: Look, refused_by_serve: Look
) -> None:
    with data(folder).open("r+b") as file:
        file.truncate(kept)
    said = assert_both_refuse(folder, check, refused_by_serve)
    assert f"Cannot open the data folder {folder}: data.mdb is damaged: " in said


def test_a_file_cut_off_in_the_middle(folder: Path, check: Look, refused_by_serve: Look) -> None:
    with data(folder).open("r+b") as file:
        file.truncate(data(folder).stat().st_size // 2)
    assert "lies beyond its end" in assert_both_refuse(folder, check, refused_by_serve)


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 64, b"hello"])
def test_a_file_that_begins_as_something_else(
    folder: Path, content: bytes, check: Look, refused_by_serve: Look
) -> None:
    data(folder).write_bytes((content * PAGE)[: 8 * PAGE])
    assert_both_refuse(folder, check, refused_by_serve)


def test_random_bytes_in_all_pages(folder: Path, check: Look, refused_by_serve: Look) -> None:
    pages = data(folder).stat().st_size // PAGE
    noise = random.Random(1).randbytes((pages - 2) * PAGE)
    with data(folder).open("r+b") as file:
        file.seek(2 * PAGE)
        file.write(noise)
    assert_both_refuse(folder, check, refused_by_serve)


@pytest.mark.soak
def test_random_bytes_anywhere_are_never_a_crash(
    prepared: Path, tmp_path: Path, check: Look, refused_by_serve: Look, seed: int
) -> None:
    """A page that nobody uses may be overwritten unnoticed; nothing may end by a signal."""
    chance = random.Random(seed)
    refusals = 0
    for number in range(RANDOM_DAMAGES):
        folder = Path(shutil.copytree(prepared, tmp_path / str(number)))
        size = data(folder).stat().st_size
        with data(folder).open("r+b") as file:
            for _ in range(chance.randrange(1, 6)):
                file.seek(chance.randrange(size))
                file.write(chance.randbytes(chance.choice([1, 8, 64, PAGE])))
            file.truncate(size)
        completed = check(folder)
        assert completed.returncode in (0, 1, 2), completed
        assert "Traceback" not in completed.stderr, completed.stderr
        if completed.returncode == 2:
            refusals += 1
            assert_refused(completed, 2)
    assert refusals


def test_a_newer_format(folder: Path, check: Look, refused_by_serve: Look) -> None:
    change(folder, FORMAT_KEY, b"3")
    said = assert_both_refuse(folder, check, refused_by_serve)
    assert "has format 3, but this Partita reads format 2" in said


def test_data_of_another_program(folder: Path, check: Look, refused_by_serve: Look) -> None:
    change(folder, FORMAT_KEY, None)
    said = assert_both_refuse(folder, check, refused_by_serve)
    assert "holds data that Partita did not write" in said


def test_a_catalog_that_cannot_be_read(folder: Path, check: Look, refused_by_serve: Look) -> None:
    change(folder, CATALOG_KEY, b'{"name": ')
    said = assert_refused(refused_by_serve(folder), 1)
    assert "The data folder is damaged: its entry for table table cannot be read" in said
    completed = check(folder)
    assert completed.returncode == 1
    assert completed.stdout.startswith("table table: the catalog entry cannot be read")


def test_what_is_wrong_is_told_line_by_line(folder: Path, check: Look) -> None:
    change(folder, b"\x20stray", b"")
    completed = check(folder)
    assert (completed.returncode, completed.stderr) == (1, "")
    finding, summary = completed.stdout.splitlines()
    assert finding.endswith("they belong to no table or index (found 1)")
    assert summary == "1 tables, 400 items, 400 index entries checked: 1 findings."


def test_no_folder(tmp_path: Path, check: Look) -> None:
    missing = tmp_path / "missing"
    assert f"The data folder {missing} does not exist" in assert_refused(check(missing), 2)
    assert not missing.exists()


def test_a_folder_of_something_else(tmp_path: Path, check: Look) -> None:
    assert "is not a data folder of Partita" in assert_refused(check(tmp_path), 2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_being_served(folder: Path, check: Look, serve: Any) -> None:
    serve(folder)
    assert "is in use by another Partita" in assert_refused(check(folder), 2)


def test_a_copy_of_the_data_file_alone(
    folder: Path, tmp_path: Path, assert_clean: Callable[[Path], None]
) -> None:
    copy = tmp_path / "backup"
    copy.mkdir()
    shutil.copy(data(folder), copy)
    assert_clean(copy)
    assert [path.name for path in copy.iterdir()] == ["data.mdb"]


def test_whatever_lmdb_does_its_pages_are_found_in_order(tmp_path: Path) -> None:
    """Also where the file is shorter than it claims: its last pages were freed unwritten."""
    chance = random.Random(1)
    shorter = 0
    with lmdb.open(str(tmp_path), map_size=1 << 30, sync=False) as environment:
        for number in range(300):
            with environment.begin(write=True) as transaction:
                for _ in range(chance.randrange(1, 400)):
                    key = chance.randbytes(chance.randrange(1, 30))
                    if chance.random() < 0.5:
                        value = chance.randbytes(chance.choice([0, 10, 300, 3000, 9000]))
                        transaction.put(key, value)
                    elif (cursor := transaction.cursor()).set_range(key):
                        cursor.delete()
                cursor = transaction.cursor()
                while number % 20 == 19 and cursor.first() and chance.random() < 0.999:
                    cursor.delete()
            check_pages(data(tmp_path))
            claimed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
            shorter += data(tmp_path).stat().st_size < claimed
    assert shorter

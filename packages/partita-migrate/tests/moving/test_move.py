"""Rows are loaded and changes followed on every kind of source, and both sides are equal."""

from __future__ import annotations

import random
import threading
from typing import Any

import boto3
import pytest

from partita.errors import PartitaError
from partita_migrate.model.model_files import read_design
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.logs.source_changes import SchemaChanged
from partita_migrate.moving.target_access.item_positions import DELETED, POSITION
from partita_migrate.moving.verifying.verify import VerifyReport, verify
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import PATTERNS, Sql, script

from .conftest import KINDS, MakeSource


def items_of(folder: Folder, endpoint: str) -> list[dict[str, Any]]:
    client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1",
                          aws_access_key_id="x", aws_secret_access_key="x")  # fmt: skip
    found: list[dict[str, Any]] = []
    for table in read_design(folder).tables:
        for page in client.get_paginator("scan").paginate(TableName=table.name):
            found += page["Items"]
    client.close()
    return found


def live(folder: Folder, endpoint: str) -> list[dict[str, Any]]:
    return [item for item in items_of(folder, endpoint) if DELETED not in item]


def assert_same(found: VerifyReport) -> None:
    assert [(one.side, one.table, one.key, one.what) for one in found.differences] == []
    assert found.different == 0
    assert found.rejected == 0


def moved(source: Sql, endpoint: str) -> Folder:
    folder = source.folder(PATTERNS, endpoint)
    load(folder, endpoint, is_followed=True)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_loaded_and_followed_is_what_the_source_has(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = source.folder(PATTERNS, target)
    loaded = load(folder, target, is_followed=True)
    counted = [
        (one.table, one.expected, one.rows, one.imported, one.skipped, one.failed)
        for one in loaded.tables
    ]
    assert counted == [("author", 10, 10, 10, 0, 0), ("book", 40, 40, 40, 0, 0)]
    assert_same(verify(folder, target))

    source.run("UPDATE author SET name = 'Renamed' WHERE id = 3")
    source.run("INSERT INTO author VALUES (50, 'a50@x', NULL); INSERT INTO book VALUES"
               " (90, 50, 'New', 1); UPDATE author SET name = 'Later' WHERE id = 50")  # fmt: skip
    source.run("UPDATE book SET id = 91, title = NULL WHERE id = 7")
    source.run("DELETE FROM book WHERE id = 8; INSERT INTO book VALUES (8, 1, 'Again', 2)")
    source.run("UPDATE author SET email = 'swap' WHERE id = 1;"
               "UPDATE author SET email = 'a1@x' WHERE id = 2")  # fmt: skip
    source.run("UPDATE author SET id = 60 WHERE id = 4")
    source.run("DELETE FROM author WHERE id = 5")
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target, is_dry_run=True))
    found = live(folder, target)
    copies = [item for item in found if item.get("author_id", {}).get("N") == "3"]
    assert len(copies) == 4
    assert not [item for item in found if item.get("author_id", {}).get("N") in ("4", "5")]
    assert len([item for item in found if item.get("author_id", {}).get("N") == "60"]) == 4
    assert all(POSITION in item for item in found)


def test_followed_twice_nothing_changes(make_source: MakeSource, target: str) -> None:
    # Only its log can be read twice: a slot sends once, and SQLite's changes are stored first.
    source = make_source("mysql", script())
    folder = moved(source, target)
    state = (folder.path / "move" / "state.db").read_bytes()
    source.run("UPDATE author SET name = 'One'")
    source.run("DELETE FROM book WHERE id < 5; UPDATE book SET author_id = 9 WHERE id > 30")
    follow(folder, target, is_once=True)
    once = items_of(folder, target)
    # As after a kill: the target has items that the state store does not know of.
    for name in ("state.db-wal", "state.db-shm"):
        (folder.path / "move" / name).unlink(missing_ok=True)
    (folder.path / "move" / "state.db").write_bytes(state)
    follow(folder, target, is_once=True)
    assert sorted(items_of(folder, target), key=repr) == sorted(once, key=repr)
    assert_same(verify(folder, target))


def test_nothing_older_overwrites_an_item_or_brings_it_back(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("sqlite", script())
    folder = moved(source, target)
    table = read_design(folder).tables[0]
    newer, gone = (one for one in live(folder, target) if one.get("id", {}).get("N") in ("3", "4")
                   and "price" in one)  # fmt: skip
    position = {POSITION: {"N": str(2**60)}}
    client = boto3.client("dynamodb", endpoint_url=target, region_name="us-east-1",
                          aws_access_key_id="x", aws_secret_access_key="x")  # fmt: skip
    keys = {key.name: gone[key.name] for key in table.keys}
    for item in ({**newer, **position}, {**keys, **position, DELETED: {"BOOL": True}}):
        client.put_item(TableName=table.name, Item=item)
    client.close()
    source.run("UPDATE book SET title = 'older' WHERE id IN (3, 4, 5)")
    source.run("DELETE FROM book WHERE id = 6")
    follow(folder, target, is_once=True)
    found = items_of(folder, target)
    assert sum(item.get("title") == {"S": "older"} for item in found) == 1
    assert sum(DELETED in item for item in found) == 2
    # The write is refused because of the existing item, which has no lower position.
    assert verify(folder, target).different == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_change_stops_following_with_a_sentence(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = moved(source, target)
    source.run("ALTER TABLE book ADD COLUMN extra INT")
    source.run("UPDATE book SET extra = 1 WHERE id = 1")
    with pytest.raises(SchemaChanged, match="book: column extra is new"):
        follow(folder, target)


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_a_truncated_table_has_no_items(make_source: MakeSource, target: str, kind: str) -> None:
    source = make_source(kind, script())
    folder = moved(source, target)
    source.run("TRUNCATE TABLE book")
    source.run("INSERT INTO book VALUES (1, 1, 'Only', 1)")
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))
    assert len([item for item in live(folder, target) if "price" in item]) == 1


def test_an_unchanged_long_value_is_kept(make_source: MakeSource, target: str) -> None:
    source = make_source("postgresql", script())
    source.run("ALTER TABLE book ALTER COLUMN title TYPE TEXT;"
               "ALTER TABLE book ALTER COLUMN title SET STORAGE EXTERNAL")  # fmt: skip
    source.run("UPDATE book SET title = repeat('long ', 5000) WHERE id = 3")
    folder = source.folder({"book": "SELECT * FROM book WHERE id = ?"}, target)
    load(folder, target, is_followed=True)
    source.run("UPDATE book SET price = 7 WHERE id = 3")
    source.run("UPDATE book SET id = 77 WHERE id = 3")
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))
    (book,) = [item for item in live(folder, target) if item.get("id", {}).get("N") == "77"]
    assert (len(book["title"]["S"]), book["price"]) == (25_000, {"N": "7"})


@pytest.mark.parametrize("kind", KINDS)
def test_verify_finds_and_repairs_what_somebody_spoiled(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = moved(source, target)
    table = read_design(folder).tables[0]
    keys = [key.name for key in table.keys]
    client = boto3.client("dynamodb", endpoint_url=target, region_name="us-east-1",
                          aws_access_key_id="x", aws_secret_access_key="x")  # fmt: skip
    gone, spoiled = live(folder, target)[:2]
    client.delete_item(TableName=table.name, Key={name: gone[name] for name in keys})
    client.put_item(TableName=table.name, Item={**spoiled, "title": {"S": "spoiled"}})
    ours = {**{name: {"S": "too much"} for name in keys}, POSITION: {"N": "0"}}
    theirs = {name: {"S": "not ours"} for name in keys}
    client.put_item(TableName=table.name, Item=ours)
    client.put_item(TableName=table.name, Item=theirs)
    found = verify(folder, target)
    assert sorted(one.what for one in found.differences) == [
        "is missing", "is not what its row makes", "no row makes it",
        "was written by somebody else; left alone",
    ]  # fmt: skip
    assert verify(folder, target, is_repairing=True).repaired == 3
    left = verify(folder, target)
    assert [one.what for one in left.differences] == ["was written by somebody else; left alone"]
    client.delete_item(TableName=table.name, Key=theirs)
    client.close()
    assert_same(verify(folder, target))
    assert_same(verify(folder, target, sample=5))


def test_a_load_overwrites_nothing_that_is_there(make_source: MakeSource, target: str) -> None:
    source = make_source("sqlite", script())
    folder = moved(source, target)
    for path in (folder.path / "move").iterdir():
        path.unlink()
    with pytest.raises(PartitaError, match="has items already"):
        load(folder, target)


def test_a_row_that_makes_no_item_is_a_reject_until_it_is_corrected(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("sqlite", script())
    folder = source.folder({"log in": "SELECT id FROM author WHERE email = ?"}, target)
    # 500,000 letters, more than an item can have, and more than the design has seen.
    source.run("INSERT INTO author VALUES (70, 'a70@x', hex(zeroblob(250000)))")
    loaded = load(folder, target, is_followed=True)
    author = next(one for one in loaded.tables if one.table == "author")
    assert (author.expected, author.rows, author.imported, author.failed) == (11, 11, 10, 1)
    assert '"a70@x"' in (folder.path / "move" / "rejects.jsonl").read_text()
    source.run("UPDATE author SET name = 'right' WHERE id = 70")
    assert follow(folder, target, is_once=True).rejects == 0
    assert_same(verify(folder, target))


# Kills.


def writes_of(chance: random.Random) -> str:
    number, other = chance.randint(0, 60), chance.randint(0, 9)
    return chance.choice(
        [
            f"UPDATE author SET name = 'N{chance.random()}' WHERE id = {other}",
            f"UPDATE book SET author_id = {other}, price = {number} WHERE id = {number}",
            f"DELETE FROM book WHERE id = {number}",
            f"DELETE FROM book WHERE id = {number}; INSERT INTO book VALUES"
            f" ({number}, {other}, 'T{chance.random()}', 1)",
            f"UPDATE book SET id = {number + 1000 + chance.randint(0, 99999)} WHERE id = {number}",
            f"UPDATE author SET name = 'P' WHERE id = {other};"
            f" UPDATE book SET title = 'Q' WHERE author_id = {other}",
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_is_written_to_all_the_time_can_be_verified(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = moved(source, target)
    is_over = threading.Event()

    def write() -> None:
        count = 0
        while not is_over.wait(0.001):
            count += 1
            source.run(f"UPDATE book SET price = {count} WHERE id = {count % 40}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            assert_same(verify(folder, target))
    finally:
        is_over.set()
        writer.join()

"""Parts of tables, files for ImportTable, replayed rejects, and verification while following."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import boto3
import pytest

from partita.errors import PartitaError
from partita_migrate.model.model_files import read_design
from partita_migrate.moving.following.follow import Follower, follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.move import open_move
from partita_migrate.moving.verifying.continuous_verification import (
    VERIFIED,
    ContinuousVerification,
)
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import PATTERNS, Sql, script
from testkit.servers.database_servers import PASSWORD, DatabaseServer
from testkit.servers.processes import Server

from .conftest import KINDS, MakeSource, start
from .test_move import assert_same, items_of, live, moved
from .test_restarts import wait_for_name


def client_of(endpoint: str) -> Any:
    return boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1",
                        aws_access_key_id="x", aws_secret_access_key="x")  # fmt: skip


def books(folder: Folder, target: str) -> set[int]:
    return {int(item["id"]["N"]) for item in live(folder, target) if "price" in item}


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_a_table_is_moved_and_the_rest_is_counted(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = source.folder(PATTERNS, target)
    where = {"book": "price >= 30 AND NOT title = 'Title 35'"}
    loaded = load(folder, target, is_followed=True, where=where)
    book = next(one for one in loaded.tables if one.table == "book")
    assert (book.expected, book.rows, book.imported, book.stay) == (40, 40, 9, 31)
    assert books(folder, target) == {*range(30, 40)} - {35}
    # Rows move in and out of the part as they change.
    source.run("UPDATE book SET price = 1 WHERE id = 36")
    source.run("UPDATE book SET price = 99 WHERE id = 2; INSERT INTO book VALUES (50, 1, 'x', 3)")
    follow(folder, target, is_once=True)
    assert books(folder, target) == {2, *range(30, 40)} - {35, 36}
    assert_same(verify(folder, target))


@pytest.mark.parametrize(
    ("condition", "chosen"),
    [
        ("id BETWEEN 3 AND 5 OR id IN (7, 8)", {3, 4, 5, 7, 8}),
        ("title IS NULL", {9}),
        ("NOT title > 'Title 5'", {0, 1, 2, 3, 4, 5}),
        ("'Title 7' <= title AND price <> 8.5", {7}),
        ("price < -1", set()),
    ],
)
def test_conditions_are_those_of_sql(
    make_source: MakeSource, target: str, condition: str, chosen: set[int]
) -> None:
    source = make_source("sqlite", script(books=10))
    source.run("UPDATE book SET title = NULL WHERE id = 9")
    folder = source.folder(PATTERNS, target)
    load(folder, target, where={"book": condition})
    assert books(folder, target) == chosen


@pytest.mark.parametrize(
    ("table", "condition", "said"),
    [
        ("book", "price > (SELECT 1)", "cannot be answered from a row"),
        ("book", "pages > 1", "has no column pages"),
        ("magazine", "id > 1", "is not a table of the source"),
        ("book", "price >", "cannot be parsed"),
    ],
)
def test_a_condition_that_a_row_cannot_answer_is_refused(
    make_source: MakeSource, target: str, table: str, condition: str, said: str
) -> None:
    folder = make_source("sqlite", script()).folder(PATTERNS, target)
    with pytest.raises(PartitaError, match=said):
        load(folder, target, where={table: condition})


def test_files_are_imported_and_followed_as_if_they_had_been_loaded(
    make_source: MakeSource, tmp_path: Path
) -> None:
    source = make_source("mysql", script())
    settings = tmp_path / "partita.toml"
    settings.write_text(f'[[buckets]]\nname = "files"\nfolder = "{tmp_path}/files"\n')
    server = Server("serve", "--in-memory", "--port", "0", "--config", settings)
    try:
        folder = source.folder(PATTERNS, server.url)
        for table in read_design(folder).tables:
            client_of(server.url).delete_table(TableName=table.name)
        loaded = load(folder, server.url, is_followed=True, files=str(tmp_path / "files"))
        assert loaded.files and sum(one.imported for one in loaded.tables) == 50
        for request in sorted((tmp_path / "files").glob("*/import-table.json")):
            imported(client_of(server.url), json.loads(request.read_text()))
        assert books(folder, server.url) == {*range(40)}
        source.run("UPDATE author SET name = 'Renamed' WHERE id = 3; DELETE FROM book WHERE id = 7")
        follow(folder, server.url, is_once=True)
        assert_same(verify(folder, server.url))
    finally:
        server.terminate()


def imported(client: Any, request: dict[str, Any]) -> None:
    arn = client.import_table(**request)["ImportTableDescription"]["ImportArn"]
    end = time.monotonic() + 60
    while True:
        found = client.describe_import(ImportArn=arn)["ImportTableDescription"]
        if found["ImportStatus"] == "COMPLETED":
            assert found["ErrorCount"] == 0
            return
        assert found["ImportStatus"] == "IN_PROGRESS" and time.monotonic() < end, found
        time.sleep(0.1)


def test_rejected_rows_are_replayed_when_they_have_been_corrected(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("sqlite", script())
    folder = source.folder({"log in": "SELECT id FROM author WHERE email = ?"}, target)
    source.run("INSERT INTO author VALUES (70, 'a70@x', hex(zeroblob(250000)))")
    loaded = load(folder, target)
    assert loaded.failed == 1
    line = json.loads((folder.path / loaded.rejects).read_text())
    assert (line["table"], line["row"]["id"]) == ("author", {"N": "70"})
    assert "more than an item may have" in line["reason"] and "--replay" in line["replay"]
    assert load(folder, target, is_replaying=True).failed == 1
    source.run("UPDATE author SET name = 'right' WHERE id = 70")
    again = load(folder, target, is_replaying=True)
    assert (again.failed, again.rejects) == (0, "")
    author = next(one for one in again.tables if one.table == "author")
    assert (author.rows, author.imported, author.failed) == (11, 11, 0)
    assert "right" in {item.get("name", {}).get("S") for item in live(folder, target)}
    assert_same(verify(folder, target))


def test_a_replayed_row_does_not_take_the_item_of_another(
    make_source: MakeSource, target: str
) -> None:
    # The design considers these letters equal, but SQLite's primary key does not.
    source = make_source("sqlite", "CREATE TABLE tag (name TEXT PRIMARY KEY, n INT);"
                         "INSERT INTO tag VALUES ('a', 1);")  # fmt: skip
    folder = source.folder({"tag": "SELECT * FROM tag WHERE name = ?"}, target)
    model = folder.path / "model.toml"
    model.write_text(model.read_text().replace("{name}", "{name:nocase}"))
    source.run("INSERT INTO tag VALUES ('A', 2)")
    if "{name:nocase}" not in model.read_text():
        pytest.skip("the design has no template for this key")
    loaded = load(folder, target)
    assert (loaded.failed, len(live(folder, target))) == (1, 1)
    before = items_of(folder, target)
    assert load(folder, target, is_replaying=True).failed == 1
    assert items_of(folder, target) == before


@pytest.mark.parametrize("kind", KINDS)
def test_following_verifies_meanwhile_and_finds_what_was_spoiled(
    make_source: MakeSource, target: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partita_migrate.moving.verifying.continuous_verification.EVERY_SECONDS", 0)
    source = make_source(kind, script())
    folder = moved(source, target)
    table = read_design(folder).tables[0]
    with open_move(folder, target, region="us-east-1") as move:
        follower = Follower(move)
        continuous = follower.continuous = ContinuousVerification(move)

        def rounds(count: int) -> None:
            """Follows changes and compares until both sides were compared so many times."""
            until = continuous.rounds + count
            while continuous.rounds < until:
                number = continuous.rows
                source.run(f"UPDATE book SET title = 'T{number}' WHERE id = {number % 40};"
                           f"DELETE FROM book WHERE id = {number % 40 + 1}")  # fmt: skip
                follower.run(follower.log_end())

        rounds(3)
        assert (continuous.differences, continuous.different) == ([], 0)
        assert continuous.rows > 80 and continuous.items > 50
        assert 0 < (move.state.fact(VERIFIED, int) or 0) <= move.position
        spoiled = next(item for item in live(folder, target) if "email" in item)
        client_of(target).put_item(TableName=table.name, Item={**spoiled, "name": {"S": "bad"}})
        rounds(2)
        assert "is not what its row makes" in continuous.differences[0]


def test_an_interrupt_ends_following_with_its_report(make_source: MakeSource, target: str) -> None:
    source = make_source("mysql", script())
    folder = moved(source, target)
    source.run("UPDATE author SET name = 'Seen' WHERE id = 1")
    process = start("follow", folder.path, "--endpoint", target, "--json")
    wait_for_name("Seen", process, folder, target)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert (json.loads(said)["changes"], json.loads(said)["lag_bytes"]) == (1, 0)


def test_large_tables_are_moved_and_verified_by_several_processes(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("loading.lane_reader.SPLIT_ROWS_MIN", "loading.item_writer.PARALLEL_ROWS_MIN",
                   "verifying.verify.PARALLEL_ROWS_MIN"):  # fmt: skip
        monkeypatch.setattr(f"partita_migrate.moving.{module}", 100)
    monkeypatch.setattr("partita_migrate.moving.loading.item_writer.CHUNK_ROWS", 60)
    source = make_source("postgresql", script(books=500))
    folder = moved(source, target)
    assert books(folder, target) == {*range(500)}
    source.run("DELETE FROM book WHERE id = 450")
    found = verify(folder, target)
    assert (found.rows, found.tombstones) == (509, 1)
    assert_same(found)


def test_a_source_without_a_log_is_loaded_once_after_it_was_refused(
    mariadb: DatabaseServer, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = Sql("mysql", tmp_path, mariadb, script(books=3)).folder(PATTERNS, target)
    for _ in range(2):
        with pytest.raises(PartitaError, match="load once with --no-follow"):
            load(folder, target)
    load(folder, target, is_followed=False)
    assert books(folder, target) == {0, 1, 2}
    # A load goes on with the options that it was begun with.
    assert not load(folder, target, is_followed=True).is_followed

"""The whole life of a move: there, back and there again, and nothing is lost on either side."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from partita.errors import PartitaError
from partita_migrate.model.model_files import read_design
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.move import open_move
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.finish import finish
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.target_access.item_positions import DELETED, POSITION
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.moving.way_back.follow_back import PLACES
from partita_migrate.moving.way_back.table_streams import StreamCheckpoint
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import Sql, script

from .conftest import KINDS, MakeSource
from .test_move import assert_same, items_of, live, moved


class Application:
    """Writes at the target, as an application does."""

    def __init__(self, folder: Folder, endpoint: str) -> None:
        self.folder = folder
        self.endpoint = endpoint
        (self.table,) = read_design(folder).tables
        self.client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1",
                                   aws_access_key_id="x", aws_secret_access_key="x")  # fmt: skip

    def destinations(self) -> list[str]:
        """Returns the statuses of the Kinesis streams that receive a table's changes."""
        found = self.client.describe_kinesis_streaming_destination(TableName=self.table.name)
        return [one["DestinationStatus"] for one in found["KinesisDataStreamDestinations"]]

    def key(self, item: dict[str, Any]) -> dict[str, Any]:
        return {key.name: item[key.name] for key in self.table.keys}

    def find(self, entity: str, number: int) -> dict[str, Any]:
        (found,) = [
            item
            for item in live(self.folder, self.endpoint)
            if {"S": entity} in item.values() and item.get("id") == {"N": str(number)}
        ]
        return found

    def put(self, item: dict[str, Any]) -> None:
        plain = {name: value for name, value in item.items() if name != POSITION}
        self.client.put_item(TableName=self.table.name, Item=plain)

    def set(self, item: dict[str, Any], name: str, value: dict[str, Any]) -> None:
        self.client.update_item(
            TableName=self.table.name, Key=self.key(item), UpdateExpression="SET #n = :v",
            ExpressionAttributeNames={"#n": name}, ExpressionAttributeValues={":v": value},
        )  # fmt: skip

    def delete(self, item: dict[str, Any]) -> None:
        self.client.delete_item(TableName=self.table.name, Key=self.key(item))

    def copy(self, item: dict[str, Any], old: int, new: int) -> dict[str, Any]:
        """Returns the item with another number, in its keys too."""

        def changed(value: dict[str, Any]) -> dict[str, Any]:
            ((kind, text),) = value.items()
            return {kind: str(text).replace(f"#{old}", f"#{new}")}

        keys = {key.name: changed(item[key.name]) for key in self.table.keys}
        return {**item, **keys, "id": {"N": str(new)}}


def ready(make_source: MakeSource, target: str, kind: str) -> tuple[Sql, Folder, Application]:
    source = make_source(kind, script())
    folder = moved(source, target)
    assert_same(verify(folder, target))
    return source, folder, Application(folder, target)


def connected(source: Sql) -> Any:
    """Opens a session that commits each statement."""
    if source.server is None:
        return sqlite3.connect(source.file, timeout=30, isolation_level=None)
    return source.server.connect(source.database)


def rows_of(source: Sql, statement: str) -> list[tuple[Any, ...]]:
    connection = connected(source)
    cursor = connection.cursor()
    cursor.execute(statement)
    found = [tuple(row) for row in cursor.fetchall()]
    connection.close()
    return found


def slots_of(source: Sql) -> list[tuple[Any, ...]]:
    """Returns the replication slots of a PostgreSQL server."""
    if source.kind != "postgresql":
        return []
    mine = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
    return rows_of(source, mine)


def forget_shards(folder: Folder, target: str) -> None:
    """Acts as if a day had gone by: the streams no longer have the records that were read."""
    with open_move(folder, target, region="us-east-1") as move, move.state.transaction():
        known = move.state.fact(PLACES, dict[str, StreamCheckpoint]) or {}
        old = {name: StreamCheckpoint(one.arn, {"shardId-1": "1"}) for name, one in known.items()}
        move.state.set_fact(PLACES, old)


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "postgresql" else pytest.param(kind, marks=pytest.mark.soak)
        for kind in KINDS
    ],
)
def test_forth_and_back_and_forth_again(make_source: MakeSource, target: str, kind: str) -> None:
    source, folder, app = ready(make_source, target, kind)
    source.run("UPDATE author SET name = 'Last' WHERE id = 1")
    done = cutover(folder, target)
    assert done.is_switched
    with pytest.raises(Exception, match="this database was moved"):
        source.run("UPDATE author SET name = 'Stray' WHERE id = 2")
    with pytest.raises(Exception, match="this database was moved"):
        source.run("DELETE FROM book WHERE id = 2")

    app.set(app.find("author", 1), "name", {"S": "Written at the target"})
    book = app.find("book", 3)
    app.put({**book, "title": {"S": "Put"}, "price": {"N": "99.25"}})
    app.delete(app.find("book", 4))
    app.put(app.copy(book, 3, 300))
    follow(folder, target, is_once=True)
    assert rows_of(source, "SELECT name FROM author WHERE id = 1") == [("Written at the target",)]

    app.set(app.find("book", 300), "title", {"S": "Later"})
    back = rollback(folder, target)
    assert back.is_switched
    found = rows_of(source, "SELECT id, title FROM book WHERE id IN (3, 4, 300) ORDER BY id")
    assert found == [(3, "Put"), (300, "Later")]
    assert str(rows_of(source, "SELECT price FROM book WHERE id = 3")[0][0]) == "99.25"
    with pytest.raises(ClientError, match="AccessDenied"):
        app.set(app.find("book", 5), "title", {"S": "Stray"})
    assert_same(verify(folder, target))

    source.run("UPDATE book SET title = 'In the source again' WHERE id = 300")
    source.run("DELETE FROM book WHERE id = 3")
    assert_same(verify(folder, target))
    forget_shards(folder, target)
    assert cutover(folder, target).is_switched
    assert app.find("book", 300)["title"] == {"S": "In the source again"}
    app.set(app.find("book", 300), "price", {"N": "7.5"})
    ended = finish(folder, target)
    assert (ended.different, ended.obstacles) == (0, [])
    assert not [item for item in items_of(folder, target) if DELETED in item]
    ((price,),) = rows_of(source, "SELECT price FROM book WHERE id = 300")
    assert float(price) == 7.5
    source.run("UPDATE author SET name = 'free' WHERE id = 1")
    assert slots_of(source) == []
    with pytest.raises(PartitaError, match="finished"):
        follow(folder, target, is_once=True)


@pytest.mark.soak
def test_changes_come_back_through_kinesis_and_too_late_is_said(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder, app = ready(make_source, target, "sqlite")
    kinesis = boto3.client("kinesis", endpoint_url=target, region_name="us-east-1",
                           aws_access_key_id="x", aws_secret_access_key="x")  # fmt: skip
    with pytest.raises(PartitaError, match="There is no Kinesis stream nowhere"):
        cutover(folder, target, kinesis="nowhere")
    name = f"way-back-{source.database}"
    kinesis.create_stream(StreamName=name, ShardCount=2)
    kinesis.get_waiter("stream_exists").wait(StreamName=name)
    kinesis.increase_stream_retention_period(StreamName=name, RetentionPeriodHours=168)
    assert cutover(folder, target, kinesis=name).is_switched
    assert app.destinations() == ["ACTIVE"]
    with open_move(folder, target, region="us-east-1") as move:
        places = move.state.fact(PLACES, dict[str, StreamCheckpoint]) or {}
    assert [":kinesis:" in one.arn for one in places.values()] == [True]
    app.set(app.find("author", 1), "name", {"S": "One"})
    app.set(app.find("author", 1), "name", {"S": "Two"})
    app.delete(app.find("book", 4))
    app.put(app.copy(app.find("book", 3), 3, 300))
    follow(folder, target, is_once=True)
    assert rows_of(source, "SELECT name FROM author WHERE id = 1") == [("Two",)]
    assert rows_of(source, "SELECT id FROM book WHERE id IN (4, 300)") == [(300,)]
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 168 * 3600)
    with pytest.raises(
        PartitaError, match="keeps records for 168 hours and was last read 168 hours ago"
    ):
        rollback(folder, target)
    monkeypatch.undo()
    app.set(app.find("book", 300), "title", {"S": "Later"})
    assert rollback(folder, target).is_switched
    assert rows_of(source, "SELECT title FROM book WHERE id = 300") == [("Later",)]
    assert_same(verify(folder, target))
    assert cutover(folder, target, kinesis=name).is_switched
    assert finish(folder, target).different == 0
    assert app.destinations()[0] in ("DISABLING", "DISABLED")


TRIGGERS = {
    "mysql": "CREATE TRIGGER priced AFTER UPDATE ON book FOR EACH ROW"
    " UPDATE author SET name = CONCAT('Sold for ', NEW.price) WHERE id = NEW.author_id",
    "postgresql": "CREATE FUNCTION price() RETURNS trigger AS $$ BEGIN UPDATE author"
    " SET name = concat('Sold for ', NEW.price) WHERE id = NEW.author_id; RETURN NULL; END $$"
    " LANGUAGE plpgsql; CREATE TRIGGER priced AFTER UPDATE ON book FOR EACH ROW"
    " EXECUTE FUNCTION price()",
}


@pytest.mark.soak
@pytest.mark.parametrize("kind", TRIGGERS)
def test_what_a_trigger_did_on_the_way_back_is_found_and_repaired(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, f"{script()}\n{TRIGGERS[kind]}")
    folder = moved(source, target)
    assert_same(verify(folder, target))
    assert cutover(folder, target).is_switched
    app = Application(folder, target)
    app.set(app.find("book", 3), "price", {"N": "77"})
    assert rollback(folder, target).is_switched
    found = verify(folder, target)
    assert [(one.side, one.table, one.key) for one in found.differences] == [("row", "author", "3")]
    assert verify(folder, target, is_repairing=True).is_right
    assert_same(verify(folder, target))
    assert app.find("author", 3)["name"] == {"S": "Sold for 77.00"}
    assert cutover(folder, target).is_switched

"""Each kind of damage to a change log, done by hand, is found by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from partita import testing
from partita.database.at_rest import change_log_check as check_changes
from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check
from partita.database.logs.change_log import change_log_layout
from partita.database.logs.change_log.change_streams import ChangeStream, all_streams
from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.engine import Changes, Snapshot
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import decode_table

Damage = Callable[[Snapshot, ChangeStream], Changes]
NEW_AND_OLD = "NEW_AND_OLD_IMAGES"


@pytest.fixture
def engine() -> Iterator[BranchEngine]:
    """A table with a log of seven changes in two generations of shards, and a trigger's mark."""
    with testing.database() as database:
        client = database.client()
        client.create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": NEW_AND_OLD},
        )

        def put(key: str, number: int) -> None:
            item = {"pk": {"S": key}, "n": {"N": str(number)}}
            client.put_item(TableName="orders", Item=item)

        put("a", 1)
        put("b", 1)
        put("a", 2)
        database.clock.advance(hours=5)
        database.settle()
        put("a", 3)
        client.delete_item(TableName="orders", Key={"pk": {"S": "b"}})
        put("b", 2)
        put("c", 1)
        engine: BranchEngine = database._engine
        (stream,) = all_streams(engine.snapshot())
        # Of a trigger of an earlier release.
        mark = change_log_layout.checkpoints_prefix(stream.number, 1) + b"trigger"
        engine.commit({mark: change_log_layout.pack_sequence(2)})
        engine.refresh()
        yield engine


@pytest.fixture
def after(engine: BranchEngine) -> Callable[[Damage], list[str]]:
    """Returns the findings after a damage, as text."""

    def found(damage: Damage) -> list[str]:
        (stream,) = all_streams(engine.snapshot())
        engine.commit(damage(engine.snapshot(), stream))
        engine.refresh()
        return findings(engine)

    return found


After = Callable[[Damage], list[str]]


def findings(engine: BranchEngine) -> list[str]:
    return [finding.what for finding in check(CheckedFolder(engine.snapshot()))]


def changes(snapshot: Snapshot, stream: ChangeStream) -> list[tuple[bytes, bytes]]:
    pairs = [
        pair
        for shard in stream.shards
        for pair in snapshot.range(*change_log_layout.change_range(stream.number, shard.number, 0))
    ]
    return sorted(pairs, key=lambda pair: change_log_layout.change_sequence(pair[0]))


def saved(stream: ChangeStream, **members: Any) -> Changes:
    key = change_log_layout.stream_key(stream.table_name, stream.label)
    return {key: msgspec.json.encode(msgspec.structs.replace(stream, **members))}


def test_what_the_database_wrote_is_clean(engine: BranchEngine) -> None:
    folder = CheckedFolder(engine.snapshot())
    assert list(check(folder)) == []
    assert folder.changes == 7


def test_a_long_log_is_replayed_in_parts(
    engine: BranchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_changes, "REPLAYED_AT_ONCE", 2)
    assert findings(engine) == []


@pytest.mark.parametrize("number", range(7))
def test_a_missing_change(after: After, number: int) -> None:
    found = after(lambda snapshot, stream: {changes(snapshot, stream)[number][0]: None})
    assert found, "nothing was found"
    assert set(found) & {"changes are missing", "its last sequence number is wrong"}


def test_a_change_in_another_shard(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        key, value = changes(snapshot, stream)[0]
        sequence = change_log_layout.change_sequence(key)
        shard = int.from_bytes(key[5:9], "big") % 4 + 1
        return {key: None, change_log_layout.change_key(stream.number, shard, sequence): value}

    assert "it is in another item's shard" in after(damage)


def test_a_change_in_a_shard_that_was_not_open(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        key, value = changes(snapshot, stream)[0]
        sequence = change_log_layout.change_sequence(key)
        shard = int.from_bytes(key[5:9], "big") + 4
        return {key: None, change_log_layout.change_key(stream.number, shard, sequence): value}

    assert "it is in a shard that was not open" in after(damage)


def test_a_change_that_cannot_be_read(after: After) -> None:
    found = after(lambda snapshot, stream: {changes(snapshot, stream)[2][0]: b"\x01"})
    assert "a change cannot be read" in found


def test_an_event_that_is_none(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        key, value = changes(snapshot, stream)[0]
        return {key: b"\x09" + value[1:]}

    assert "its event is unknown" in after(damage)


def test_an_insert_where_there_was_an_item(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        key, value = changes(snapshot, stream)[2]
        return {key: b"\x01" + value[1:]}

    found = after(damage)
    assert "there was an item before it" in found
    assert "its images do not match the view type" in found


def test_images_that_do_not_fit_together(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        key, value = changes(snapshot, stream)[2]
        return {key: value.replace(b'"1"', b'"9"')}

    assert after(damage) == ["its old image is not the new image before it"]


def test_an_item_that_is_not_what_the_log_says(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        table = decode_table(b"", snapshot.get(table_layout.catalog_key("orders")) or b"")
        key = table_layout.item_key(table, {"pk": {"S": "c"}})
        value = snapshot.get(key) or b""
        return {key: value.replace(b'"1"', b'"9"')}

    assert after(damage) == ["it differs from the change log"]


def test_an_item_without_a_change(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        table = decode_table(b"", snapshot.get(table_layout.catalog_key("orders")) or b"")
        old = table_layout.item_key(table, {"pk": {"S": "c"}})
        new = table_layout.item_key(table, {"pk": {"S": "d"}})
        return {new: (snapshot.get(old) or b"").replace(b'"c"', b'"d"'), old: None}

    assert "it is missing, but not according to the change log" in after(damage)


def test_a_wrong_last_sequence_number(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        return {change_log_layout.sequence_key(stream.number): change_log_layout.pack_sequence(99)}

    assert after(damage) == ["its last sequence number is wrong"]


def test_a_stream_that_cannot_be_read(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        return {change_log_layout.stream_key(stream.table_name, stream.label): b"{"}

    found = after(damage)
    assert "a stream cannot be read" in found
    assert "its stream is missing" in found


def test_a_stream_under_another_name(after: After) -> None:
    assert "it is stored under another name" in after(
        lambda snapshot, stream: {
            change_log_layout.stream_key("other", stream.label): msgspec.json.encode(stream),
            change_log_layout.stream_key(stream.table_name, stream.label): None,
        }
    )


def test_a_stream_with_the_number_of_a_table(after: After) -> None:
    assert "its number is wrong" in after(lambda snapshot, stream: saved(stream, number=1))


def test_a_stream_that_no_table_knows(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        return {table_layout.catalog_key("orders"): None}

    assert "it is open, but no table writes to it" in after(damage)


def test_a_table_with_another_idea_of_its_stream(after: After) -> None:
    assert "its stream does not match" in after(
        lambda snapshot, stream: saved(stream, view_type="KEYS_ONLY")
    )


def test_changes_of_a_shard_that_is_not_there(after: After) -> None:
    def damage(snapshot: Snapshot, stream: ChangeStream) -> Changes:
        return {change_log_layout.change_key(stream.number, 99, 1): b""}

    assert after(damage) == ["they belong to no table or index"]

"""A healthy database has no findings; each kind of damage, done by hand, is found by its name."""

from __future__ import annotations

import shutil
import struct
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec
import pytest

from partita.assembly.service_registry import WRITES
from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding
from partita.database.at_rest.invariants import check
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.item.key_encoding import KeyAttribute
from partita.database.operations.operation_context import PermittedRequest
from partita.database.storage.data_folder.embedded_engine import open_for_reading
from partita.database.storage.data_folder.lmdb_tree import LmdbEngine
from partita.database.storage.engine import Changes, Snapshot
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import decode_table
from partita.database.tables.definition.table_schema import CREATING, DELETING, Table
from partita.database.tables.index_entries import entry_of
from partita.database.tables.stored_item import pack, unpack_sizes
from partita.errors import StorageError

WAIT_SECONDS = 60.0
NOW = 1_800_000_000
KEYS = {"pk": "S", "sk": "N", "g": "S", "l": "N"}
LONG = "long " * 200

Damage = Callable[[Snapshot], Changes]


def key_schema(*names: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def index(name: str, *keys: str, **projection: Any) -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": key_schema(*keys), "Projection": projection}


SCORES = {
    "TableName": "scores",
    "KeySchema": key_schema("pk", "sk"),
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": kind} for name, kind in KEYS.items()
    ],
    "LocalSecondaryIndexes": [index("local", "pk", "l", ProjectionType="KEYS_ONLY")],
    "GlobalSecondaryIndexes": [
        index("all", "g", "sk", ProjectionType="ALL"),
        index("some", "g", ProjectionType="INCLUDE", NonKeyAttributes=["text"]),
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
PLAIN = {
    "TableName": "plain",
    "KeySchema": key_schema("pk"),
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def item(pk: str, sk: int, **attributes: Any) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"N": str(sk)}, **attributes}


ITEMS = [
    item("a", 1, g={"S": "x"}, l={"N": "5"}, text={"S": "one"}, ttl={"N": str(NOW + 1000)}),
    item("a", 2, g={"S": "x"}, l={"N": "4"}, list={"L": [{"NULL": True}, {"SS": ["p", "q"]}]}),
    item("a", 3, l={"N": "4"}, binary={"B": "AAEC"}),
    item("b", 1, g={"S": LONG}, ttl={"S": "never"}),
    item("c" * 1000, 1, g={"S": LONG}, l={"N": "1"}, text={"S": LONG}),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the database leaves it."""
    folder = tmp_path_factory.mktemp("prepared")
    soon: deque[Callable[[], None]] = deque()
    from_thread: SimpleQueue[Callable[[], None]] = SimpleQueue()
    database = EmbeddedDatabase(
        LmdbEngine(folder, durable=False),
        call_soon=soon.append,
        call_from_thread=from_thread.put,
        call_later=lambda seconds, function: None,
        clock=lambda: NOW,
    )

    def write(operation: str, **request: Any) -> None:
        answers: list[Any] = []
        database.write(WRITES[operation], PermittedRequest(request), answers.append)
        while not answers or soon:
            if soon:
                soon.popleft()()
            else:
                from_thread.get(timeout=WAIT_SECONDS)()
        assert isinstance(answers[0], bytes), answers

    write("CreateTable", **SCORES)
    write("CreateTable", **PLAIN)
    write(
        "UpdateTimeToLive",
        TableName="scores",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"},
    )
    for one in ITEMS:
        write("PutItem", TableName="scores", Item=one)
    write("PutItem", TableName="plain", Item={"pk": {"S": "p"}, "n": {"N": "1"}})
    write("PutItem", TableName="plain", Item={"pk": {"S": "q"}})
    write(
        "TransactWriteItems",
        TransactItems=[{"Put": {"TableName": "plain", "Item": {"pk": {"S": "r"}}}}],
        ClientRequestToken="token",
    )
    database.close()
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "copy"))


def findings(folder: Path) -> list[CheckFinding]:
    with open_for_reading(folder) as snapshot:
        return list(check(CheckedFolder(snapshot)))


@pytest.fixture
def after(folder: Path) -> Callable[[Damage], list[CheckFinding]]:
    """Returns the findings after a damage."""

    def found(damage: Damage) -> list[CheckFinding]:
        engine = LmdbEngine(folder, durable=False)
        engine.commit(damage(engine.snapshot()))
        engine.close()
        return findings(folder)

    return found


After = Callable[[Damage], list[CheckFinding]]


def table(snapshot: Snapshot, name: str = "scores") -> Table:
    key = table_layout.catalog_key(name)
    return decode_table(key, snapshot.get(key) or b"")


def saved(table: Table) -> dict[bytes, bytes | None]:
    return {table_layout.catalog_key(table.name): msgspec.json.encode(table)}


def key_of(snapshot: Snapshot, one: dict[str, Any], name: str = "scores") -> bytes:
    return table_layout.item_key(table(snapshot, name), one)


def entry_key(snapshot: Snapshot, one: dict[str, Any], name: str) -> bytes:
    scores = table(snapshot)
    (asked,) = (index for index in scores.indexes if index.name == name)
    entry = entry_of(scores, asked, pack(one), table_layout.place_of(key_of(snapshot, one)))
    assert entry is not None
    return entry.key


def only(found: list[CheckFinding]) -> CheckFinding:
    assert len(found) == 1, [str(one) for one in found]
    return found[0]


def whats(found: list[CheckFinding]) -> list[str]:
    return [one.what for one in found]


def counted(snapshot: Snapshot, index_number: int, items: int, size: int) -> Changes:
    """Counts changed along with a damage, so that only the damage itself is found."""
    key = table_layout.statistics_key(table(snapshot).number, index_number)
    count, size_bytes = struct.unpack(">QQ", snapshot.get(key) or b"")
    return {key: struct.pack(">QQ", count + items, size_bytes + size)}


def test_what_the_database_wrote_is_clean(folder: Path) -> None:
    with open_for_reading(folder) as snapshot:
        looked_at = CheckedFolder(snapshot)
        assert list(check(looked_at)) == []
    # Local: all but one item; all: all but one; some: the same.
    assert (len(looked_at.tables), looked_at.items, looked_at.entries) == (2, 8, 4 + 4 + 4)


def test_checking_changes_nothing(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    findings(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_finding_reads_as_a_sentence() -> None:
    finding = CheckFinding("table t, item k", "its stored sizes are wrong", "(1, 2)", "(1, 3)")
    assert str(finding) == (
        "table t, item k: its stored sizes are wrong (expected (1, 2), found (1, 3))"
    )


def test_a_long_value_is_cut(after: After) -> None:
    long = item("a", 1) | {"long": {"S": "x" * 10_000}}

    def damage(snapshot: Snapshot) -> Changes:
        key = entry_key(snapshot, ITEMS[0], "all")
        return {key: pack(long).value(())}

    assert all(len(str(finding)) < 1500 for finding in after(damage))


# The folder


def test_another_format_is_refused(after: After) -> None:
    with pytest.raises(StorageError, match="has format 3, but this Partita reads format 2"):
        after(lambda snapshot: {table_layout.FORMAT_KEY: b"3"})


def test_data_without_a_format_is_refused(after: After) -> None:
    with pytest.raises(StorageError, match="data that Partita did not write"):
        after(lambda snapshot: {table_layout.FORMAT_KEY: None})


def test_a_catalog_entry_that_is_no_table(after: After) -> None:
    found = only(
        after(lambda snapshot: {table_layout.catalog_key("scores"): b'{"name": "scores"}'})
    )
    assert (found.where, found.what) == ("table scores", "the catalog entry cannot be read")


def test_a_table_under_another_name(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        plain = msgspec.json.encode(table(snapshot, "plain"))
        return {table_layout.catalog_key("plain"): None, table_layout.catalog_key("other"): plain}

    assert only(after(damage)).what == "the catalog has it under another name"


def test_a_table_number_that_was_never_given(after: After) -> None:
    found = only(after(lambda snapshot: {table_layout.NUMBERS_KEY: (1).to_bytes(4, "big")}))
    assert found == CheckFinding("table plain", "its number was never assigned", "1 to 1", "2")


def test_two_tables_with_one_number(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        return saved(msgspec.structs.replace(table(snapshot, "plain"), name="zwilling"))

    assert only(after(damage)).what == "it has the number 2 of table plain"


def test_an_index_number_that_was_never_given(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        return saved(msgspec.structs.replace(table(snapshot), next_index_number=3))

    assert only(after(damage)).what == "its indexes have wrong numbers"


@pytest.mark.parametrize("prefix", [b"", b"\x10\x00", b"\x01scores", b"\x10\x00\x00\x00\x09\x00"])
def test_a_leftover_that_is_no_prefix_of_data(after: After, prefix: bytes) -> None:
    found = only(after(lambda snapshot: {table_layout.leftover_key(prefix): b""}))
    assert found.what == "it is not a prefix of a table's data"


def test_a_leftover_that_would_remove_living_data(after: After) -> None:
    found = only(
        after(lambda snapshot: {table_layout.leftover_key(table_layout.items_prefix(1)): b""})
    )
    assert found.what == "it would remove data that is in use"


def test_leftovers_of_what_is_gone_are_no_finding(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        prefixes = [*table_layout.table_prefixes(9), *table_layout.index_prefixes(1, 9)]
        prefixes.append(table_layout.EXPIRIES + struct.pack(">II", 1, 0))
        return {
            key: b"" for prefix in prefixes for key in (table_layout.leftover_key(prefix), prefix)
        }

    assert after(damage) == []


@pytest.mark.parametrize(
    "key",
    [
        table_layout.items_prefix(9) + b"item",
        table_layout.entries_prefix(1, 9) + b"entry",
        table_layout.statistics_key(1, 9),
        table_layout.collections_prefix(2) + b"p",
        table_layout.EXPIRIES + struct.pack(">IIQ", 1, 0, NOW) + b"place",
        b"\x00other",
        b"\x20",
        b"\xff\xff",
    ],
)
def test_a_key_that_belongs_to_nothing(after: After, key: bytes) -> None:
    found = only(after(lambda snapshot: {key: b""}))
    assert found.what == "they belong to no table or index"


def test_keys_of_one_unknown_table_are_one_finding(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        return {table_layout.items_prefix(9) + bytes([0, 0, number]): b"" for number in range(50)}

    assert only(after(damage)).found == "50"


def test_a_client_token_without_its_time(after: After) -> None:
    found = only(after(lambda snapshot: {table_layout.token_time_key(NOW, "token"): None}))
    assert (found.where, found.what) == ("client token token", "it has no time entry")


def test_a_client_token_that_cannot_be_read(after: After) -> None:
    found = only(after(lambda snapshot: {table_layout.token_key("token"): b"\xff"}))
    assert (found.where, found.what) == ("client token token", "it cannot be read")


def test_a_time_without_its_client_token(after: After) -> None:
    found = only(after(lambda snapshot: {table_layout.token_key("token"): None}))
    assert found.what == "its token does not exist"


def test_a_time_at_which_the_client_token_was_not_used(after: After) -> None:
    found = only(after(lambda snapshot: {table_layout.token_time_key(5, "token"): b"token"}))
    assert found.what == "the token was used at another time"


# Items


def test_an_item_under_the_wrong_key(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        right = key_of(snapshot, {"pk": {"S": "p"}}, "plain")
        return {right: None, right[:-2] + b"x\x00\x00": snapshot.get(right)}

    found = only(after(damage))
    assert found.where == 'table plain, item {"pk":{"S":"p"}}'
    assert found.what == "it is stored under the wrong key"


@pytest.mark.parametrize("which", [0, 4])
@pytest.mark.parametrize("wrong", [(1, 0), (0, 1)])
def test_an_item_with_a_wrong_size(after: After, which: int, wrong: tuple[int, int]) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        key = key_of(snapshot, ITEMS[which])
        value = snapshot.get(key) or b""
        sizes = [size + more for size, more in zip(unpack_sizes(value), wrong, strict=True)]
        return {key: struct.pack(">II", *sizes) + value[8:]}

    assert only(after(damage)).what == "its stored sizes are wrong"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b'{"pk": {"S": 5}}',
        b'{"pk": {"X": "p"}}',
        b'{"pk": {}}',
        b'{"pk": {"S": "p", "N": "1"}}',
        b'{"pk": {"S": "p"}, "n": {"N": "one"}}',
        b'{"pk": {"S": "p"}, "l": ' + b'{"L": [' * 5000 + b"]}" * 5000 + b"}",
    ],
    ids=len,
)
def test_an_item_that_cannot_be_read(after: After, body: bytes) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        return {key_of(snapshot, {"pk": {"S": "p"}}, "plain"): struct.pack(">II", 1, 1) + body}

    assert only(after(damage)).what.startswith("it cannot be read: ")


def test_an_item_of_two_bytes(after: After) -> None:
    found = only(after(lambda snapshot: {key_of(snapshot, {"pk": {"S": "p"}}, "plain"): b"ab"}))
    assert found.what.startswith("it cannot be read: ")


@pytest.mark.parametrize("value", [{"N": "1.0"}, {"NS": ["2", "1"]}, {"SS": ["b", "a"]}])
def test_an_item_that_is_not_in_normal_form(after: After, value: dict[str, Any]) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        one = {"pk": {"S": "p"}, "value": value}
        return {key_of(snapshot, one, "plain"): pack(one).value(())}

    assert only(after(damage)).what == "its values are not in normal form"


@pytest.mark.parametrize("key", [{}, {"pk": {"N": "1"}}, {"pk": {"S": ""}}])
def test_an_item_whose_key_does_not_fit(after: After, key: dict[str, Any]) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        return {key_of(snapshot, {"pk": {"S": "p"}}, "plain"): pack(key).value(())}

    assert only(after(damage)).what.startswith("its key does not fit the table: ")


def test_an_item_that_is_too_large(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        plain = table(snapshot, "plain")
        one = {"pk": {"S": "huge"}, "s": {"S": "x" * 400 * 1024}}
        stored = pack(one)
        statistics = table_layout.statistics_key(plain.number)
        count, size = struct.unpack(">QQ", snapshot.get(statistics) or b"")
        return {
            table_layout.item_key(plain, one): stored.value(()),
            statistics: struct.pack(">QQ", count + 1, size + stored.size),
        }

    assert only(after(damage)).what == "it is too large"


# Index entries


@pytest.mark.parametrize("name", ["all", "some"])
@pytest.mark.parametrize("which", [0, 4])
def test_a_missing_entry(after: After, name: str, which: int) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        key = entry_key(snapshot, ITEMS[which], name)
        size = unpack_sizes(snapshot.get(key) or b"")[0]
        (number,) = (one.number for one in table(snapshot).indexes if one.name == name)
        return {key: None, **counted(snapshot, number, -1, -size)}

    found = only(after(damage))
    assert found.what == "the item has no entry in the index"
    assert found.where.startswith(f"table scores, index {name}, item ")


@pytest.mark.parametrize("name", ["local", "all", "some"])
def test_an_entry_with_other_contents(after: After, name: str) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        key = entry_key(snapshot, ITEMS[0], name)
        value = snapshot.get(key) or b""
        return {key: value.replace(b'"x"', b'"y"') if b'"x"' in value else b"\x00" * 8 + value[8:]}

    found = only(after(damage))
    assert found.what == "the entry does not match the item"
    assert found.expected != found.found


def test_an_entry_that_cannot_be_read(after: After) -> None:
    found = only(after(lambda snapshot: {entry_key(snapshot, ITEMS[0], "all"): b"garbage!{"}))
    assert found.what.startswith("it cannot be read: ")


def test_an_entry_without_an_item(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        one = item("gone", 1, g={"S": "x"})
        value = pack(one).value([KeyAttribute("sk", "N")])
        return {
            entry_key(snapshot, one, "all"): value,
            **counted(snapshot, 2, 1, pack(one).size),
        }

    assert only(after(damage)).what == "the entry has no item"


def test_an_entry_that_its_item_has_elsewhere(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        one = ITEMS[0] | {"g": {"S": "elsewhere"}}
        value = pack(one).value([KeyAttribute("sk", "N")])
        return {
            entry_key(snapshot, one, "all"): value,
            **counted(snapshot, 2, 1, pack(one).size),
        }

    assert only(after(damage)).what == "the item has no such entry"


def with_status(snapshot: Snapshot, name: str, status: str) -> dict[bytes, bytes | None]:
    scores = table(snapshot)
    index = scores.index(name)
    assert index is not None
    return saved(scores.with_index(msgspec.structs.replace(index, status=status)))


def test_an_index_that_is_being_filled_may_lack_entries(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        key = entry_key(snapshot, ITEMS[0], "all")
        size = unpack_sizes(snapshot.get(key) or b"")[0]
        return {
            key: None,
            **counted(snapshot, 2, -1, -size),
            **with_status(snapshot, "all", CREATING),
        }

    assert after(damage) == []


def test_an_index_that_is_being_filled_may_not_be_wrong(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        key = entry_key(snapshot, ITEMS[0], "all")
        value = (snapshot.get(key) or b"").replace(b'"x"', b'"y"')
        return {key: value, **with_status(snapshot, "all", CREATING)}

    assert only(after(damage)).what == "the entry does not match the item"


def test_an_index_that_is_being_deleted_may_be_out_of_date(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        key = entry_key(snapshot, ITEMS[0], "all")
        return {key: None, **with_status(snapshot, "all", DELETING)}

    assert after(damage) == []


# Counts, collections, expiries


@pytest.mark.parametrize("number", [0, 1, 2, 3])
@pytest.mark.parametrize("wrong", [(1, 0), (0, 1)])
def test_wrong_counts(after: After, number: int, wrong: tuple[int, int]) -> None:
    found = only(after(lambda snapshot: counted(snapshot, number, *wrong)))
    assert found.what == "its counts are wrong"
    assert found.expected != found.found


def test_counts_that_cannot_be_read(after: After) -> None:
    found = only(after(lambda snapshot: {table_layout.statistics_key(1): b"short"}))
    assert found.what == "its counts cannot be read"


@pytest.mark.parametrize("size", [None, struct.pack(">Q", 1)])
def test_a_collection_with_a_wrong_size(after: After, size: bytes | None) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        return {table_layout.collection_key(table(snapshot), ITEMS[4]): size}

    found = after(damage)
    assert whats(found) == ["the size of its collection is wrong"]


def test_a_collection_without_items(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        return {table_layout.collection_key(table(snapshot), item("gone", 1)): struct.pack(">Q", 1)}

    assert only(after(damage)).what == "the collection has no items"


def expiry_key(snapshot: Snapshot, one: dict[str, Any], when: int) -> bytes:
    place = table_layout.place_of(key_of(snapshot, one))
    return table_layout.expiry_key(table(snapshot), when, place)


def test_an_expiry_that_is_not_noted(after: After) -> None:
    found = only(after(lambda snapshot: {expiry_key(snapshot, ITEMS[0], NOW + 1000): None}))
    assert (found.what, found.expected) == ("its expiry is missing", str(NOW + 1000))


def test_expiries_that_are_still_being_noted_may_be_missing(after: After) -> None:
    def damage(snapshot: Snapshot) -> Changes:
        scores = msgspec.structs.replace(table(snapshot), ttl_is_indexed=False)
        return {expiry_key(snapshot, ITEMS[0], NOW + 1000): None, **saved(scores)}

    assert after(damage) == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_wrong_expiry(after: After, which: int) -> None:
    found = only(after(lambda snapshot: {expiry_key(snapshot, ITEMS[which], 7): b""}))
    assert found.what == "its expiry entry is wrong"


def test_an_expiry_without_an_item(after: After) -> None:
    found = only(after(lambda snapshot: {expiry_key(snapshot, item("gone", 1), 7): b""}))
    assert found.what == "an expiry entry has no item"


def test_an_item_that_is_gone_is_missed_by_all_that_it_had(after: After) -> None:
    found = after(lambda snapshot: {key_of(snapshot, ITEMS[0]): None})
    assert whats(found) == [
        "its counts are wrong",
        *["the entry has no item"] * 3,
        "the size of its collection is wrong",
        "an expiry entry has no item",
    ]

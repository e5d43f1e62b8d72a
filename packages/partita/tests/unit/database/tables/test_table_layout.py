"""The layout: a key condition is one range of bytes, and parallel scans share the hash space."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.database.item.attribute_values import Item, normalize_value
from partita.database.item.key_encoding import PARTITION_HASH_BYTES, KeyAttribute, KeyRange
from partita.database.storage.engine import prefix_end
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import ALL, Index, Table

PARTITION = KeyAttribute("pk", "S")
COMPARISONS = ("=", "<", "<=", ">", ">=", "BETWEEN", "begins_with", None)

# Few letters, so that values repeat, begin with each other and hold the bytes that are escaped.
strings = st.text(alphabet="a\x00\x01b\uffff\U0001f600", min_size=1, max_size=4)
binaries = st.lists(st.sampled_from([0, 1, 97, 254, 255]), min_size=1, max_size=4).map(bytes)
numbers = st.sampled_from(["0", "1", "-1", "10", "1.5", "-1.5", "100", "0.001", "-100", "99.99"])

VALUES: dict[str, st.SearchStrategy[dict[str, str]]] = {
    "S": strings.map(lambda text: {"S": text}),
    "N": numbers.map(lambda text: {"N": text}),
    "B": binaries.map(lambda content: {"B": b64encode(content).decode()}),
}


def table(sort_type: str | None, *indexes: Index) -> Table:
    return Table(
        name="t",
        number=7,
        table_id="id",
        created_at=0,
        attribute_types={},
        partition=PARTITION,
        sort=KeyAttribute("sk", sort_type) if sort_type else None,
        indexes=indexes,
    )


def index(
    *sort: KeyAttribute, partition: tuple[str, ...] = ("g",), is_local: bool = False
) -> Index:
    return Index(
        name="index",
        number=1,
        is_local=is_local,
        partition=tuple(KeyAttribute(name, "S") for name in partition),
        sort=sort,
        projection_type=ALL,
    )


def ordered(value: dict[str, Any]) -> Any:
    """A value as Python orders it."""
    ((kind, content),) = value.items()
    if kind == "N":
        return Decimal(content)
    return content.encode() if kind == "S" else b64decode(content)


def satisfies(value: dict[str, Any], comparison: str | None, operands: list[Any]) -> bool:
    found, bounds = ordered(value), [ordered(operand) for operand in operands]
    tests: dict[str | None, Callable[[], bool]] = {
        None: lambda: True,
        "=": lambda: bool(found == bounds[0]),
        "<": lambda: bool(found < bounds[0]),
        "<=": lambda: bool(found <= bounds[0]),
        ">": lambda: bool(found > bounds[0]),
        ">=": lambda: bool(found >= bounds[0]),
        "BETWEEN": lambda: bool(bounds[0] <= found <= bounds[1]),
        "begins_with": lambda: bool(found.startswith(bounds[0])),
    }
    return tests[comparison]()


def key_range(
    partition: tuple[Any, ...], equal: tuple[Any, ...], comparison: str | None, operands: list[Any]
) -> KeyRange:
    if comparison == "=":
        return KeyRange(partition, (*equal, operands[0]))
    return KeyRange(partition, equal, comparison, tuple(operands) if comparison else ())


def asked(kind: str, data: st.DataObject) -> tuple[str | None, list[dict[str, str]]]:
    """A comparison that a sort key of this type can have, with its operands."""
    possible = [each for each in COMPARISONS if each != "begins_with" or kind != "N"]
    comparison = data.draw(st.sampled_from(possible))
    count = {None: 0, "BETWEEN": 2}.get(comparison, 1)
    operands = [data.draw(VALUES[kind]) for _ in range(count)]
    if comparison == "BETWEEN":
        operands.sort(key=ordered)
    return comparison, operands


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_key_condition_is_the_range_of_its_items(kind: str, data: st.DataObject) -> None:
    described = table(kind)
    keys = st.fixed_dictionaries({"pk": VALUES["S"], "sk": VALUES[kind]})
    items = data.draw(st.lists(keys, max_size=12))
    partition = data.draw(st.sampled_from(items))["pk"] if items else {"S": "a"}
    comparison, operands = asked(kind, data)
    start, stop = table_layout.table_range(
        described, key_range((partition,), (), comparison, operands)
    )
    for item in items:
        is_inside = start <= table_layout.item_key(described, item) < stop
        matches = item["pk"] == partition and satisfies(item["sk"], comparison, operands)
        assert is_inside == matches


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_items_of_a_partition_lie_in_the_order_of_their_sort_keys(
    kind: str, data: st.DataObject
) -> None:
    described = table(kind)
    values = data.draw(st.lists(VALUES[kind], max_size=12))
    keys = [table_layout.item_key(described, {"pk": {"S": "p"}, "sk": value}) for value in values]
    by_bytes = [
        value for _, value in sorted(zip(keys, values, strict=True), key=lambda each: each[0])
    ]
    assert [ordered(value) for value in by_bytes] == sorted(map(ordered, values))


# Partition keys of any length: as long as they may be, nearly alike, and of the highest bytes.
partition_keys = st.one_of(
    binaries,
    st.builds(
        lambda letter, length, tail: letter * length + tail,
        st.sampled_from([b"a", b"\xff", b"\x00"]),
        st.sampled_from([1, 64, 65, 199, 200, 201, 2040]),
        st.binary(max_size=3),
    ),
)


@given(st.lists(partition_keys, min_size=1, max_size=10, unique=True))
def test_a_partition_holds_its_own_items_only_however_long_its_key(keys: list[bytes]) -> None:
    described = Table(
        name="t",
        number=7,
        table_id="id",
        created_at=0,
        attribute_types={},
        partition=KeyAttribute("pk", "B"),
        sort=KeyAttribute("sk", "N"),
    )
    values = [{"B": b64encode(key).decode()} for key in keys]
    for value in values:
        start, stop = table_layout.table_range(described, KeyRange((value,)))
        for other in values:
            key = table_layout.item_key(described, {"pk": other, "sk": {"N": "-1.5"}})
            assert (start <= key < stop) == (value == other)


@pytest.mark.parametrize("sort_bytes", [1, 100])
def test_the_longest_partition_key_leaves_room_for_sort_keys(sort_bytes: int) -> None:
    # LMDB takes keys of 511 bytes; what is longer costs a read of its whole neighbourhood.
    described = table("S")
    item: Item = {"pk": {"S": "p" * 2048}, "sk": {"S": "s" * sort_bytes}}
    assert len(table_layout.item_key(described, item)) < 400


SORT = (KeyAttribute("a", "S"), KeyAttribute("b", "N"), KeyAttribute("c", "S"))


@pytest.mark.parametrize("is_local", [False, True])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_condition_on_several_sort_attributes_is_one_range_of_an_index(
    is_local: bool, data: st.DataObject
) -> None:
    found = index(*SORT, partition=("g", "h"), is_local=is_local)
    described = table(None, found)
    items = data.draw(
        st.lists(
            st.fixed_dictionaries(
                {"pk": VALUES["S"], "g": VALUES["S"], "h": VALUES["S"]}
                | {name: VALUES[kind] for name, kind in SORT}
            ),
            max_size=10,
        )
    )
    model = data.draw(st.sampled_from(items)) if items else None
    partition = (model["g"], model["h"]) if model else ({"S": "a"}, {"S": "b"})
    depth = data.draw(st.integers(0, 2))
    equal = tuple((model[name] if model else {kind: "1"}) for name, kind in SORT[:depth])
    comparison, operands = asked(SORT[depth].type, data)
    start, stop = table_layout.index_range(
        described, found, key_range(partition, equal, comparison, operands)
    )
    for item in items:
        key = table_layout.entry_key(described, found, item, place(described, item))
        assert key is not None
        matches = (
            (item["g"], item["h"]) == partition
            and all(item[name] == value for (name, _), value in zip(SORT, equal, strict=False))
            and satisfies(item[SORT[depth].name], comparison, operands)
        )
        assert (start <= key < stop) == matches


def place(described: Table, item: Item) -> bytes:
    return table_layout.place_of(table_layout.item_key(described, item))


@given(st.lists(st.tuples(strings, numbers, strings), min_size=2, unique=True, max_size=8))
def test_entries_lie_in_the_order_of_their_sort_attributes_one_after_another(
    rows: list[tuple[str, str, str]],
) -> None:
    found = index(*SORT)
    described = table(None, found)

    def entry(row: tuple[str, str, str]) -> bytes:
        values = {name: {kind: part} for (name, kind), part in zip(SORT, row, strict=True)}
        item: Item = {"pk": {"S": "p"}, "g": {"S": "g"}, **values}
        key = table_layout.entry_key(described, found, item, place(described, item))
        assert key is not None
        return key

    assert sorted(rows, key=entry) == sorted(
        rows, key=lambda row: (row[0].encode(), Decimal(row[1]), row[2].encode())
    )


@given(st.lists(strings, min_size=1, unique=True, max_size=8))
def test_entries_that_share_one_index_key_stay_apart(keys: list[str]) -> None:
    found = index()
    described = table(None, found)
    items: list[Item] = [{"pk": {"S": key}, "g": {"S": "same"}} for key in keys]
    entries = {
        table_layout.entry_key(described, found, each, place(described, each)) for each in items
    }
    assert len(entries) == len(keys)


@pytest.mark.parametrize("missing", ["g", "h", "a", "b", "c"])
def test_an_item_without_one_of_the_keys_has_no_entry(missing: str) -> None:
    found = index(*SORT, partition=("g", "h"))
    described = table(None, found)
    item: Item = {name: {"S": "x"} for name in ("pk", "g", "h", "a", "c")} | {"b": {"N": "1"}}
    assert table_layout.entry_key(described, found, item, b"") is not None
    del item[missing]
    assert table_layout.entry_key(described, found, item, b"") is None


@pytest.mark.parametrize("value", [{"N": "1"}, {"L": []}, {"NULL": True}])
def test_an_item_whose_key_has_another_type_has_no_entry(value: dict[str, Any]) -> None:
    # Possible when an index is added to a table that has items.
    found = index()
    described = table(None, found)
    assert table_layout.entry_key(described, found, {"pk": {"S": "p"}, "g": value}, b"") is None


@pytest.mark.parametrize("total", [1, 2, 3, 4, 7, 64, 4095, 4096, 4097, 100_000, 1_000_000])
def test_segments_partition_the_hash_space(total: int) -> None:
    prefix = table_layout.items_prefix(7)
    segments = range(total) if total < 5000 else [*range(2500), *range(total - 2500, total)]
    ranges = [table_layout.segment_range(prefix, segment, total) for segment in segments]
    assert ranges[0][0] <= prefix + b"\x00" * PARTITION_HASH_BYTES
    assert ranges[-1][1] == prefix_end(prefix)
    for segment, (start, stop) in zip(segments, ranges, strict=True):
        assert start <= stop
        if segment + 1 < total:
            assert table_layout.segment_range(prefix, segment + 1, total)[0] == stop


@given(st.binary(min_size=8, max_size=8), st.integers(1, 5000))
def test_every_partition_lies_in_exactly_one_segment(hash_bytes: bytes, total: int) -> None:
    prefix = table_layout.items_prefix(7)
    key = prefix + hash_bytes + b"key"
    ranges = (table_layout.segment_range(prefix, segment, total) for segment in range(total))
    assert sum(start <= key < stop for start, stop in ranges) == 1


def test_a_segment_is_the_one_of_the_service() -> None:
    # dynalite: with 4096 segments the service returned these keys in these segments.
    described = table(None)
    for key, segment in {"3635": 0, "228": 0, "1668": 1, "3435": 4}.items():
        start, stop = table_layout.segment_range(table_layout.items_prefix(7), segment, 4096)
        assert start <= table_layout.item_key(described, {"pk": {"S": key}}) < stop


def test_global_entries_that_share_a_key_come_in_the_order_of_the_service() -> None:
    # dynalite: recorded orders of items (partition key, sort key) under one index key.
    found = index()
    described = table("S", found)
    for recorded in (
        ["aa", "da", "ba", "ca", "db", "cb"],
        ["bb", "aa", "ce", "ea", "da", "cd"],
    ):
        items: list[Item] = [
            {"pk": {"S": key[0]}, "sk": {"S": key[1]}, "g": {"S": "g"}} for key in recorded
        ]
        entries = [
            table_layout.entry_key(described, found, each, place(described, each)) for each in items
        ]
        assert entries == sorted(entries, key=lambda entry: entry or b"")


def test_tables_and_indexes_do_not_overlap() -> None:
    prefixes = [
        *(prefix for number in (1, 2, 255, 256) for prefix in table_layout.table_prefixes(number)),
        table_layout.CATALOG,
        table_layout.TOKENS,
        table_layout.LEFTOVERS,
        table_layout.TOKEN_TIMES,
    ]
    for one, other in product(prefixes, repeat=2):
        assert one == other or not one.startswith(other)


@given(st.dictionaries(st.sampled_from(["pk", "sk", "g"]), VALUES["S"], min_size=3, max_size=3))
def test_an_item_is_found_again_from_its_entry(item: Item) -> None:
    described = table("S", index())
    key = table_layout.item_key(described, item)
    assert table_layout.item_key_at(described, table_layout.place_of(key)) == key
    expiry = table_layout.expiry_key(described, 1234, table_layout.place_of(key))
    assert table_layout.item_key_at(described, table_layout.expiry_place(expiry)) == key


@given(st.integers(1, 2**62), st.integers(1, 2**62))
def test_expiries_lie_in_the_order_of_time(one: int, other: int) -> None:
    described = table(None)
    low, high = (table_layout.expiry_key(described, each, b"x") for each in (one, other))
    assert (low < high) == (one < other)


def test_number_keys_are_placed_by_their_canonical_text() -> None:
    described = table("N")
    keys = {
        table_layout.item_key(described, {"pk": {"S": "p"}, "sk": normalize_value({"N": text})})
        for text in ("5", "5.0", "+5", "0.5e1")
    }
    assert len(keys) == 1

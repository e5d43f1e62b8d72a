"""Tests capacity, storage and partitions against the whitepaper's tables 7 and 8."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partita.database.capacity.partition_sizing import partitions_for
from partita.foundation.service_limits import GB, KB
from partita_migrate.costing.capacity_estimate import read_units, units, write_units
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.propose import denormalized
from partita_migrate.model.design import (
    AccessCondition,
    Design,
    Entity,
    ItemAttribute,
    KeyAttribute,
    PatternAccess,
    TableDesign,
)
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.analysis import Analysis
from partita_migrate.understanding.patterns.mining.pattern_miner import PatternMiner, RanStatement
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup

from ..designing.test_rules import measured
from ..games import ASSOCIATIONS, expected, games, pattern, table_4
from ..schemas import foreign_key, inventory, table, unique


def design() -> Design:
    return denormalized(expected(), table_4(), ModelSettings())


def test_table_7_what_each_pattern_needs() -> None:
    counted = {one.pattern: one for one in units(design(), table_4(), expected()).patterns}
    reads = {name: (one.served_by, one.read_units) for name, one in counted.items()}
    assert reads == {
        "game": ("Games", 1000),
        "player": ("Games/GSI1", 500),
        "registered": ("Games/GSI2", 250),
        "played": ("Games/GSI1", 150),
        "score": ("Games", 0),
        "add": ("Games", 0),
        "players": ("Games", 87.5),
    }
    assert counted["score"].write_units == {"Games": 100, "Games/GSI1": 100, "Games/GSI2": 100}
    assert counted["add"].write_units == {"Games": 50, "Games/GSI1": 50, "Games/GSI2": 50}


def test_table_8_what_the_workload_needs() -> None:
    counted = units(design(), table_4(), expected())
    assert [(one.index, one.write_units, one.read_units) for one in counted.resources] == [
        (None, 150, 1087.5),
        ("GSI1", 150, 650),
        ("GSI2", 150, 250),
    ]
    assert (counted.write_units, counted.read_units) == (450, 1987.5)


def test_the_data_is_stored_three_times() -> None:
    for one in units(design(), table_4(), expected()).resources:
        assert one.items == 10**8
        assert one.item_bytes == pytest.approx(0.7 * KB)
        assert one.bytes == pytest.approx(10**8 * 0.7 * KB)
        assert one.stored_bytes == pytest.approx(10**8 * (0.7 * KB + 100))


def test_what_one_request_reads_is_added_before_it_is_rounded() -> None:
    # The whitepaper: 100 items of 0.7 KB are 18 units, or 9 when eventually consistent.
    assert read_units(100 * 0.7 * KB, is_consistent=True) == 18
    assert read_units(100 * 0.7 * KB, is_consistent=False) == 9
    assert read_units(0.7 * KB, is_consistent=False) == 0.5
    assert write_units(3.3 * KB) == 4
    assert write_units(1 * KB) == 1


@pytest.mark.parametrize(
    ("read", "write", "size_gb", "expected_partitions"),
    [(1000, 500, 50, 5), (1000, 500, 500, 50), (7000, 500, 5, 3), (0, 0, 0, 1)],
)
def test_partitions_by_throughput_and_by_size(
    read: float, write: float, size_gb: float, expected_partitions: int
) -> None:
    assert partitions_for(read, write, size_gb * GB).partitions == expected_partitions


def test_an_update_does_not_reach_an_index_that_does_not_hold_what_it_changes() -> None:
    wide = design()
    (first, second) = wide.tables[0].indexes
    without = replace(second, projection="INCLUDE", include=["GameName"])
    narrow = replace(wide, tables=[replace(wide.tables[0], indexes=[first, without])])
    counted = {one.pattern: one for one in units(narrow, table_4(), expected()).patterns}
    assert counted["score"].write_units == {"Games": 100, "Games/GSI1": 100}
    assert set(counted["add"].write_units) == {"Games", "Games/GSI1", "Games/GSI2"}


def test_an_update_of_an_index_key_deletes_one_entry_and_puts_another() -> None:
    patterns = [
        pattern("move", "update", ASSOCIATIONS, "GameId PlayerId", 10, columns="RegistrationDate")
    ]
    wide = denormalized(expected(), [*table_4(), *patterns], ModelSettings())
    counted = units(wide, patterns, expected()).patterns[0]
    assert counted.write_units == {"Games": 10, "Games/GSI1": 10, "Games/GSI2": 20}


def test_a_guarded_value_costs_a_transaction_of_two_items() -> None:
    found = inventory(table("users", "id string, email string", "id", indexes=[unique("email")]))
    patterns = [
        pattern("get", "read", "users", "id", 1),
        pattern("sign up", "insert", "users", "", 10),
    ]
    volumes = Volumes(found)
    guarded = denormalized(volumes, patterns, ModelSettings())
    counted = {one.pattern: one for one in units(guarded, patterns, volumes).patterns}
    assert counted["sign up"].write_units == {"users": 20, "UniqueValues": 20}


def test_changing_what_is_copied_writes_every_copy() -> None:
    found = inventory(
        table("artists", "id string, name string", "id"),
        table(
            "albums",
            "id string, artist_id string, title string",
            "id",
            foreign_keys=[foreign_key("artist_id", "artists.id")],
        ),
    )
    patterns = [
        pattern("album", "read", "albums", "id", 10, joins=["artists"]),
        pattern("of an artist", "read", "albums", "artist_id", 1, items=12),
        pattern("rename", "update", "artists", "id", 2, columns="name"),
    ]
    analysis = Analysis(tables=[measured("albums", 1200, keys={"artist_id": (100, 50)})])
    volumes = Volumes(found, analysis)
    wide = denormalized(volumes, patterns, ModelSettings())
    (renamed,) = [
        one for one in units(wide, patterns, volumes).patterns
        if one.pattern == "rename" and one.write_units
    ]  # fmt: skip
    assert renamed.write_units == {"artists": 2, "albums": 2 * 12, "albums/GSI1": 2 * 12}


def test_sizes_are_those_of_the_sample_where_nothing_is_expected() -> None:
    sample = measured(ASSOCIATIONS, 5000, columns={"Score": {}}, size=3000)
    volumes = Volumes(games(), Analysis(tables=[sample]))
    (resource, *_) = units(design(), table_4(), volumes).resources
    assert resource.items == 5000
    assert resource.item_bytes > 3000


def test_nothing_is_stored_for_an_empty_table() -> None:
    counted = units(design(), table_4(), Volumes(games()))
    assert [one.bytes for one in counted.resources] == [0, 0, 0]
    assert counted.read_units > 0


def test_several_keys_of_one_call_are_read_and_rounded_one_by_one() -> None:
    members = table("members", "id, email string", "id", indexes=[unique("email")])
    volumes = Volumes(inventory(members), Analysis(tables=[measured("members", size=100)]))
    patterns = [
        pattern("by ids", "read", "members", "id", 10, items=7.0),
        pattern("by emails", "read", "members", "email", 10, items=3.0),
    ]
    design = denormalized(volumes, patterns, ModelSettings())
    counted = {one.pattern: one for one in units(design, patterns, volumes).patterns}
    assert counted["by ids"].items == 7
    assert counted["by ids"].read_units == 10 * 7 * 0.5
    assert counted["by emails"].read_units == 10 * 3 * 0.5


def test_all_below_a_row_are_read_together() -> None:
    staff = table(
        "staff", "id, boss integer?", "id", foreign_keys=[foreign_key("boss", "staff.id")]
    )
    volumes = Volumes(inventory(staff), Analysis(tables=[measured("staff", size=100)]))
    patterns = [
        pattern("below", "read", "staff", "id", 10, items=40.0, hierarchy="staff.boss"),
    ]
    design = denormalized(volumes, patterns, ModelSettings())
    first, *others = units(design, patterns, volumes).patterns
    assert others, "the row's own item tells its path"
    assert sum(one.read_units for one in (first, *others)) < 10 * 40 * 0.5


def test_a_query_for_each_value_of_a_list() -> None:
    users = table("users", "id, name string", "id")
    notes = table(
        "notes", "id, user_id, text string", "id", foreign_keys=[foreign_key("user_id", "users.id")]
    )
    found = inventory(users, notes)
    mine = PatternMiner(SchemaLookup(found))
    mine.add(
        RanStatement("SELECT * FROM notes WHERE user_id IN (1, 2, 3, 4, 5)", calls=60, rows=600)
    )
    mine.add(RanStatement("SELECT * FROM notes WHERE user_id = 1", calls=20, rows=40))
    patterns = mine.patterns(80, "a test").patterns
    assert [(one.values, one.items) for one in patterns] == [(4, 8)]
    volumes = Volumes(found, Analysis(tables=[measured("notes", size=100)]))
    design = denormalized(volumes, patterns, ModelSettings())
    (counted,) = units(design, patterns, volumes).patterns
    assert counted.read_units == 1 * 4 * 0.5


def test_skewed_collections_are_priced_by_what_is_read() -> None:
    """One customer has half of the orders, so half of all reads of orders are for that customer."""
    source = inventory(
        table("customers", "id integer", "id", row_count=501),
        table(
            "orders", "id integer, customer_id integer, state string", "customer_id id",
            foreign_keys=[foreign_key("customer_id", "customers.id")], row_count=100_000,
        ),
    )  # fmt: skip
    even = measured(
        "orders",
        100_000,
        keys={"customer_id": (501, 50_000), "customer_id id": (100_000, 1)},
        size=100,
    )
    skewed = replace(even, keys=[replace(even.keys[0], rows_per_call=25_050.0), even.keys[1]])
    asked = pattern("open", "read", "orders", "customer_id", 1, items=3)
    made = Design(
        name="shop",
        kind="denormalized",
        tables=[
            TableDesign(
                name="orders",
                partition_key=KeyAttribute(name="customer_id", type="N"),
                sort_key=KeyAttribute(name="id", type="N"),
                entities=[
                    Entity(
                        name="orders",
                        source="orders",
                        attributes=[
                            ItemAttribute(name=name, type=kind, column=f"orders.{name}")  # type: ignore[arg-type]
                            for name, kind in (("customer_id", "N"), ("id", "N"), ("state", "S"))
                        ],
                    )
                ],
            )
        ],
        access=[
            PatternAccess(
                pattern="open", request="Query", table="orders", entity="orders",
                key=[AccessCondition(attribute="customer_id", value="{customer_id}")],
                filter=[AccessCondition(attribute="state", value="open")],
            )
        ],
    )  # fmt: skip
    read = {
        one.keys[0].rows_per_call: units(made, [asked], Volumes(source, Analysis(tables=[one])))
        .patterns[0]
        .read_units
        for one in (even, skewed)
    }
    size = 100
    assert read == {
        0.0: read_units(100_000 / 501 * size, False),
        25_050.0: read_units(25_050 * size, False),
    }

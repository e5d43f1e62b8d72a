"""Tests the design rules one by one, each on the smallest schema that shows it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from partita_migrate.costing.capacity_estimate import units
from partita_migrate.designing.attribute_naming import prefixes
from partita_migrate.designing.checks.check_design import check
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.propose import denormalized, single_table
from partita_migrate.model.design import Design, Entity, PatternAccess, TableDesign
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.analysis import (
    Analysis,
    ColumnFigures,
    KeySkew,
    SizeDistribution,
    TableAnalysis,
)
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.mining.pattern_miner import PatternMiner, RanStatement
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.schema.inventory import Inventory, Relationship, SourceTable

from ..games import pattern
from ..schemas import foreign_key, inventory, table, unique


def measured(
    name: str,
    rows: int = 1000,
    *,
    keys: dict[str, tuple[int, int]] | None = None,
    columns: dict[str, dict[str, Any]] | None = None,
    size: int = 100,
) -> TableAnalysis:
    """Returns an analysis. `keys` maps columns to (distinct values, most rows of one value)."""
    return TableAnalysis(
        table=name,
        rows=rows,
        sampled=rows,
        confidence="",
        item_bytes=SizeDistribution(mean=size, p50=size, p95=size, p99=size, max=size),
        columns=[
            ColumnFigures(
                **{"name": column, "null_share": 0.0, "bytes_mean": 8.0, "bytes_max": 8, **more}
            )
            for column, more in (columns or {}).items()
        ],
        keys=[
            KeySkew(
                columns=columns.split(),
                distinct=distinct,
                rows_per_value=rows / distinct,
                rows_per_value_max=most,
                top_share=most / rows,
                entropy_bits=1.0,
            )
            for columns, (distinct, most) in (keys or {}).items()
        ],
    )


def both(
    found: Inventory,
    patterns: list[AccessPattern],
    *analyses: TableAnalysis,
    **settings: Any,
) -> list[Design]:
    """Proposes both designs and checks that every error is stated as a risk."""
    volumes = Volumes(found, Analysis(tables=list(analyses)))
    designs = [
        propose(volumes, patterns, ModelSettings(**settings))
        for propose in (denormalized, single_table)
    ]
    for design in designs:
        assert [one for one in check(design, patterns, volumes) if one.severity == "error"] == []
    return designs


def access(design: Design, name: str) -> PatternAccess:
    return next(one for one in design.access if one.pattern == name)


def home(design: Design, name: str) -> TableDesign:
    found = design.table(access(design, name).table)
    assert found is not None
    return found


def entity(design: Design, name: str) -> Entity:
    return next(one for _, one in design.entities() if one.name == name)


def attribute_names(design: Design, name: str) -> set[str]:
    return {one.name for one in entity(design, name).attributes}


def generated(found: SourceTable) -> SourceTable:
    """Returns a table whose first column is auto-incremented."""
    first = replace(found.columns[0], is_auto_increment=True)
    return replace(found, columns=[first, *found.columns[1:]])


ORDERS = (
    generated(table("customers", "id, email string, name string", "id", indexes=[unique("email")])),
    generated(
        table(
            "orders",
            "id, customer_id, status string?, placed_at datetime, total decimal",
            "id",
            foreign_keys=[foreign_key("customer_id", "customers.id")],
        )
    ),
)


def test_what_is_asked_for_by_one_value_and_sorted_is_an_item_collection() -> None:
    patterns = [
        pattern(
            "of a customer", "read", "orders", "customer_id", 10, order_by="placed_at", items=5
        ),
        pattern("place", "insert", "orders", "", 1),
    ]
    wide, single = both(inventory(*ORDERS), patterns)
    assert [key.name for key in home(wide, "of a customer").keys] == ["customer_id", "placed_at#id"]
    one = entity(single, "orders")
    assert one.attributes[0].template == "C#{customer_id}"
    assert one.attributes[1].template == "O#{placed_at}#O#{id:n10.0}"
    assert entity(single, "customers").attributes[0].template == "C#{id}"


def test_a_key_that_an_update_does_not_know_is_not_taken() -> None:
    patterns = [
        pattern(
            "of a customer", "read", "orders", "customer_id", 10, order_by="placed_at", items=5
        ),
        pattern("pay", "update", "orders", "id", 1, columns="total"),
    ]
    wide, _ = both(inventory(*ORDERS), patterns)
    assert [key.name for key in home(wide, "pay").keys] == ["id"]
    assert access(wide, "of a customer").index == "GSI1"


def test_a_column_that_is_updated_is_no_key_of_a_table() -> None:
    patterns = [
        pattern("by status", "read", "orders", "customer_id", 10, order_by="total", items=5),
        pattern("pay", "update", "orders", "id customer_id", 1, columns="total"),
    ]
    wide, _ = both(inventory(*ORDERS), patterns)
    assert "total" not in {key.name for key in home(wide, "pay").keys}


def test_two_equal_columns_and_an_order_are_a_composite_sort_key() -> None:
    patterns = [
        pattern("get", "read", "logs", "device at", 1000),
        pattern("warnings", "read", "logs", "device state", 10, order_by="at", items=5),
        pattern("log", "insert", "logs", "", 500),
    ]
    found = inventory(table("logs", "device string, at datetime, state string", "device at"))
    analysis = measured("logs", 10**6, keys={"device": (10, 10**5)})
    wide, single = both(found, patterns, analysis)
    index = home(wide, "warnings").index("GSI1")
    assert index is not None and index.partition_key.name == "device#state"
    assert index.sort_key is not None and index.sort_key.name == "at"
    assert access(single, "warnings").requests == 1


def test_columns_asked_for_from_coarse_to_fine_are_one_hierarchy() -> None:
    patterns = [
        pattern("office", "read", "offices", "country state city", 10, items=3),
        pattern("country", "read", "offices", "country", 1, items=30),
    ]
    found = inventory(
        table("offices", "id string, country string, state string, city string", "id")
    )
    wide, _ = both(found, patterns)
    (index,) = home(wide, "office").indexes
    assert (index.partition_key.name, index.sort_key and index.sort_key.name) == (
        "country#key",
        "state#city",
    )
    assert access(wide, "office").key[1].comparison == "="
    assert [one.attribute for one in access(wide, "country").key] == ["country#key"]


def test_an_index_on_what_is_mostly_absent_is_sparse() -> None:
    patterns = [pattern("escalated", "read", "orders", "status", 1, items=5)]
    analysis = measured("orders", columns={"status": {"null_share": 0.9}}, keys={"status": (3, 40)})
    wide, _ = both(inventory(*ORDERS), patterns, analysis)
    (index,) = home(wide, "escalated").indexes
    assert "sparse" in index.why.lower()


def test_a_key_that_gets_more_than_a_partition_takes_is_sharded() -> None:
    found = inventory(table("votes", "candidate string, id string, at datetime", "candidate id"))
    patterns = [
        pattern("vote", "insert", "votes", "", 5000),
        pattern("count", "read", "votes", "candidate", 1, items=100),
    ]
    analysis = measured("votes", 1000, keys={"candidate": (10, 800)})
    wide, _ = both(found, patterns, analysis)
    table_design = home(wide, "count")
    attribute = table_design.entities[0].attribute(table_design.partition_key.name)
    assert attribute is not None and attribute.shards >= 8
    assert attribute.template == "{candidate}#{shard}"
    assert access(wide, "count").requests == attribute.shards
    assert "Write sharding" in table_design.why


def test_a_large_column_that_is_rarely_read_lies_beside_the_rest() -> None:
    found = inventory(table("articles", "id string, title string, body string", "id"))
    patterns = [
        pattern("list", "read", "articles", "id", 100, columns="title"),
        pattern("read", "read", "articles", "id", 1, columns="body"),
        pattern("print", "read", "articles", "id", 1),
        pattern("add", "insert", "articles", "", 1),
        pattern("retitle", "update", "articles", "id", 1, columns="title"),
    ]
    analysis = measured(
        "articles",
        columns={"id": {}, "title": {}, "body": {"bytes_mean": 20_000.0, "bytes_max": 60_000}},
        size=21_000,
    )
    wide, single = both(found, patterns, analysis)
    assert attribute_names(single, "articles") == {"PK", "SK", "entity_type", "id", "title"}
    assert attribute_names(single, "articles large") == {"PK", "SK", "entity_type", "body"}
    assert [one.name for one in wide.tables] == ["articles", "articles_large"]
    assert attribute_names(wide, "articles large") == {"entity_type", "id", "body"}
    volumes = Volumes(found, Analysis(tables=[analysis]))
    for design in (wide, single):
        served = {
            name: [one.entity for one in design.access if one.pattern == name]
            for name in ("list", "read", "print")
        }
        assert served["list"] == ["articles"]
        assert served["read"] == ["articles large"]
        assert served["print"] == ["articles", "articles large"]
        counted = {one.pattern: one for one in units(design, patterns, volumes).patterns}
        assert counted["list"].read_units == 50, "half a unit each, whatever the body takes"
        assert sum(counted["add"].write_units.values()) > 20, "the body is written, too"
        assert sum(counted["retitle"].write_units.values()) < 3, "the body is not"


def test_a_reference_that_does_not_fit_what_it_refers_to_leads_nowhere() -> None:
    """SQLite accepts two columns that refer to a key of one column."""
    found = inventory(
        table("parents", "id string, name string", "id"),
        table(
            "children",
            "id string, p string, q string",
            "id",
            foreign_keys=[foreign_key("p q", "parents.id")],
        ),
    )
    patterns = [pattern("child", "read", "children", "id", 5, joins=["parents"])]
    for design in both(found, patterns):
        assert {"p", "q"} <= attribute_names(design, "children")


def test_rows_without_what_they_are_sorted_by_stay_in_the_index() -> None:
    customers, orders = ORDERS
    columns = [replace(one, is_nullable=one.name == "placed_at") for one in orders.columns]
    found = inventory(customers, replace(orders, columns=columns))
    patterns = [
        pattern("by status", "read", "orders", "status", 5, order_by="placed_at"),
        pattern("order", "read", "orders", "id", 50),
    ]
    for design in both(found, patterns, measured("orders", columns={"placed_at": {}})):
        served = access(design, "by status")
        (index,) = [one for one in home(design, "by status").indexes if one.name == served.index]
        assert index.sort_key is not None
        sort = entity(design, "orders").attribute(index.sort_key.name)
        assert sort is not None and sort.template is not None
        assert sort.template.endswith("{id:n10.0}")


def test_a_large_column_that_is_often_read_stays_where_it_is() -> None:
    found = inventory(table("articles", "id string, title string, body string", "id"))
    patterns = [pattern("list", "read", "articles", "id", 100)]
    large = {"bytes_mean": 20_000.0, "bytes_max": 60_000}
    analysis = measured("articles", columns={"id": {}, "title": {}, "body": large}, size=21_000)
    for design in both(found, patterns, analysis):
        assert "body" in attribute_names(design, "articles")


def test_a_value_that_no_item_can_hold_is_left_out_with_the_reason() -> None:
    found = inventory(table("files", "id string, content binary", "id"))
    analysis = measured("files", columns={"id": {}, "content": {"bytes_max": 5_000_000}})
    wide, _ = both(found, [], analysis)
    (left_out,) = wide.left_out
    assert left_out.column == "files.content"
    assert "object store" in left_out.why


def test_few_rows_that_are_only_read_with_their_parent_are_a_set() -> None:
    found = inventory(
        table("users", "id string, name string", "id"),
        table(
            "phones",
            "user_id string, number string",
            "user_id number",
            foreign_keys=[foreign_key("user_id", "users.id")],
        ),
    )
    patterns = [pattern("user", "read", "users", "id", 10, joins=["phones"])]
    few = measured("phones", 300, keys={"user_id": (100, 5)})
    wide, single = both(found, patterns, few)
    for design in (wide, single):
        phones = entity(design, "users").attribute("phones")
        assert phones is not None
        assert (phones.type, phones.collect) == ("SS", ["phones.number"])
        assert phones.through == ["users.id = phones.user_id"]
    many = measured("phones", 30_000, keys={"user_id": (100, 5000)})
    wide, _ = both(found, patterns, many)
    assert entity(wide, "phones").source == "phones"


def test_a_lookup_table_is_copied_to_where_it_is_read() -> None:
    tables = [
        table("countries", "code string, name string", "code"),
        table(
            "cities",
            "id string, country_code string, name string",
            "id",
            foreign_keys=[foreign_key("country_code", "countries.code")],
        ),
    ]
    found = Inventory(
        dialect="sqlite",
        server_version="3",
        database="world",
        tables=tables,
        relationships=[
            Relationship(
                kind="lookup",
                parent="countries",
                child="cities",
                parent_columns=["code"],
                child_columns=["country_code"],
            )
        ],
    )
    patterns = [pattern("city", "read", "cities", "id", 10, joins=["countries"])]
    for design in both(found, patterns):
        assert "country_name" in attribute_names(design, "cities")
        assert "countries" not in {one.name for _, one in design.entities()}


def test_a_unique_column_that_is_no_key_has_an_item_that_guards_it() -> None:
    patterns = [
        pattern("get", "read", "customers", "id", 10),
        pattern("sign up", "insert", "customers", "", 1),
        pattern("rename", "update", "customers", "id", 1, columns="name"),
    ]
    for design in both(inventory(*ORDERS), patterns):
        assert entity(design, "customers.email").is_guard
        assert access(design, "sign up").request == "TransactWriteItems"
        assert access(design, "rename").request == "UpdateItem"


def test_a_natural_key_that_is_asked_for_replaces_a_number() -> None:
    patterns = [pattern("log in", "read", "customers", "email", 10)]
    wide, single = both(inventory(*ORDERS), patterns)
    assert home(wide, "log in").partition_key.name == "email"
    assert access(single, "log in").key[0].value == "C#{email}"
    assert "customer_email" in attribute_names(wide, "orders")
    assert {"customer_id", "customer_email"} <= attribute_names(wide, "orders")
    assert wide.left_out == []


def test_a_parent_that_is_written_keeps_its_items_and_its_copies_are_counted() -> None:
    patterns = [
        pattern("orders", "read", "orders", "customer_id", 10, joins=["customers"], items=5),
        pattern("rename", "update", "customers", "id", 1, columns="name"),
    ]
    analysis = measured("orders", 500, keys={"customer_id": (100, 9)})
    wide, _ = both(inventory(*ORDERS), patterns, analysis)
    assert "customer_name" in attribute_names(wide, "orders")
    assert access(wide, "rename").requests == 1 + 5


def test_a_reference_to_the_same_table_is_another_row() -> None:
    found = inventory(
        table(
            "staff",
            "id string, boss_id string?, name string",
            "id",
            foreign_keys=[foreign_key("boss_id", "staff.id")],
        )
    )
    patterns = [pattern("reports", "read", "staff", "boss_id", 5, items=7)]
    wide, single = both(found, patterns)
    assert access(wide, "reports").index == "GSI1"
    assert access(single, "reports").key[0].value == "S#{boss_id}"


def test_all_of_a_tiny_table_is_a_scan_with_its_price() -> None:
    patterns = [pattern("all", "read", "orders", "", 1)]
    volumes = Volumes(inventory(*ORDERS))
    design = denormalized(volumes, patterns, ModelSettings())
    assert access(design, "all").request == "Scan"
    assert check(design, patterns, volumes) == []
    (technique,) = design.techniques
    assert (technique.name, technique.cost) == ("priced Scan", "0.5 read units a call")
    assert technique.next_best.startswith("one constant partition")


def test_a_clean_up_by_age_is_left_to_the_service() -> None:
    patterns = [
        pattern("clean up", "delete", "orders", "", 1, range="placed_at"),
        pattern("get", "read", "orders", "id", 1),
    ]
    wide, _ = both(inventory(*ORDERS), patterns, expire={"orders.placed_at": 3600})
    assert access(wide, "clean up").request == "TTL"
    assert home(wide, "clean up").ttl == "expirationTime"
    expiry = entity(wide, "orders").attribute("expirationTime")
    assert expiry is not None
    assert (expiry.expires, expiry.after_seconds) == ("orders.placed_at", 3600)


def test_consistent_reads_under_the_same_key_get_a_local_index() -> None:
    found = inventory(
        table("messages", "room string, id string, at datetime, text string", "room id")
    )
    patterns = [
        pattern("get", "read", "messages", "room id", 100),
        pattern("by time", "read", "messages", "room", 10, order_by="at", is_consistent=True),
    ]
    wide, single = both(found, patterns)
    for design in (wide, single):
        (index,) = home(design, "by time").indexes
        assert (index.kind, index.name) == ("local", "LSI1")


@pytest.mark.parametrize(
    ("style", "name"),
    [("source", "placed_at"), ("camelCase", "placedAt"), ("PascalCase", "PlacedAt")],
)
def test_attributes_are_written_as_people_like(style: str, name: str) -> None:
    wide, _ = both(inventory(*ORDERS), [], names=style)
    assert name in attribute_names(wide, "orders")


def test_types_of_items_that_need_an_index_in_the_same_place_share_it() -> None:
    patterns = [
        pattern("customer", "read", "customers", "id", 9),
        pattern("by name", "read", "customers", "name", 5),
        pattern("order", "read", "orders", "id", 9),
        pattern("by status", "read", "orders", "status", 5, items=3),
    ]
    _, single = both(inventory(*ORDERS), patterns)
    (index,) = single.tables[0].indexes
    assert [key.name for key in index.keys] == ["GSI1PK", "GSI1SK"]
    assert {access(single, name).index for name in ("by name", "by status")} == {"GSI1"}
    assert access(single, "by name").key[0].value == "C#{name}"


FILMS = (
    table("films", "id string, title string", "id"),
    table("actors", "id string, name string", "id"),
    table(
        "roles",
        "film_id string, actor_id string, part string",
        "film_id actor_id",
        foreign_keys=[foreign_key("film_id", "films.id"), foreign_key("actor_id", "actors.id")],
    ),
)


def test_a_root_and_what_belongs_to_it_are_one_query_of_the_single_table() -> None:
    patterns = [
        pattern("film", "read", "films", "id", 100, joins=["roles"], items=5),
        pattern("cast", "insert", "roles", "", 1),
    ]
    _, single = both(inventory(*FILMS), patterns)
    found = access(single, "film")
    assert (found.request, [one.value for one in found.key]) == ("Query", ["F#{id}"])
    assert entity(single, "roles").attributes[0].template == "F#{film_id}"
    assert "film_title" not in attribute_names(single, "roles")


def test_what_comes_through_an_index_brings_copies_along() -> None:
    patterns = [
        pattern("film", "read", "films", "id", 100, joins=["roles"], items=5),
        pattern("films of", "read", "films", "roles.actor_id", 10, joins=["roles"], items=9),
        pattern("rename", "update", "films", "id", 1, columns="title"),
    ]
    wide, single = both(inventory(*FILMS), patterns)
    for design in (wide, single):
        assert access(design, "films of").index == "GSI1"
        assert "film_title" in attribute_names(design, "roles")


def test_tables_that_refer_to_each_other_are_modelled() -> None:
    found = inventory(
        table(
            "staff",
            "id string, store_id string",
            "id",
            foreign_keys=[foreign_key("store_id", "stores.id")],
        ),
        table(
            "stores",
            "id string, boss_id string",
            "id",
            foreign_keys=[foreign_key("boss_id", "staff.id")],
        ),
    )
    patterns = [
        pattern("store", "read", "stores", "id", 1, joins=["staff"]),
        pattern("of a store", "read", "staff", "store_id", 1, items=4),
    ]
    for design in both(found, patterns):
        assert {one.name for _, one in design.entities()} == {"staff", "stores"}


def test_two_relationships_between_the_same_tables_keep_their_items_apart() -> None:
    keys = [foreign_key("film_id", "films.id"), foreign_key("actor_id", "actors.id")]
    columns = ("film_id string, actor_id string", "film_id actor_id")
    found = inventory(
        *FILMS[:2],
        table("stars", *columns, foreign_keys=keys),
        table("extras", *columns, foreign_keys=keys),
    )
    patterns = [
        pattern("stars", "read", "stars", "film_id", 5, items=2),
        pattern("extras", "read", "extras", "film_id", 5, items=50),
    ]
    _, single = both(found, patterns)
    assert access(single, "stars").key[1].value == "A#"
    assert access(single, "extras").key[1].value == "E#A#"


def test_a_one_to_one_child_lies_beside_its_parents_root() -> None:
    found = inventory(
        table("users", "id string, name string", "id"),
        table(
            "settings",
            "user_id string, colour string",
            "user_id",
            foreign_keys=[foreign_key("user_id", "users.id")],
        ),
    )
    patterns = [
        pattern("user", "read", "users", "id", 5),
        pattern("settings", "read", "settings", "user_id", 5),
    ]
    _, single = both(found, patterns)
    assert [one.value for one in access(single, "user").key] == ["U#{id}", "root"]
    assert [one.value for one in access(single, "settings").key] == ["U#{user_id}", "S#root"]


def test_only_the_latest_version_is_found_by_what_belongs_to_all() -> None:
    found = inventory(
        table("documents", "id string, owner string", "id"),
        table(
            "revisions",
            "document_id string, revision integer, text string",
            "document_id revision",
            foreign_keys=[foreign_key("document_id", "documents.id")],
        ),
    )
    patterns = [
        pattern("get", "read", "documents", "id", 9),
        pattern("of an owner", "read", "documents", "owner", 5, items=3),
    ]
    for design in both(found, patterns):
        served = access(design, "of an owner")
        assert (served.index, served.limit) == ("GSI1", None)
        key = served.key[0].attribute
        assert key in attribute_names(design, "documents")
        assert key not in attribute_names(design, "revisions")
        assert entity(design, "documents").rows == "latest"


COMPANY = inventory(
    table("employees", "id string, name string", "id"),
    table("departments", "id string, name string", "id"),
    *(
        table(
            name,
            "employee_id string, department_id string",
            "employee_id department_id",
            foreign_keys=[
                foreign_key("employee_id", "employees.id"),
                foreign_key("department_id", "departments.id"),
            ],
        )
        for name in ("managed", "works_in")
    ),
)


@pytest.mark.parametrize("way", ["managed", "works_in"])
def test_of_two_ways_between_tables_the_one_that_the_pattern_names_is_taken(way: str) -> None:
    patterns = [
        pattern("of a department", "read", "employees", "departments.name", 5, through=[way])
    ]
    for design in both(COMPANY, patterns):
        assert access(design, "of a department").entity == way


@pytest.mark.parametrize("way", ["spoken", "original"])
def test_of_two_references_the_one_that_the_pattern_names_is_followed(way: str) -> None:
    references = [foreign_key(name, "language.id") for name in ("spoken", "original")]
    found = inventory(
        table("language", "id string, name string", "id"),
        table("film", "id string, spoken string, original string", "id", foreign_keys=references),
    )
    patterns = [pattern("x", "read", "film", "language.name", 5, through=[f"film.{way}"])]
    for design in both(found, patterns):
        held = [one for one in entity(design, "film").attributes if one.through]
        assert held and all(one.through == [f"film.{way} = language.id"] for one in held)


STAFF = inventory(
    table(
        "staff",
        "id string, boss_id string?, name string",
        "id",
        foreign_keys=[foreign_key("boss_id", "staff.id")],
    )
)


def test_all_below_a_row_of_a_tree_are_found_by_a_path() -> None:
    patterns = [
        pattern("team", "read", "staff", "id", 5, hierarchy="staff.boss_id", items=20),
        pattern("directly", "read", "staff", "boss_id", 5, items=4),
    ]
    for design in both(STAFF, patterns):
        first, second = (one for one in design.access if one.pattern == "team")
        assert (first.request, second.request) == ("GetItem", "Query")
        assert second.key[1].comparison == "begins_with"
        path = entity(design, "staff").attribute(second.key[1].attribute)
        assert path is not None and path.template is not None
        assert path.template.endswith("{id:path}")
        assert path.through == ["staff.boss_id = staff.id"]


def test_a_path_goes_along_a_reference_of_the_table_to_itself() -> None:
    patterns = [pattern("team", "read", "staff", "id", 5, hierarchy="staff.boss_id")]
    (design, _) = both(STAFF, patterns)
    (home_table,) = design.tables
    (staff,) = home_table.entities
    bare = [replace(one, through=[]) for one in staff.attributes]
    astray = replace(
        design, tables=[replace(home_table, entities=[replace(staff, attributes=bare)])]
    )
    said = [one.message for one in check(astray, patterns, Volumes(STAFF))]
    assert "path needs the foreign key of staff to itself in through." in said


def test_a_bill_of_materials_is_read_in_both_directions() -> None:
    found = inventory(
        table("parts", "id string, name string", "id"),
        table(
            "contains",
            "whole_id string, part_id string, amount",
            "whole_id part_id",
            foreign_keys=[foreign_key("whole_id", "parts.id"), foreign_key("part_id", "parts.id")],
        ),
    )
    assert [(one.kind, one.through) for one in found.relationships if one.through] == [
        ("many-to-many", "contains")
    ]
    ends = ("whole", "part")
    patterns = [
        pattern(f"by {end}", "read", "parts", f"contains.{end}_id", 5, through=[f"contains.{way}"])
        for end, way in zip(ends, ("part_id", "whole_id"), strict=True)
    ]
    for design in both(found, patterns):
        ways = {
            step.partition(" = ")[0]
            for one in entity(design, "contains").attributes
            for step in one.through
        }
        assert ways == {"contains.whole_id", "contains.part_id"}
        assert {access(design, one.name).entity for one in patterns} == {"contains"}


def test_an_item_holds_one_row_of_a_table_and_says_so() -> None:
    references = [foreign_key(name, "language.id") for name in ("spoken", "original")]
    found = inventory(
        table("language", "id string, name string", "id"),
        table("film", "id string, spoken string, original string", "id", foreign_keys=references),
    )
    patterns = [
        pattern(way, "read", "film", "language.name", 5, through=[f"film.{way}"])
        for way in ("spoken", "original")
    ]
    for propose in (denormalized, single_table):
        design = propose(Volumes(found), patterns, ModelSettings())
        assert [one.pattern for one in design.access] == ["spoken"]
        assert (
            "'original' is not served: it goes through film.original, and film's keys hold what"
            " film.spoken leads to." in design.risks
        )


def test_an_association_that_is_asked_for_from_its_other_side_is_no_list() -> None:
    patterns = [
        pattern("film", "read", "films", "id", 5, joins=["actors"]),
        pattern("films of an actor", "read", "films", "actors.name", 5, items=3),
    ]
    few = measured("roles", 10, keys={"film_id": (5, 2)})
    for design in both(inventory(*FILMS), patterns, few):
        assert access(design, "films of an actor").request == "Query"


def test_what_is_read_in_order_is_not_mixed_with_other_items_of_the_collection() -> None:
    patterns = [
        pattern("customer", "read", "customers", "id", 9),
        pattern(
            "newest", "read", "orders", "customer_id", 9,
            order_by="placed_at", is_descending=True, limit=5, items=5,
        ),
    ]  # fmt: skip
    _, single = both(inventory(*ORDERS), patterns)
    found = access(single, "newest")
    assert (found.index, found.key[1].comparison) == (None, "begins_with")


def test_types_that_share_the_keys_of_an_index_are_told_apart_by_its_sort_key() -> None:
    staff = table("staff", "id string, name string", "id")
    of_staff = [foreign_key("staff_id", "staff.id")]
    found = inventory(
        staff,
        table("rentals", "id string, staff_id string, at datetime", "id", foreign_keys=of_staff),
        table("payments", "id string, staff_id string, at datetime", "id", foreign_keys=of_staff),
    )
    patterns = [
        one
        for name in ("rentals", "payments")
        for one in (
            pattern(f"one of {name}", "read", name, "id", 50),
            pattern(
                f"{name} of staff", "read", name, "staff_id", 5,
                order_by="at", is_descending=True, limit=5, items=5,
            ),
        )
    ]  # fmt: skip
    _, single = both(found, patterns)
    starts = {
        (condition.comparison, condition.value)
        for name in ("rentals", "payments")
        for condition in access(single, f"{name} of staff").key[1:]
    }
    assert starts == {("begins_with", "R#"), ("begins_with", "P#")}


def test_a_range_ends_behind_all_items_of_its_last_value() -> None:
    patterns = [
        pattern(
            "between", "read", "orders", "customer_id", 50, range="placed_at", items=5,
        ),
    ]  # fmt: skip
    for design in both(inventory(*ORDERS), patterns):
        condition = access(design, "between").key[1]
        sort = next(
            one for one in entity(design, "orders").attributes if one.name == condition.attribute
        )
        assert sort.template is not None
        last = condition.value.rpartition(" and ")[2].replace("{placed_at.to}", "2024-01-01")
        key = sort.template.replace("{placed_at}", "2024-01-01").replace("{id}", "7")
        assert key < last < key.replace("2024-01-01", "2024-01-02")


def test_a_model_without_patterns_is_not_said_to_serve_them() -> None:
    volumes = Volumes(inventory(*ORDERS))
    design = denormalized(volumes, [], ModelSettings())
    assert [(one.severity, one.place) for one in check(design, [], volumes)] == [
        ("warning", "patterns.toml")
    ]


def test_a_list_copies_only_what_is_read_of_a_table_with_items_of_its_own() -> None:
    products = table("products", "id string, name string, stock integer, price decimal", "id")
    lines = table(
        "lines",
        "order_id string, product_id string, price decimal",
        "order_id product_id",
        foreign_keys=[
            foreign_key("order_id", "orders.id"),
            foreign_key("product_id", "products.id"),
        ],
    )
    found = inventory(table("orders", "id string, at datetime", "id"), products, lines)
    whole = pattern("order", "read", "orders", "id", 5, joins=["lines", "products"], items=2)
    named = replace(whole, columns=["orders.at", "lines.price", "products.name"])
    stock = pattern("sell", "update", "products", "id", 5, columns="stock")
    few = measured("lines", 10, keys={"order_id": (5, 2)})

    def collected(*patterns: AccessPattern) -> list[str]:
        single = single_table(
            Volumes(found, Analysis(tables=[few])), list(patterns), ModelSettings()
        )
        (held,) = (one for one in entity(single, "orders").attributes if one.collect)
        return held.collect

    assert collected(named, stock) == ["lines.product_id", "lines.price", "products.name"]
    assert "products.stock" in collected(whole, stock)
    assert "products.price" not in collected(whole, stock)


def test_copies_are_found_by_an_index_when_their_original_changes() -> None:
    artists = table("artists", "id string, name string", "id")
    albums = table(
        "albums",
        "id string, artist_id string, title string",
        "id",
        foreign_keys=[foreign_key("artist_id", "artists.id")],
    )
    patterns = [
        pattern("album", "read", "albums", "id", 10, joins=["artists"]),
        pattern("rename", "update", "artists", "id", 2, columns="name"),
    ]
    for design in both(inventory(artists, albums), patterns):
        (read,) = [one for one in design.access if one.pattern == "album"]
        assert (read.entity, read.for_each) == ("albums", False)
        assert any(one.through for one in entity(design, "albums").attributes)
        original, copies = [one for one in design.access if one.pattern == "rename"]
        assert (original.entity, copies.entity) == ("artists", "albums")
        assert copies.index is not None
        assert design.unserved == []


def test_a_key_that_may_be_null_is_told_by_its_own_column() -> None:
    users = table("users", "id, name string", "id")
    carts = table(
        "carts", "id, owner_id integer?, note string", "id",
        foreign_keys=[foreign_key("owner_id", "users.id")],
    )  # fmt: skip
    visits = table("visits", "page string?, seen string?, place string")
    patterns = [pattern("carts of a user", "read", "carts", "owner_id", 100)]
    volumes = Volumes(inventory(users, carts, visits), Analysis(tables=[]))
    design = single_table(volumes, patterns, ModelSettings())
    told = [risk for risk in design.risks if "may be NULL" in risk]
    assert not any("users.id" in risk for risk in told), "a primary key is never NULL"
    assert all(risk.startswith("carts.owner_id may be NULL") for risk in told)


def test_a_scan_by_alternatives_says_what_would_be_served() -> None:
    patterns = [
        pattern("either", "read", "users", "", 1, filters=["users.name", "users.email"]),
        pattern("inside", "read", "users", "", 1, filters=["users.name"]),
    ]
    users = table("users", "id, name string, email string", "id")
    volumes = Volumes(inventory(users), Analysis(tables=[]))
    either, inside = (
        risk
        for risk in denormalized(volumes, patterns, ModelSettings()).risks
        if "is not served" in risk
    )
    assert either.endswith(
        "no key finds what it tests (users.name, users.email): it is a scan;"
        " if these are alternatives (OR), write a pattern for each."
    )
    assert inside.endswith("no key finds what it tests (users.name): it is a scan.")


def test_tables_that_nothing_connects_are_told_how_to_be() -> None:
    actor = table("actor", "id, name string", "id")
    edits = table("edits", "id, actor_id", "id")
    patterns = [pattern("edits of a name", "read", "edits", "actor.name", 1)]
    volumes = Volumes(inventory(actor, edits), Analysis(tables=[]))
    (risk,) = denormalized(volumes, patterns, ModelSettings()).risks
    assert "actor.name is not a part of edits's items; no foreign key connects them" in risk
    connected = replace(edits, foreign_keys=[foreign_key("actor_id", "actor.id")])
    for design in both(inventory(actor, connected), patterns):
        assert access(design, "edits of a name").request == "Query"


def test_of_many_tables_prefixes_are_whole_names() -> None:
    assert prefixes(["basket", "basket_line", "games"]) == {
        "basket": "B",
        "basket_line": "BA",
        "games": "G",
    }
    many = ["basket", "basket_line", *(f"table_{chr(97 + number)}" for number in range(24))]
    assert prefixes(many)["basket_line"] == "BASKETLINE"
    assert len(set(prefixes(many).values())) == len(many)


def test_a_column_that_is_compared_in_another_form_is_a_key_in_that_form() -> None:
    mine = PatternMiner(SchemaLookup(found := inventory(table("users", "id, name string", "id"))))
    mine.add(RanStatement("SELECT * FROM users WHERE lower(name) = 'x'"))
    patterns = mine.patterns(60, "a test").patterns
    for propose in (denormalized, single_table):
        design = propose(Volumes(found), patterns, ModelSettings())
        assert design.unserved == [] and len(design.access) == 1
        assert "{name:lower}" in str(design.tables)


def test_rows_without_a_reference_are_not_lost_to_a_key_made_of_it() -> None:
    users = table("users", "id, name string", "id")
    carts = table(
        "carts", "id, owner_id integer?, note string", "id",
        foreign_keys=[foreign_key("owner_id", "users.id")],
    )  # fmt: skip
    carts = replace(carts, columns=[replace(carts.columns[0], is_auto_increment=True),
                                    *carts.columns[1:]])  # fmt: skip
    patterns = [pattern("carts of a user", "read", "carts", "owner_id", 100)]
    guests = measured("carts", columns={"owner_id": {"null_share": 0.3}, "id": {}})
    for design in both(inventory(users, carts), patterns, measured("users"), guests):
        assert access(design, "carts of a user").index == "GSI1", "a sparse index"
        assert not any("may be NULL" in risk for risk in design.risks)
    everyone = measured("carts", columns={"owner_id": {}, "id": {}})
    for design in both(inventory(users, carts), patterns, measured("users"), everyone):
        assert access(design, "carts of a user").index is None
        assert any(risk.startswith("carts.owner_id may be NULL") for risk in design.risks)


def test_fractions_without_a_bound_are_filtered_and_not_put_into_a_text() -> None:
    found = inventory(
        table("pages", "id, space, chance float", "id"),
        table("notes", "id, owner string, at datetime", "id"),
    )
    patterns = [
        pattern("one of a space", "read", "pages", "space", 1, range="chance"),
        pattern("notes of one", "read", "notes", "owner", 1, order_by="at"),
        pattern("page", "read", "pages", "id", 9),
        pattern("note", "read", "notes", "id", 9),
    ]
    volumes = Volumes(found, Analysis(tables=[]))
    design = single_table(volumes, patterns, ModelSettings())
    assert [one for one in check(design, patterns, volumes) if one.severity == "error"] == []
    (tested,) = access(design, "one of a space").filter
    assert (tested.attribute, tested.comparison) == ("chance", "between")

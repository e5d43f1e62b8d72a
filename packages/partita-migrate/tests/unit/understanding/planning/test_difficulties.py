"""Tests which difficulties a migration has, and which it does not have."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partita.foundation.service_limits import GB, KB
from partita_migrate.understanding.planning.difficulties import find_difficulties
from partita_migrate.understanding.planning.difficulties.database_difficulties import (
    foreign_key_cycles,
)
from partita_migrate.understanding.planning.difficulties.difficulty import Difficulty
from partita_migrate.understanding.planning.difficulties.whitepaper_challenges import (
    find_challenges,
)
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.schema.inventory import (
    ColumnKind,
    Inventory,
    SkippedObject,
    SourceColumn,
    SourceIndex,
    SourceTable,
)

from ...schemas import foreign_key, inventory, table, unique


def found(kind: str, *tables: SourceTable, dialect: str = "mysql") -> list[Difficulty]:
    return [
        one for one in find_difficulties(inventory(*tables, dialect=dialect)) if one.kind == kind
    ]


def typed(written: str, kind: ColumnKind, dialect: str) -> list[Difficulty]:
    one = SourceColumn(name="x", type=written, kind=kind)
    return found(
        "type", SourceTable(name="things", columns=[one], primary_key=["x"]), dialect=dialect
    )


def test_a_plain_table_has_none() -> None:
    plain = table("orders", "order_id, customer string, amount", "order_id")
    assert find_difficulties(inventory(plain)) == []


def test_no_primary_key() -> None:
    (heap,) = found("no primary key", table("heap", "a, b"))
    assert heap.severity == "obstacle" and "UUID" in heap.strategy
    (saved,) = found("no primary key", table("saved", "a, b", indexes=[unique("a b")]))
    assert saved.severity == "care" and saved.columns == ["a", "b"]
    (nullable,) = found("no primary key", table("heap", "a integer?", indexes=[unique("a")]))
    assert nullable.severity == "obstacle", "null is not unique"


def test_keys_that_do_not_port() -> None:
    (wide,) = found("key structure", table("wide", "a, b, c", "a b c"))
    assert "3 columns" in wide.what
    (unfit,) = found("key structure", table("unfit", "a boolean, b", "a b"))
    assert unfit.columns == ["a"]
    long = SourceColumn(name="a", type="varchar(700)", kind="string", length_max=700)
    (too_long,) = found(
        "key structure", SourceTable(name="long", columns=[long], primary_key=["a"])
    )
    assert "2048" in too_long.what
    short = replace(long, length_max=500)
    assert not found("key structure", SourceTable(name="okay", columns=[short], primary_key=["a"]))


def test_numbers_that_the_database_gives() -> None:
    one = SourceColumn(name="id", type="int", kind="integer", is_auto_increment=True)
    (numbered,) = found(
        "auto-increment key", SourceTable(name="t1t", columns=[one], primary_key=["id"])
    )
    assert numbered.columns == ["id"]


def test_unique_constraints_beside_the_key() -> None:
    accounts = table("accounts", "id, email string", "id", indexes=[unique("email"), unique("id")])
    (constraint,) = found("unique constraint", accounts)
    assert constraint.columns == ["email"] and "transaction" in constraint.strategy


def test_keys_that_fold_case() -> None:
    one = SourceColumn(name="email", type="varchar(9)", kind="string", is_case_insensitive=True)
    keyed = SourceTable(name="accounts", columns=[one], primary_key=["email"])
    assert found("collation", keyed)
    assert not found("collation", replace(keyed, primary_key=[]))


@pytest.mark.parametrize(
    ("written", "kind", "dialect", "words"),
    [
        ("decimal(65,30)", "decimal", "mysql", "more than the 38 digits"),
        ("numeric", "decimal", "postgresql", "without a precision"),
        ("bigint(20) unsigned", "integer", "mariadb", "unsigned 64-bit"),
        ("tinyint(1)", "boolean", "mysql", "-128 to 127"),
        ("money", "decimal", "postgresql", "locale"),
        ("interval", "other", "postgresql", "months, days and seconds"),
        ("tsvector", "other", "postgresql", "full-text search"),
        ("int4range", "other", "postgresql", "without a counterpart"),
        ("datetime", "datetime", "mysql", "0000-00-00"),
        ("date", "date", "postgresql", "no type for dates"),
        ("time", "time", "mariadb", "838 hours"),
        ("set('a')", "set", "mysql", "cannot be empty"),
        ("enum('a')", "enum", "mysql", "refuses other values"),
        ("text[]", "array", "postgresql", "a list"),
        ("point", "geometry", "mysql", "places"),
        ("jsonb", "json", "postgresql", "32 levels"),
        ("uuid", "uuid", "postgresql", "36 bytes"),
        ("bit(4)", "integer", "mysql", "bits"),
        ("double", "float", "mysql", "binary fractions"),
        ("", "other", "sqlite", "without a type"),
    ],
)
def test_types_that_need_care(written: str, kind: ColumnKind, dialect: str, words: str) -> None:
    said = typed(written, kind, dialect)
    assert any(words in one.what for one in said), said


@pytest.mark.parametrize(
    ("written", "kind", "dialect"),
    [
        ("int(11)", "integer", "mysql"),
        ("varchar(20)", "string", "mysql"),
        ("numeric(10,2)", "decimal", "postgresql"),
        ("text", "string", "postgresql"),
        ("boolean", "boolean", "postgresql"),
    ],
)
def test_types_that_do_not(written: str, kind: ColumnKind, dialect: str) -> None:
    assert typed(written, kind, dialect) == []


def test_a_type_is_told_only_in_its_own_words() -> None:
    assert len(typed("interval", "other", "postgresql")) == 1
    assert len(typed("decimal(65,30)", "decimal", "mysql")) == 1


def large(written: str, kind: ColumnKind, length: int | None, row_bytes: int) -> list[Difficulty]:
    columns = [
        SourceColumn(name="id", type="int", kind="integer"),
        SourceColumn(name="x", type=written, kind=kind, length_max=length),
    ]
    one = SourceTable(
        name="docs",
        columns=columns,
        primary_key=["id"],
        row_count=10,
        data_bytes=10 * row_bytes,
    )
    return found("large values", one)


def test_values_over_the_item_limit() -> None:
    assert [one.severity for one in large("longblob", "binary", 2**32 - 1, 100)] == ["care"]
    assert [one.severity for one in large("longblob", "binary", 2**32 - 1, 300 * KB)] == [
        "obstacle"
    ]
    assert [one.severity for one in large("mediumtext", "string", 2**24 - 1, 100)] == ["note"]
    assert [one.severity for one in large("text", "string", None, 9 * KB)] == ["note"]
    assert large("text", "string", None, 100) == [], "most hold little"
    assert large("varbinary(16)", "binary", 16, 100) == []


def test_a_text_beside_a_picture_is_not_what_makes_rows_large() -> None:
    staff = SourceTable(
        name="staff",
        columns=[
            SourceColumn(name="id", type="int", kind="integer"),
            SourceColumn(name="name", type="text", kind="string"),
            SourceColumn(name="picture", type="bytea", kind="binary"),
        ],
        primary_key=["id"],
        row_count=20,
        data_bytes=20 * 30 * KB,
    )
    (said,) = found("large values", staff)
    assert said.columns == ["picture"]


def test_one_row_on_a_page_of_16_kb_is_not_a_large_row() -> None:
    one = SourceTable(
        name="settings",
        columns=[
            SourceColumn(name="id", type="int", kind="integer"),
            SourceColumn(name="value", type="text", kind="string"),
        ],
        primary_key=["id"],
        row_count=1,
        data_bytes=16 * KB,
    )
    assert found("large values", one) == []


def test_what_surrounds_a_table() -> None:
    orders = table(
        "orders",
        "id, customer, size, order_of_the_golden_pheasant",
        "id",
        foreign_keys=[
            foreign_key("customer", "customers.id", "CASCADE"),
            foreign_key("size", "sizes.id"),
        ],
        triggers=["stamp"],
        indexes=[SourceIndex(name="words", columns=["size"], kind="fulltext")],
        partitions=["p1", "p2"],
    )
    customers = table("customers", "id", "id")
    said = {one.kind: one for one in find_difficulties(inventory(orders, customers))}
    assert "stamp" in said["trigger"].what
    assert "words in texts" in said["ad-hoc queries"].what
    assert "2 partitions" in said["partitions"].what
    keys = found("foreign key", orders, customers)
    assert any("ON DELETE CASCADE" in one.what for one in keys)
    assert any("refers to sizes, which is not in the inventory" in one.what for one in keys)
    names = [one.what for one in found("name", orders, customers)]
    assert any("size of orders is a reserved word" in what for what in names)
    assert any("order_of_the_golden_pheasant" in what for what in names)


def test_star_schemas() -> None:
    dates, shops = table("dim_date", "id", "id"), table("shops", "id", "id")
    sold = table(
        "sold",
        "id, day, shop, item, amount decimal, pieces",
        "id",
        foreign_keys=[
            foreign_key("day", "dim_date.id"),
            foreign_key("shop", "shops.id"),
            foreign_key("item", "shops.id"),
        ],
    )
    assert {one.table for one in found("analytical", dates, shops, sold)} == {"dim_date", "sold"}


def test_views_routines_and_what_was_left_out() -> None:
    whole = Inventory(
        dialect="postgresql",
        server_version="15",
        database="shop",
        tables=[table("orders", "order_id", "order_id")],
        views=["names", "totals"],
        analytical_views=["totals"],
        routines=["tidy"],
        skipped=[SkippedObject(name="far", reason="a foreign table")],
    )
    assert [(one.kind, one.severity) for one in find_difficulties(whole)] == [
        ("analytical", "care"),
        ("routine", "care"),
        ("view", "note"),
        ("left out", "note"),
    ]


def test_circles() -> None:
    def pointing(name: str, *targets: str) -> SourceTable:
        keys = [foreign_key(target, f"{target}.id") for target in targets]
        return table(name, "id", "id", foreign_keys=keys)

    tables = [
        pointing("a", "b"),
        pointing("b", "c"),
        pointing("c", "a"),
        pointing("d", "a"),
        pointing("e", "e"),
    ]
    assert foreign_key_cycles(tables) == [["a", "b", "c"]]


def test_the_challenges_of_the_whitepaper() -> None:
    large = table("wide", "a, b, c date", "a b c", row_count=1, data_bytes=50 * GB)
    whole = inventory(large)
    challenges = find_challenges(
        whole, Goals(bandwidth_mbit_per_second=10), find_difficulties(whole)
    )
    assert [one.kind for one in challenges] == [
        "writes continue",
        "volume",
        "transformation",
        "key structure",
    ]
    assert "50.0 GB take 11.9 hours at 10 Mbit/s" in challenges[1].what


def test_a_reference_whose_table_stands_in_the_row() -> None:
    comments = table("comments", "id, commentable_type string, commentable_id, body string", "id")
    (one,) = found("polymorphic reference", comments)
    assert one.columns == ["commentable_type", "commentable_id"]
    assert "{commentable_type}#{commentable_id}" in one.strategy
    tracker = table("transactions", "id, ObjectType string, ObjectId", "id")
    django = table("admin_log", "id, content_type_id, object_id string", "id")
    assert len(found("polymorphic reference", tracker, django)) == 2
    kinds = table("kinds", "id, name string", "id")
    declared = table(
        "accounts", "id, kind_type string, kind_id", "id",
        foreign_keys=[foreign_key("kind_id", "kinds.id")],
    )  # fmt: skip
    assert found("polymorphic reference", kinds, declared) == []
    assert found("polymorphic reference", table("pets", "id, type string", "id")) == []


def test_the_kind_of_a_thing_beside_its_own_key_is_no_reference() -> None:
    """As in the whitepaper's Games: GameType says what kind of game GameId is."""
    games = table("Games", "GameId string, GameName string, GameType string", "GameId")
    assert found("polymorphic reference", games) == []
    lines = table("order_lines", "id, order_id, order_type string", "id")
    assert len(found("polymorphic reference", lines)) == 1
    assert found("polymorphic reference", lines, table("orders", "id", "id")) == []

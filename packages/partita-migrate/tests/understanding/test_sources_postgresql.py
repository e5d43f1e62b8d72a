"""Tests the inventory of everything that a PostgreSQL schema can contain."""

from __future__ import annotations

import pytest

from partita.errors import PartitaError
from partita_migrate.understanding.schema.inventory import ForeignKey, Inventory
from testkit.servers.database_servers import DatabaseServer

from ..conftest import MakeFolder
from ..inventories import inventory_of, table_of

ODD_TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'it''s fine');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN year AS integer CHECK (VALUE BETWEEN 1901 AND 2155);
CREATE DOMAIN late_year AS year;
CREATE DOMAIN short AS varchar(7);
CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION pg_stat_statements;
CREATE TABLE odd_types (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    old_id serial,
    big bigint,
    amount numeric(5,2),
    any_number numeric,
    cost money,
    ratio double precision,
    active boolean,
    code char(3),
    title varchar(128),
    story text,
    nick citext,
    feeling mood,
    released year,
    released_late late_year,
    label short,
    features text[],
    numbers integer[][],
    document jsonb,
    store hstore,
    guid uuid,
    picture bytea,
    born date,
    opens time,
    noted timestamp,
    changed timestamptz DEFAULT now(),
    lasts interval,
    place point,
    address inet,
    flags bit(4),
    words tsvector,
    span int4range,
    two pair,
    doubled numeric GENERATED ALWAYS AS (amount * 2) STORED
);
CREATE INDEX searching ON odd_types USING gin (words);
CREATE INDEX lowered ON odd_types (lower(title), code);
CREATE UNIQUE INDEX partly ON odd_types (code) WHERE active;
"""
KINDS = {
    "id": "integer",
    "old_id": "integer",
    "big": "integer",
    "amount": "decimal",
    "any_number": "decimal",
    "cost": "decimal",
    "ratio": "float",
    "active": "boolean",
    "code": "string",
    "title": "string",
    "story": "string",
    "nick": "string",
    "feeling": "enum",
    "released": "integer",
    "released_late": "integer",
    "label": "string",
    "features": "array",
    "numbers": "array",
    "document": "json",
    "store": "json",
    "guid": "uuid",
    "picture": "binary",
    "born": "date",
    "opens": "time",
    "noted": "datetime",
    "changed": "datetime",
    "lasts": "other",
    "place": "geometry",
    "address": "string",
    "flags": "string",
    "words": "other",
    "span": "other",
    "two": "other",
    "doubled": "decimal",
}


def test_every_type_has_its_kind(postgresql: DatabaseServer, make_folder: MakeFolder) -> None:
    inventory = inventory_of(make_folder(postgresql.create("odd_types", ODD_TYPES)))
    table = table_of(inventory, "odd_types")
    columns = {column.name: column for column in table.columns}
    assert {name: column.kind for name, column in columns.items()} == KINDS
    assert list(columns) == list(KINDS), "in the source's order"
    assert columns["released_late"].type == "late_year (integer)"
    assert (columns["label"].type, columns["label"].length_max) == (
        "short (character varying(7))",
        7,
    )
    assert columns["id"].is_auto_increment and columns["old_id"].is_auto_increment
    assert not columns["big"].is_auto_increment
    assert columns["doubled"].is_generated and not columns["changed"].is_generated
    assert columns["nick"].is_case_insensitive and not columns["story"].is_case_insensitive
    indexes = {index.name: index for index in table.indexes}
    assert indexes["searching"].kind == "gin"
    assert indexes["lowered"].columns == ["code"] and indexes["lowered"].expressions
    assert indexes["partly"].is_unique and indexes["partly"].where == "active"
    assert inventory.views == [], "what extensions bring is theirs"
    assert inventory.routines == []
    assert "belongs to the extension pg_stat_statements" in {
        one.reason for one in inventory.skipped
    }


LIBRARY = """
CREATE SCHEMA sales; CREATE SCHEMA "Old Stuff";
CREATE TABLE "Author" ("AuthorId" int PRIMARY KEY, "Full Name" text UNIQUE);
CREATE TABLE sales.orders (id int PRIMARY KEY, author int REFERENCES "Author" ("AuthorId"));
CREATE TABLE sales.lines (
    order_id int REFERENCES sales.orders ON DELETE CASCADE, line int, PRIMARY KEY (order_id, line)
);
CREATE TABLE orders (id int PRIMARY KEY, other int REFERENCES sales.orders (id));
CREATE TABLE "Old Stuff"."Dusty.Box" (id int PRIMARY KEY);
CREATE TABLE hits (day date NOT NULL, n int) PARTITION BY RANGE (day);
CREATE TABLE hits_2025 PARTITION OF hits FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE hits_2026 PARTITION OF hits FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')
    PARTITION BY LIST (n);
CREATE TABLE hits_2026_1 PARTITION OF hits_2026 FOR VALUES IN (1);
ALTER TABLE hits_2025 ADD FOREIGN KEY (n) REFERENCES sales.orders ON DELETE SET NULL;
ALTER TABLE hits_2026_1 ADD FOREIGN KEY (n) REFERENCES sales.orders ON DELETE SET NULL;
INSERT INTO sales.orders VALUES (1, NULL);
CREATE TABLE payment (id int, at date);
CREATE TABLE payment_2007 (CHECK (at < '2008-01-01')) INHERITS (payment);
CREATE TABLE cities (name text PRIMARY KEY, people int);
CREATE TABLE capitals (state text) INHERITS (cities);
CREATE VIEW seen AS SELECT * FROM cities;
CREATE MATERIALIZED VIEW sums AS SELECT day, count(*) FROM hits GROUP BY day;
CREATE FUNCTION sales.twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2';
CREATE FUNCTION noting() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER noted BEFORE UPDATE ON cities FOR EACH ROW EXECUTE FUNCTION noting();
INSERT INTO hits VALUES ('2025-05-05', 1), ('2026-05-05', 1), ('2026-06-06', 1);
INSERT INTO payment VALUES (1, '2020-01-01'); INSERT INTO payment_2007 VALUES (2, '2007-01-01');
INSERT INTO cities VALUES ('Ulm', 1), ('Jena', 2); INSERT INTO capitals VALUES ('Bern', 3, 'BE');
"""


@pytest.fixture
def library(postgresql: DatabaseServer, make_folder: MakeFolder) -> Inventory:
    return inventory_of(make_folder(postgresql.create("library", LIBRARY)))


def test_tables_of_all_schemas(library: Inventory) -> None:
    assert [(table.name, table.schema) for table in library.tables] == [
        ("Author", None),
        ("Old Stuff.Dusty.Box", "Old Stuff"),
        ("capitals", None),
        ("cities", None),
        ("hits", None),
        ("orders", None),
        ("payment", None),
        ("sales.lines", "sales"),
        ("sales.orders", "sales"),
    ]
    assert library.views == ["seen", "sums"] and library.analytical_views == ["sums"]
    assert library.routines == ["noting", "sales.twice"]


def test_only_the_schemas_that_are_asked_for(
    postgresql: DatabaseServer, make_folder: MakeFolder
) -> None:
    url = postgresql.create("library", LIBRARY)
    inventory = inventory_of(make_folder(url, 'schemas = ["sales"]'))
    assert [table.name for table in inventory.tables] == ["sales.lines", "sales.orders"]
    with pytest.raises(PartitaError, match=r"no schema 'sails'; .* Old Stuff, public, sales\."):
        inventory_of(make_folder(url, 'schemas = ["sails"]'))


def test_references_across_schemas(library: Inventory) -> None:
    (to_sales,) = table_of(library, "orders").foreign_keys
    assert to_sales.referenced_table == "sales.orders"
    (to_author,) = table_of(library, "sales.orders").foreign_keys
    assert to_author == ForeignKey(
        columns=["author"], referenced_table="Author", referenced_columns=["AuthorId"]
    )
    (to_orders,) = table_of(library, "sales.lines").foreign_keys
    assert (to_orders.referenced_table, to_orders.on_delete) == ("sales.orders", "CASCADE")
    (unique,) = table_of(library, "Author").indexes
    assert unique.is_unique and unique.columns == ["Full Name"]


def test_partitions_are_parts_of_their_table(library: Inventory) -> None:
    hits = table_of(library, "hits")
    assert hits.partitions == ["hits_2025", "hits_2026", "hits_2026_1"]
    assert (hits.row_count, hits.is_row_count_exact) == (3, True)
    assert hits.data_bytes
    assert hits.foreign_keys == [
        ForeignKey(
            columns=["n"],
            referenced_table="sales.orders",
            referenced_columns=["id"],
            on_delete="SET NULL",
        )
    ], "though only its partitions have it"
    payment = table_of(library, "payment")
    assert payment.partitions == ["payment_2007"], "an heir that adds no column is a part too"
    assert payment.row_count == 2


def test_an_heir_with_columns_of_its_own_is_a_table(library: Inventory) -> None:
    assert table_of(library, "capitals").inherits == ["cities"]
    cities = table_of(library, "cities")
    assert cities.is_inherited and cities.row_count == 2, "without the capital"
    assert cities.triggers == ["noted"]


def test_rows_are_estimated_where_counting_reads_too_much(
    postgresql: DatabaseServer, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partita_migrate.understanding.sources.row_counts.COUNTED_BYTES_MAX", 1000)
    script = """
        CREATE TABLE analysed WITH (autovacuum_enabled = off) AS
            SELECT i, repeat('x', 100) AS x FROM generate_series(1, 5000) AS i;
        CREATE TABLE never WITH (autovacuum_enabled = off) AS SELECT * FROM analysed;
        ANALYZE analysed;
    """
    inventory = inventory_of(make_folder(postgresql.create("large", script)))
    analysed, never = table_of(inventory, "analysed"), table_of(inventory, "never")
    assert (analysed.row_count, analysed.is_row_count_exact) == (5000, False)
    assert 1000 < never.row_count < 20_000 and not never.is_row_count_exact


def test_a_locked_table_does_not_hold_us(
    postgresql: DatabaseServer, make_folder: MakeFolder
) -> None:
    folder = make_folder(postgresql.create("locked", "CREATE TABLE t (a INT PRIMARY KEY)"))
    holder = postgresql.connect("locked")
    try:
        holder.autocommit = False
        holder.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        table = table_of(inventory_of(folder), "t")
        assert not table.is_row_count_exact and table.primary_key == ["a"]
    finally:
        holder.close()


def test_a_table_that_may_not_be_read_is_there_and_said_so(
    postgresql: DatabaseServer, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgresql.create(
        "guarded",
        """
        DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD 'little';
        CREATE TABLE open_one (a int PRIMARY KEY); CREATE TABLE closed (a int PRIMARY KEY);
        GRANT SELECT ON open_one TO reader; INSERT INTO closed VALUES (1);
        """,
    )
    folder = make_folder(postgresql.url("guarded", "reader"))
    monkeypatch.setenv("PARTITA_SOURCE_PASSWORD", "little")
    inventory = inventory_of(folder)
    readable = {table.name: table.is_readable for table in inventory.tables}
    assert readable == {"closed": False, "open_one": True}

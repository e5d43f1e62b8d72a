"""Tests the inventory of everything that a MariaDB schema can contain."""

from __future__ import annotations

import pytest

from partita_migrate.understanding.schema.inventory import ForeignKey, Inventory
from partita_migrate.workspace.migration_folder import to_json
from testkit.servers.database_servers import DatabaseServer

from ..conftest import MakeFolder
from ..inventories import inventory_of, table_of

ODD_TYPES = """
CREATE TABLE odd_types (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT,
    active TINYINT(1) NOT NULL DEFAULT 1,
    small TINYINT,
    big BIGINT UNSIGNED,
    released YEAR,
    rating ENUM('G','PG','it''s') DEFAULT 'G',
    features SET('Trailers','Deleted Scenes'),
    price DECIMAL(5,2) NOT NULL,
    wide DECIMAL(65,30),
    ratio DOUBLE,
    flag BIT(1),
    flags BIT(12),
    spent TIME,
    born DATE,
    changed TIMESTAMP NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
    noted DATETIME(6),
    title VARCHAR(128) CHARACTER SET latin1 COLLATE latin1_bin,
    story LONGTEXT,
    picture MEDIUMBLOB,
    hash BINARY(16),
    extra JSON,
    guid UUID,
    address INET6,
    place POINT NOT NULL,
    total DECIMAL(10,2) AS (price * 2) STORED,
    shout VARCHAR(200) AS (upper(title)) VIRTUAL,
    PRIMARY KEY (id),
    FULLTEXT KEY words (story),
    SPATIAL KEY places (place),
    KEY by_year (released, born)
)
"""
KINDS = {
    "id": "integer",
    "active": "boolean",
    "small": "integer",
    "big": "integer",
    "released": "integer",
    "rating": "enum",
    "features": "set",
    "price": "decimal",
    "wide": "decimal",
    "ratio": "float",
    "flag": "boolean",
    "flags": "integer",
    "spent": "time",
    "born": "date",
    "changed": "datetime",
    "noted": "datetime",
    "title": "string",
    "story": "string",
    "picture": "binary",
    "hash": "binary",
    "extra": "json",
    "guid": "uuid",
    "address": "string",
    "place": "geometry",
    "total": "decimal",
    "shout": "string",
}


def test_every_type_has_its_kind(mariadb: DatabaseServer, make_folder: MakeFolder) -> None:
    inventory = inventory_of(make_folder(mariadb.create("odd_types", ODD_TYPES)))
    table = table_of(inventory, "odd_types")
    columns = {column.name: column for column in table.columns}
    assert {name: column.kind for name, column in columns.items()} == KINDS
    assert list(columns) == list(KINDS), "in the source's order"
    assert inventory.dialect == "mariadb"
    assert columns["rating"].type == "enum('G','PG','it''s')"
    assert columns["big"].type == "bigint(20) unsigned"
    assert columns["id"].is_auto_increment and not columns["small"].is_auto_increment
    assert columns["total"].is_generated and columns["shout"].is_generated
    assert not columns["changed"].is_generated
    assert columns["picture"].length_max == 16_777_215
    assert columns["title"].length_max == 128
    assert not columns["title"].is_case_insensitive and columns["rating"].is_case_insensitive
    kinds = {index.name: index.kind for index in table.indexes}
    assert kinds == {"by_year": None, "places": "spatial", "words": "fulltext"}


SHOP = """
CREATE TABLE `order` (id INT PRIMARY KEY, `select` INT, `two words` INT);
CREATE TABLE `Order Details` (
    order_id INT, product INT, quantity INT, PRIMARY KEY (order_id, product),
    FOREIGN KEY (order_id) REFERENCES `order` (id) ON DELETE CASCADE
);
CREATE TABLE regions (country CHAR(2), code CHAR(3), PRIMARY KEY (country, code));
CREATE TABLE towns (
    name VARCHAR(50) PRIMARY KEY, country CHAR(2), code CHAR(3), slug VARCHAR(9),
    UNIQUE KEY slugs (slug), FOREIGN KEY (country, code) REFERENCES regions (country, code)
);
CREATE TABLE streets (town_slug VARCHAR(9), FOREIGN KEY (town_slug) REFERENCES towns (slug));
CREATE TABLE store (id INT PRIMARY KEY, manager INT NOT NULL);
CREATE TABLE staff (
    id INT PRIMARY KEY, store INT NOT NULL,
    CONSTRAINT staff_store FOREIGN KEY (store) REFERENCES store (id)
);
ALTER TABLE store ADD CONSTRAINT store_staff FOREIGN KEY (manager) REFERENCES staff (id);
CREATE TABLE measured (id INT, at DATE NOT NULL, PRIMARY KEY (id, at)) PARTITION BY RANGE (YEAR(at))
    (PARTITION p2025 VALUES LESS THAN (2026), PARTITION p2026 VALUES LESS THAN MAXVALUE);
CREATE TABLE remembered (id INT PRIMARY KEY, x INT) WITH SYSTEM VERSIONING;
CREATE SEQUENCE numbers;
CREATE VIEW plain AS SELECT id FROM `order`;
CREATE VIEW totals AS SELECT order_id, SUM(quantity) FROM `Order Details` GROUP BY order_id;
CREATE TRIGGER counting AFTER INSERT ON `order` FOR EACH ROW BEGIN SET @x = 1; SET @y = 2; END;
CREATE PROCEDURE tidy() BEGIN SELECT 1; END;
INSERT INTO `order` VALUES (1, 2, 3), (2, 3, 4);
INSERT INTO measured VALUES (1, '2025-05-05'), (2, '2026-05-05'), (3, '2026-06-06');
"""


@pytest.fixture
def shop(mariadb: DatabaseServer, make_folder: MakeFolder) -> Inventory:
    return inventory_of(make_folder(mariadb.create("shop", SHOP)))


def test_tables_and_what_is_not_one(shop: Inventory) -> None:
    names = [table.name for table in shop.tables]
    assert names == sorted(names)
    assert "remembered" in names, "a system-versioned table is a table"
    assert [(one.name, one.reason) for one in shop.skipped] == [
        ("numbers", "a sequence, not a table")
    ]
    assert shop.views == ["plain", "totals"] and shop.analytical_views == ["totals"]
    assert shop.routines == ["tidy"]


def test_keys(shop: Inventory) -> None:
    assert table_of(shop, "Order Details").primary_key == ["order_id", "product"]
    assert table_of(shop, "Order Details").foreign_keys == [
        ForeignKey(
            columns=["order_id"],
            referenced_table="order",
            referenced_columns=["id"],
            on_delete="CASCADE",
        )
    ]
    (composite,) = table_of(shop, "towns").foreign_keys
    assert composite.columns == composite.referenced_columns == ["country", "code"]
    (to_unique,) = table_of(shop, "streets").foreign_keys
    assert (to_unique.referenced_table, to_unique.referenced_columns) == ("towns", ["slug"])
    assert table_of(shop, "streets").primary_key == []
    slugs = [index for index in table_of(shop, "towns").indexes if index.is_unique]
    assert [(index.name, index.columns) for index in slugs] == [("slugs", ["slug"])]


def test_rows_triggers_and_partitions(shop: Inventory) -> None:
    order = table_of(shop, "order")
    assert (order.row_count, order.is_row_count_exact) == (2, True)
    assert order.data_bytes
    assert order.triggers == ["counting"]
    measured = table_of(shop, "measured")
    assert measured.partitions == ["p2025", "p2026"] and measured.row_count == 3


def test_a_second_reading_is_the_same_to_the_byte(
    mariadb: DatabaseServer, make_folder: MakeFolder
) -> None:
    folder = make_folder(mariadb.create("shop", SHOP))
    assert to_json(inventory_of(folder)) == to_json(inventory_of(folder))


def test_a_large_table_is_not_counted(
    mariadb: DatabaseServer, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partita_migrate.understanding.sources.row_counts.COUNTED_BYTES_MAX", 1000)
    script = """
        CREATE TABLE large (id INT PRIMARY KEY, x CHAR(100));
        INSERT INTO large SELECT seq, 'x' FROM seq_1_to_5000;
        ANALYZE TABLE large;
    """
    inventory = inventory_of(make_folder(mariadb.create("large", script)))
    table = table_of(inventory, "large")
    assert not table.is_row_count_exact
    assert 3000 < table.row_count < 7000


def test_a_locked_table_does_not_hold_us(mariadb: DatabaseServer, make_folder: MakeFolder) -> None:
    folder = make_folder(mariadb.create("locked", "CREATE TABLE t (a INT PRIMARY KEY)"))
    holder = mariadb.connect("locked")
    try:
        holder.cursor().execute("LOCK TABLES t WRITE")
        inventory = inventory_of(folder)
        table = table_of(inventory, "t")
        assert not table.is_row_count_exact and table.primary_key == ["a"]
    finally:
        holder.close()

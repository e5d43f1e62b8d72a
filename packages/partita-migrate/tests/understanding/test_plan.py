"""Tests `plan` on real servers, with schemas like those of well-known sample databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import PartitaError
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.understanding.planning.migration_plan import MigrationPlan
from partita_migrate.understanding.schema.inventory import read_inventory
from partita_migrate.workspace.migration_folder import Folder
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from ..conftest import MakeFolder

# A video rental: circular foreign keys, two-column keys, lookups, a hierarchy of places, odd types.
RENTALS_MARIADB = """
CREATE TABLE country (country_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
    country VARCHAR(50) NOT NULL, last_update TIMESTAMP);
CREATE TABLE city (city_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, city VARCHAR(50) NOT NULL,
    country_id SMALLINT UNSIGNED NOT NULL, last_update TIMESTAMP,
    FOREIGN KEY (country_id) REFERENCES country (country_id));
CREATE TABLE address (address_id INT AUTO_INCREMENT PRIMARY KEY, address VARCHAR(50),
    city_id SMALLINT UNSIGNED NOT NULL, location POINT NOT NULL, SPATIAL KEY places (location),
    FOREIGN KEY (city_id) REFERENCES city (city_id));
CREATE TABLE language (language_id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name CHAR(20),
    last_update TIMESTAMP);
CREATE TABLE film (film_id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(128), release_year YEAR,
    language_id TINYINT UNSIGNED NOT NULL, original_language_id TINYINT UNSIGNED,
    special_features SET('Trailers', 'Commentaries'), rating ENUM('G', 'PG'),
    FOREIGN KEY (language_id) REFERENCES language (language_id),
    FOREIGN KEY (original_language_id) REFERENCES language (language_id));
CREATE TABLE film_text (film_id INT PRIMARY KEY, title VARCHAR(255), description TEXT,
    FULLTEXT KEY words (title, description)) ENGINE = MyISAM;
CREATE TABLE actor (actor_id INT AUTO_INCREMENT PRIMARY KEY, first_name VARCHAR(45),
    last_name VARCHAR(45), last_update TIMESTAMP);
CREATE TABLE film_actor (actor_id INT, film_id INT, last_update TIMESTAMP,
    PRIMARY KEY (actor_id, film_id), FOREIGN KEY (actor_id) REFERENCES actor (actor_id),
    FOREIGN KEY (film_id) REFERENCES film (film_id));
CREATE TABLE staff (staff_id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, picture BLOB,
    store_id TINYINT UNSIGNED NOT NULL, active BOOLEAN, email VARCHAR(50));
CREATE TABLE store (store_id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
    manager_staff_id TINYINT UNSIGNED NOT NULL, UNIQUE KEY manager (manager_staff_id),
    FOREIGN KEY (manager_staff_id) REFERENCES staff (staff_id));
ALTER TABLE staff ADD FOREIGN KEY (store_id) REFERENCES store (store_id);
CREATE TABLE inventory (inventory_id INT AUTO_INCREMENT PRIMARY KEY, film_id INT NOT NULL,
    store_id TINYINT UNSIGNED NOT NULL, last_update TIMESTAMP,
    FOREIGN KEY (film_id) REFERENCES film (film_id),
    FOREIGN KEY (store_id) REFERENCES store (store_id));
CREATE TABLE rental (rental_id INT AUTO_INCREMENT PRIMARY KEY, rental_date DATETIME NOT NULL,
    inventory_id INT NOT NULL, staff_id TINYINT UNSIGNED NOT NULL,
    UNIQUE KEY once (rental_date, inventory_id),
    FOREIGN KEY (inventory_id) REFERENCES inventory (inventory_id),
    FOREIGN KEY (staff_id) REFERENCES staff (staff_id));
CREATE VIEW sales_by_store AS SELECT staff_id, count(*) AS n FROM rental GROUP BY staff_id;
CREATE TRIGGER ins_film AFTER INSERT ON film FOR EACH ROW
    INSERT INTO film_text VALUES (NEW.film_id, NEW.title, NULL);
INSERT INTO language (name) VALUES ('English');
INSERT INTO film (title, language_id) SELECT concat('film ', seq), 1 FROM seq_1_to_50;
"""


def relationships(folder: Folder) -> set[tuple[str, str, str, str | None]]:
    return {
        (one.kind, one.parent, one.child, one.through)
        for one in read_inventory(folder).relationships
    }


def said(planned: MigrationPlan, kind: str) -> set[str | None]:
    return {one.table for one in planned.difficulties if one.kind == kind}


def test_video_rentals(mariadb: DatabaseServer, make_folder: MakeFolder) -> None:
    folder = make_folder(mariadb.create("rentals", RENTALS_MARIADB))
    planned = plan(folder)
    assert relationships(folder) == {
        ("one-to-many", "country", "city", None),
        ("one-to-many", "city", "address", None),
        ("lookup", "language", "film", None),
        ("one-to-many", "actor", "film_actor", None),
        ("one-to-many", "film", "film_actor", None),
        ("many-to-many", "actor", "film", "film_actor"),
        ("one-to-one", "staff", "store", None),
        ("one-to-many", "store", "staff", None),
        ("one-to-many", "film", "inventory", None),
        ("one-to-many", "store", "inventory", None),
        ("one-to-many", "inventory", "rental", None),
        ("one-to-many", "staff", "rental", None),
    }
    optional = [one for one in read_inventory(folder).relationships if one.is_optional]
    assert [one.child_columns for one in optional] == [["original_language_id"]]
    assert {"film", "rental"} < said(planned, "auto-increment key")
    assert said(planned, "unique constraint") == {"rental", "store"}
    assert said(planned, "trigger") == {"film"}
    assert said(planned, "ad-hoc queries") == {"address", "film_text"}
    assert [one.what for one in planned.difficulties if one.kind == "analytical"] == [
        "The view sales_by_store groups or aggregates rows."
    ]
    assert any("cycle: staff → store → staff" in one.what for one in planned.difficulties)
    assert read_inventory(folder).table("film").row_count == 50  # type: ignore[union-attr]


ORDERS_POSTGRESQL = """
CREATE TABLE "Categories" ("CategoryID" serial PRIMARY KEY, "CategoryName" varchar(15),
    "Picture" bytea);
CREATE TABLE "Products" ("ProductID" serial PRIMARY KEY, "ProductName" varchar(40),
    "CategoryID" int REFERENCES "Categories", "UnitPrice" money, "Discontinued" bit(1));
CREATE TABLE "Employees" ("EmployeeID" serial PRIMARY KEY, "LastName" varchar(20),
    "ReportsTo" int REFERENCES "Employees", "HomePhone" varchar(24));
CREATE TABLE "Orders" ("OrderID" serial PRIMARY KEY, "EmployeeID" int REFERENCES "Employees",
    "OrderDate" timestamp);
CREATE TABLE "Order Details" ("OrderID" int REFERENCES "Orders", "ProductID" int
    REFERENCES "Products", "Quantity" smallint, "Discount" real,
    PRIMARY KEY ("OrderID", "ProductID"));
CREATE TABLE passports (employee int PRIMARY KEY REFERENCES "Employees", number text UNIQUE);
CREATE TABLE user_sessions (token uuid PRIMARY KEY, data jsonb, expires timestamptz);
CREATE TABLE product_attributes ("ProductID" int REFERENCES "Products", attribute text,
    value text, PRIMARY KEY ("ProductID", attribute));
CREATE TABLE parts (id int PRIMARY KEY, name text, kind text, weight numeric);
CREATE TABLE part_closure (ancestor int REFERENCES parts, descendant int REFERENCES parts,
    depth int, PRIMARY KEY (ancestor, descendant));
CREATE TABLE raw_log (line text, at timestamptz);
"""


def test_orders(postgresql: DatabaseServer, make_folder: MakeFolder) -> None:
    folder = make_folder(postgresql.create("orders", ORDERS_POSTGRESQL))
    planned = plan(folder)
    assert relationships(folder) == {
        ("one-to-many", "Categories", "Products", None),
        ("hierarchy", "Employees", "Employees", None),
        ("one-to-many", "Employees", "Orders", None),
        ("one-to-many", "Orders", "Order Details", None),
        ("one-to-many", "Products", "Order Details", None),
        ("many-to-many", "Orders", "Products", "Order Details"),
        ("one-to-one", "Employees", "passports", None),
        ("entity-attribute-value", "Products", "product_attributes", None),
        ("one-to-many", "parts", "part_closure", None),
        ("hierarchy", "parts", "parts", "part_closure"),
    }
    workloads = {one.table: one.workload for one in planned.candidates}
    assert workloads["user_sessions"] == "session state"
    assert workloads["product_attributes"] == "entity-attribute-value"
    assert workloads["raw_log"] == "log and event data"
    assert planned.candidates[0].verdict == "good candidate"
    assert said(planned, "no primary key") == {"raw_log"}
    assert said(planned, "large values") == {"Categories"}
    names = {one.table for one in planned.difficulties if "cannot be the name" in one.what}
    assert names == {"Order Details"}


def test_the_files_are_the_same_every_time(
    server: DatabaseServer, make_folder: MakeFolder, tmp_path: Path
) -> None:
    script = {"mysql": RENTALS_MARIADB, "postgresql": ORDERS_POSTGRESQL}[server.scheme]
    folder = make_folder(server.create("twice", script))
    plan(folder)
    names = ("inventory.json", "plan.json", "plan.md")
    first = [(tmp_path / name).read_bytes() for name in names]
    plan(folder)
    assert [(tmp_path / name).read_bytes() for name in names] == first
    assert not any(PASSWORD.encode() in content for content in first)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "migration.toml"])


def test_an_empty_database_keeps_what_was_planned(
    server: DatabaseServer, make_folder: MakeFolder, tmp_path: Path
) -> None:
    plan(make_folder(server.create("filled", "CREATE TABLE t (a INT PRIMARY KEY)")))
    before = (tmp_path / "inventory.json").read_bytes()
    with pytest.raises(PartitaError, match="hollow has no tables"):
        plan(make_folder(server.create("hollow")))
    assert (tmp_path / "inventory.json").read_bytes() == before


def test_goals_decide_the_strategy(server: DatabaseServer, make_folder: MakeFolder) -> None:
    url = server.create("goals", "CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1)")
    slow = "[goals]\nbandwidth_mbit_per_second = 0.000001\n"
    kinds = {one.kind for one in plan(make_folder(url, slow)).challenges}
    assert kinds == {"writes continue", "volume"}
    still = '[goals]\nwrites_continue = false\ncutover = "full"\n'
    planned = plan(make_folder(url, still))
    assert planned.challenges == []
    assert "parallel" not in {step.phase for step in planned.recovery}
    with pytest.raises(PartitaError, match=r"\[goals\] does not have the expected form: .*cutover"):
        plan(make_folder(url, '[goals]\ncutover = "someday"\n'))


def test_five_hundred_tables(server: DatabaseServer, make_folder: MakeFolder) -> None:
    script = ";".join(
        f"CREATE TABLE t{n} (id INT PRIMARY KEY, parent INT REFERENCES t{n // 2} (id),"
        f" name VARCHAR(50) UNIQUE, at TIMESTAMP NULL)"
        for n in range(1, 501)
    ).replace("REFERENCES t0 (id)", "")
    folder = make_folder(server.create("many", script))
    steps = []
    planned = plan(folder, progress=lambda what, done, total: steps.append((what, done, total)))
    assert len(planned.candidates) == 500
    assert len(read_inventory(folder).relationships) == 499
    assert steps[-1] == ("Counting rows", 500, 500)
    assert ("Reading the schema", 500, 500) in steps

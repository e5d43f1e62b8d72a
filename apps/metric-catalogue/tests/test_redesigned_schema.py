"""The redesigned relational schema (figure 5.2) holds the same catalogue without metric groups."""

from __future__ import annotations

from typing import Any

import pytest
from pymysql.err import IntegrityError, OperationalError

from metric_catalogue.stores.mariadb.mariadb_catalogue import SCHEMA
from testkit.data.metric_population import fill
from testkit.servers.database_servers import MariaDB

OLD, NEW = "grouped", "redesigned"
METRICS = 90
RELATED = {
    OLD: "SELECT m.name, d.name FROM metrics m JOIN dimensions_metric_groups g "
    "ON g.metric_group_id = m.metric_group_id JOIN dimensions d ON d.id = g.dimension_id",
    NEW: "SELECT m.name, d.name FROM metrics m JOIN related_dimensions r ON r.metric_id = m.id "
    "JOIN dimensions d ON d.id = r.dimension_id",
}
SAME = (
    "SELECT id, name FROM dimensions",
    "SELECT id, name, created_at, created_by FROM metrics",
    "SELECT metric_id, version, updated_at, updated_by, deprecated_at, deprecated_by, "
    "deprecated_reason, aggregation_style, aggregation_param, value_type, chained_metric_id, "
    "chain_cutoff_date, hybrid_formula FROM metric_versions",
    "SELECT consumer_metric_id, consumed_metric_id FROM metric_relationships",
)


@pytest.fixture(scope="module")
def redesigned(mariadb: MariaDB) -> MariaDB:
    """Copies a catalogue from the old schema to the redesigned one."""
    for database, script in ((OLD, SCHEMA), (NEW, SCHEMA.with_name("redesigned.sql"))):
        mariadb.create(database)
        mariadb.execute(script.read_text(), database)
    fill(mariadb, OLD, METRICS)
    copy = SCHEMA.with_name("redesign.sql").read_text().replace("`old`", f"`{OLD}`")
    mariadb.execute(copy, NEW)
    return mariadb


def read(mariadb: MariaDB, database: str, statement: str) -> list[Any]:
    connection = mariadb.connect(database)
    cursor = connection.cursor()
    cursor.execute(statement)
    rows = sorted(cursor.fetchall(), key=repr)
    connection.close()
    return rows


def test_nothing_is_lost_without_the_groups(redesigned: MariaDB) -> None:
    for statement in SAME:
        old, new = (read(redesigned, database, statement) for database in (OLD, NEW))
        assert old == new and old, statement
    related = {database: read(redesigned, database, RELATED[database]) for database in RELATED}
    assert related[OLD] == related[NEW] and len(related[NEW]) > METRICS / 2
    tables = {name for (name,) in read(redesigned, NEW, "SHOW TABLES")}
    assert tables == {
        "dimensions",
        "metrics",
        "metric_versions",
        "metric_relationships",
        "related_dimensions",
    }


@pytest.mark.parametrize(
    "statement",
    [
        # A hybrid metric needs a formula, and a chained metric a cutoff date.
        "UPDATE metric_versions SET hybrid_formula = NULL WHERE value_type = 'HYBRID'",
        "UPDATE metric_versions SET chain_cutoff_date = NULL WHERE chained_metric_id IS NOT NULL",
        # A metric that another one consumes cannot be deleted.
        "DELETE FROM metrics WHERE id IN (SELECT consumed_metric_id FROM metric_relationships)",
        "INSERT INTO related_dimensions (metric_id, dimension_id) VALUES (1, 999999)",
    ],
)
def test_the_database_itself_refuses_what_breaks_a_rule(
    redesigned: MariaDB, statement: str
) -> None:
    with pytest.raises((IntegrityError, OperationalError)):
        read(redesigned, NEW, statement)


def test_a_metric_goes_with_its_versions_and_dimensions(redesigned: MariaDB) -> None:
    free = (
        "SELECT id FROM metrics WHERE id NOT IN (SELECT consumed_metric_id FROM "
        "metric_relationships) AND id NOT IN (SELECT chained_metric_id FROM metric_versions WHERE "
        "chained_metric_id IS NOT NULL) AND id IN (SELECT metric_id FROM related_dimensions)"
    )
    ((number,), *_) = read(redesigned, NEW, free)
    redesigned.execute(f"DELETE FROM metrics WHERE id = {number}", NEW)
    for table in ("metric_versions", "related_dimensions"):
        assert not read(redesigned, NEW, f"SELECT 1 FROM {table} WHERE metric_id = {number}")

"""The SQL statements for the relational schema of figure 5.1, and the mapping of rows to versions.

In this schema dimensions belong to the metric's group, and consumed metrics to the metric rather
than to a version. Only those of the latest version are kept.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from metric_catalogue.metrics.metric import Metric, MetricVersion, format_time, parse_time
from metric_catalogue.metrics.metric_rules import HYBRID_GROUP
from metric_catalogue.stores.mariadb.mariadb_connections import DatabaseSession, Row

NOT_MIGRATED, IN_MIGRATION, MIGRATED = "NOT_MIGRATED", "IN_MIGRATION", "MIGRATED"

VERSION_COLUMNS = (
    "version",
    "updated_at",
    "updated_by",
    "deprecated_at",
    "deprecated_by",
    "deprecated_reason",
    "aggregation_style",
    "aggregation_param",
    "value_type",
    "chain_cutoff_date",
    "hybrid_formula",
)
TIMES = {"updated_at", "deprecated_at", "chain_cutoff_date"}
SETS = {
    "related_dimensions": (
        "SELECT GROUP_CONCAT(d.name SEPARATOR '\\n') FROM dimensions_metric_groups g "
        "JOIN dimensions d ON d.id = g.dimension_id WHERE g.metric_group_id = m.metric_group_id"
    ),
    "consumed_metrics": (
        "SELECT GROUP_CONCAT(k.name SEPARATOR '\\n') FROM metric_relationships r "
        "JOIN metrics k ON k.id = r.consumed_metric_id WHERE r.consumer_metric_id = m.id"
    ),
}
_versions = ", ".join(f"v.{column}" for column in VERSION_COLUMNS)
_sets = ", ".join(f"({select}) AS {name}" for name, select in SETS.items())
_joined = (
    "FROM metrics m JOIN metric_versions v ON v.metric_id = m.id "
    "LEFT JOIN metrics c ON c.id = v.chained_metric_id"
)
_latest = "v.version = (SELECT MAX(x.version) FROM metric_versions x WHERE x.metric_id = m.id)"

_metrics = (
    "SELECT m.name, m.created_at, m.created_by, m.migratedToDynamoDB, "
    f"{_versions}, c.name AS chained_metric, {_sets} {_joined} WHERE {_latest}"
)
_all_versions = (
    f"SELECT m.name, {_versions}, c.name AS chained_metric, "
    f"IF({_latest}, ({SETS['related_dimensions']}), NULL) AS related_dimensions, "
    f"IF({_latest}, ({SETS['consumed_metrics']}), NULL) AS consumed_metrics {_joined}"
)

# Each read is one statement, so that its result is consistent despite concurrent writes.
SELECT_METRIC = f"{_metrics} AND m.name = %s"
SELECT_METRICS = f"{_metrics} AND m.name > %s ORDER BY m.name LIMIT %s"
SELECT_VERSIONS = f"{_all_versions} WHERE m.name = %s"
LOCK_METRIC = (
    "SELECT id, metric_group_id, migratedToDynamoDB FROM metrics WHERE name = %s FOR UPDATE"
)
SET_STATE = "UPDATE metrics SET migratedToDynamoDB = %s WHERE id = %s"


def version_of(row: Row) -> MetricVersion:
    return MetricVersion(**_fields(row))


def metric_of(row: Row) -> Metric:
    return Metric(
        **_fields(row),
        latest_version=row["version"],
        created_at=format_time(row["created_at"]),
        created_by=row["created_by"],
    )


def _fields(row: Row) -> dict[str, Any]:
    fields = {"name": row["name"], "chained_metric": row["chained_metric"]}
    for column in VERSION_COLUMNS:
        fields[column] = _read(row[column])
    for column in SETS:
        joined = row[column]
        fields[column] = tuple(sorted(joined.split("\n"))) if joined else None
    return fields


def _read(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value


def time_value(text: str) -> datetime:
    return parse_time(text).replace(tzinfo=None)


async def insert_metric(session: DatabaseSession, metric: Metric, group_id: int, state: str) -> int:
    return await session.insert(
        "INSERT INTO metrics (name, metric_group_id, created_at, created_by, migratedToDynamoDB) "
        "VALUES (%s, %s, %s, %s, %s)",
        metric.name,
        group_id,
        time_value(metric.created_at),
        metric.created_by,
        state,
    )


async def insert_version(session: DatabaseSession, metric_id: int, version: MetricVersion) -> None:
    values = [
        time_value(value) if column in TIMES and value is not None else value
        for column in VERSION_COLUMNS
        for value in [getattr(version, column)]
    ]
    await session.run(
        f"INSERT INTO metric_versions (metric_id, chained_metric_id, {', '.join(VERSION_COLUMNS)}) "
        f"VALUES (%s, (SELECT id FROM metrics WHERE name = %s){', %s' * len(values)})",
        metric_id,
        version.chained_metric,
        *values,
    )


async def set_related_dimensions(
    session: DatabaseSession, group_id: int, names: tuple[str, ...]
) -> None:
    await session.run("DELETE FROM dimensions_metric_groups WHERE metric_group_id = %s", group_id)
    await session.run_many(
        "INSERT INTO dimensions_metric_groups (metric_group_id, dimension_id) "
        "SELECT %s, id FROM dimensions WHERE name = %s",
        [(group_id, name) for name in names],
    )


async def set_consumed_metrics(
    session: DatabaseSession, metric_id: int, names: tuple[str, ...]
) -> None:
    await session.run("DELETE FROM metric_relationships WHERE consumer_metric_id = %s", metric_id)
    await session.run_many(
        "INSERT INTO metric_relationships (consumer_metric_id, consumed_metric_id) "
        "SELECT %s, id FROM metrics WHERE name = %s",
        [(metric_id, name) for name in names],
    )


async def consumers(session: DatabaseSession, metric_id: int) -> list[str]:
    """Returns the names of the hybrid metrics that consume a metric."""
    rows = await session.rows(
        "SELECT c.name FROM metric_relationships r JOIN metrics c ON c.id = r.consumer_metric_id "
        "WHERE r.consumed_metric_id = %s",
        metric_id,
    )
    return [row["name"] for row in rows]


async def chained_to(session: DatabaseSession, metric_id: int) -> list[str]:
    """Returns the names of the other metrics that have it as chained metric, in any version."""
    rows = await session.rows(
        "SELECT DISTINCT m.name FROM metric_versions v JOIN metrics m ON m.id = v.metric_id "
        "WHERE v.chained_metric_id = %s AND v.metric_id <> %s",
        metric_id,
        metric_id,
    )
    return [row["name"] for row in rows]


async def delete_metric(session: DatabaseSession, metric_id: int, name: str) -> None:
    """Deletes a metric with everything that refers to it, and the group of the same name."""
    for statement in (
        "DELETE FROM metric_relationships WHERE %s IN (consumer_metric_id, consumed_metric_id)",
        "DELETE FROM metric_versions WHERE metric_id = %s",
        # A rollback deletes metrics that other rows may still have as chained metric.
        "UPDATE metric_versions SET chained_metric_id = NULL, chain_cutoff_date = NULL "
        "WHERE chained_metric_id = %s",
        "DELETE FROM metrics WHERE id = %s",
    ):
        await session.run(statement, metric_id)
    for statement in (
        "DELETE g FROM dimensions_metric_groups g JOIN metric_groups n ON n.id = g.metric_group_id "
        "WHERE n.name = %s",
        "DELETE FROM metric_groups WHERE name = %s",
    ):
        await session.run(statement, name)


async def group_id(session: DatabaseSession, name: str) -> int | None:
    row = await session.row("SELECT id FROM metric_groups WHERE name = %s", name)
    return None if row is None else int(row["id"])


async def lock_references(session: DatabaseSession) -> None:
    """Locks a row until the end of the transaction, so that only one update at a time adds
    references: two concurrent ones could close a cycle."""
    await session.row("SELECT id FROM metric_groups WHERE name = %s FOR UPDATE", HYBRID_GROUP)


async def missing(session: DatabaseSession, table: str, names: set[str]) -> set[str]:
    """Returns the names that are not in a table; `table` is "dimensions" or "metrics"."""
    if not names:
        return set()
    places = ", ".join(["%s"] * len(names))
    statement = {
        "dimensions": f"SELECT name FROM dimensions WHERE name IN ({places})",
        "metrics": (
            "SELECT name FROM metrics m WHERE EXISTS "
            f"(SELECT 1 FROM metric_versions v WHERE v.metric_id = m.id) AND name IN ({places})"
        ),
    }[table]
    rows = await session.rows(statement, *sorted(names))
    return names - {row["name"] for row in rows}

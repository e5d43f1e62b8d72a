"""Copies one metric from DynamoDB back to MariaDB, for the rollback.

The way back of `partita migrate` cannot do this. It needs the primary key of a row in the item, and
these items have names in place of ids; rows that other rows refer to may not exist yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metric_catalogue.metrics.metric import Metric, MetricVersion
from metric_catalogue.metrics.metric_rules import HYBRID_GROUP
from metric_catalogue.stores.mariadb import metric_rows
from metric_catalogue.stores.mariadb.mariadb_connections import DatabaseSession
from metric_catalogue.stores.mariadb.metric_rows import (
    LOCK_METRIC,
    MIGRATED,
    NOT_MIGRATED,
    SET_STATE,
)

PLACEHOLDER = "1970-01-01T00:00:00.000Z"


async def copy_back(
    session: DatabaseSession, metric: Metric, versions: Sequence[MetricVersion]
) -> None:
    """Makes the rows of a metric equal to its items. Versions that differ are replaced."""
    metric_id, group = await _metric_row(session, metric)
    await _ensure_metrics(session, {v.chained_metric for v in versions if v.chained_metric})
    old_versions = {
        row["version"]: metric_rows.version_of(row)
        for row in await session.rows(metric_rows.SELECT_VERSIONS, metric.name)
    }
    for version in versions:
        if not is_same(old_versions.get(version.version), version):
            await _delete_version(session, metric_id, version.version)
            await metric_rows.insert_version(session, metric_id, version)
    for number in old_versions.keys() - {version.version for version in versions}:
        await _delete_version(session, metric_id, number)
    await _copy_sets(session, metric_id, group, metric)
    await session.run(SET_STATE, MIGRATED, metric_id)


def is_same(version: MetricVersion | None, other: MetricVersion | None) -> bool:
    """True when two versions are equal except for dimensions and consumed metrics, which MariaDB
    keeps for the latest version only."""
    if version is None or other is None:
        return False
    return all(
        getattr(version, field) == getattr(other, field)
        for field in MetricVersion.__struct_fields__
        if field not in metric_rows.SETS
    )


async def _metric_row(session: DatabaseSession, metric: Metric) -> tuple[int, int]:
    """Returns the id of the metric's row and that of its group. Creates what is missing, and
    completes a placeholder."""
    group_name = HYBRID_GROUP if metric.is_hybrid else metric.name
    await session.run("INSERT IGNORE INTO metric_groups (name) VALUES (%s)", group_name)
    group = await metric_rows.group_id(session, group_name)
    assert group is not None
    row = await session.row(LOCK_METRIC, metric.name)
    if row is None:
        return await metric_rows.insert_metric(session, metric, group, NOT_MIGRATED), group
    await session.run(
        "UPDATE metrics SET metric_group_id = %s, created_at = %s, created_by = %s WHERE id = %s",
        group,
        metric_rows.time_value(metric.created_at),
        metric.created_by,
        row["id"],
    )
    return row["id"], group


async def _copy_sets(session: DatabaseSession, metric_id: int, group: int, metric: Metric) -> None:
    if metric.is_hybrid:
        await _ensure_metrics(session, metric.consumed_metrics or ())
        await metric_rows.set_consumed_metrics(session, metric_id, metric.consumed_metrics or ())
        return
    await session.run_many(
        "INSERT IGNORE INTO dimensions (name) VALUES (%s)",
        [(name,) for name in metric.related_dimensions or ()],
    )
    await metric_rows.set_related_dimensions(session, group, metric.related_dimensions or ())


async def _ensure_metrics(session: DatabaseSession, names: Iterable[str]) -> None:
    """Inserts placeholder rows for metrics that are missing, so that foreign keys can refer to
    them. A row without versions does not count as a metric."""
    group = await metric_rows.group_id(session, HYBRID_GROUP)
    for name in sorted(names):
        await session.run(
            "INSERT IGNORE INTO metrics (name, metric_group_id, created_at, created_by) "
            "VALUES (%s, %s, %s, '')",
            name,
            group,
            metric_rows.time_value(PLACEHOLDER),
        )


async def _delete_version(session: DatabaseSession, metric_id: int, version: int) -> None:
    await session.run(
        "DELETE FROM metric_versions WHERE metric_id = %s AND version = %s", metric_id, version
    )

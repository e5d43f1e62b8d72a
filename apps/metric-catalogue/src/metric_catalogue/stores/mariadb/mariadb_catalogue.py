"""The catalogue in MariaDB, with the schema of figure 5.1 (`schema.sql`).

A `dual_write` runs inside the transaction, while the metric's row is locked. The other store is
therefore written in the same order, and the migration cannot copy the metric at the same time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from asyncmy.errors import IntegrityError

from metric_catalogue.metrics import metric_rules
from metric_catalogue.metrics.catalogue_errors import (
    MetricConflict,
    changed,
    in_migration,
    metric_exists,
    no_metric,
    no_version,
)
from metric_catalogue.metrics.metric import (
    HYBRID,
    Metric,
    MetricVersion,
    NewDimension,
    NewGroup,
    NewMetric,
)
from metric_catalogue.stores.mariadb import metric_rows
from metric_catalogue.stores.mariadb.mariadb_connections import (
    DUPLICATE,
    ConnectionPool,
    DatabaseSession,
    number,
)
from metric_catalogue.stores.mariadb.metric_rows import IN_MIGRATION, NOT_MIGRATED, SET_STATE
from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock
from partita_migrate import switch

SCHEMA = Path(__file__).with_name("schema.sql")
UPGRADE = Path(__file__).with_name("upgrade.sql")
SELECT_OLD_SCHEMA = (
    "SELECT 1 FROM information_schema.tables t WHERE t.table_schema = DATABASE() "
    "AND t.table_name = 'metrics' AND NOT EXISTS (SELECT 1 FROM information_schema.columns c "
    "WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name "
    "AND c.column_name = 'migratedToDynamoDB')"
)

DualWrite = Callable[[Metric | None, Metric, str], Awaitable[str]]
"""Writes the new version of a metric to the other store. Takes the previous version, the new one
and the state of the metric's migration, and returns the new state."""


async def create_schema(database: ConnectionPool) -> None:
    """Creates or upgrades the schema, under a lock, because several servers may start at the same
    time."""
    lock = database.lock(f"schema {database.address.database}")
    async with lock, database.session() as session:
        if await session.row(SELECT_OLD_SCHEMA) is not None:
            await _run_script(session, UPGRADE)
        await _run_script(session, SCHEMA)
        await session.run(switch.CREATE)


async def _run_script(session: DatabaseSession, script: Path) -> None:
    for statement in script.read_text().split(";"):
        if statement.strip():
            try:
                await session.run(statement)
            except IntegrityError as error:
                # A catalogue from before the migration had no unique keys, so rows may violate
                # them.
                raise PartitaError(
                    "The schema cannot be upgraded, because rows violate a constraint that it "
                    f"adds: {error}. Correct these rows, then start again."
                ) from error


class MariaDBCatalogue:
    """The catalogue in MariaDB or MySQL."""

    def __init__(self, database: ConnectionPool, clock: Clock = system_clock) -> None:
        self.database = database
        self.clock = clock

    # Reading

    async def get(self, name: str) -> Metric:
        metrics = await self.database.rows(metric_rows.SELECT_METRIC, name)
        if not metrics:
            raise no_metric(name)
        return metric_rows.metric_of(metrics[0])

    async def get_version(self, name: str, version: int) -> MetricVersion:
        versions = await self.database.rows(
            metric_rows.SELECT_VERSIONS + " AND v.version = %s", name, version
        )
        if not versions:
            # Raises a more precise error when the metric itself does not exist.
            await self.get(name)
            raise no_version(name, version)
        return metric_rows.version_of(versions[0])

    async def list_versions(self, name: str) -> list[MetricVersion]:
        versions = await self.all_versions(name)
        if not versions:
            raise no_metric(name)
        return versions

    async def all_versions(self, name: str) -> list[MetricVersion]:
        """Returns the versions in order; an empty list for a metric that does not exist."""
        versions = await self.database.rows(
            metric_rows.SELECT_VERSIONS + " ORDER BY v.version", name
        )
        return [metric_rows.version_of(row) for row in versions]

    async def list_metrics(self, limit: int, after: str) -> list[Metric]:
        metrics = await self.database.rows(metric_rows.SELECT_METRICS, after, limit)
        return [metric_rows.metric_of(row) for row in metrics]

    async def list_dimensions(self, limit: int, after: str) -> list[str]:
        statement = "SELECT name FROM dimensions WHERE name > %s ORDER BY name LIMIT %s"
        return [row["name"] for row in await self.database.rows(statement, after, limit)]

    async def consumers(self, name: str) -> list[str]:
        await self.get(name)
        statement = (
            "SELECT c.name FROM metric_relationships r "
            "JOIN metrics m ON m.id = r.consumed_metric_id "
            "JOIN metrics c ON c.id = r.consumer_metric_id WHERE m.name = %s ORDER BY c.name"
        )
        return [row["name"] for row in await self.database.rows(statement, name)]

    async def count_by_state(self) -> dict[str, int]:
        """Counts the metrics by the state of their migration. Rows without versions are
        placeholders and do not count."""
        counts = await self.database.rows(
            "SELECT m.migratedToDynamoDB AS state, COUNT(*) AS count FROM metrics m WHERE EXISTS "
            "(SELECT 1 FROM metric_versions v WHERE v.metric_id = m.id) GROUP BY state"
        )
        return {row["state"]: int(row["count"]) for row in counts}

    # Writing

    async def add_dimension(self, new: NewDimension) -> None:
        async with self.database.session() as session:
            try:
                await session.run("INSERT INTO dimensions (name) VALUES (%s)", new.name)
            except IntegrityError as error:
                _expect_duplicate(error)
                raise MetricConflict(f"There is a dimension {new.name} already.") from error

    async def add_group(self, new: NewGroup) -> None:
        async def work(session: DatabaseSession) -> None:
            names = set(new.related_dimensions)
            metric_rules.refuse_missing(
                "dimension", await metric_rows.missing(session, "dimensions", names)
            )
            # A hybrid metric has no group of its own, so the unique key would not notice it.
            if not await metric_rows.missing(session, "metrics", {new.name}):
                raise metric_exists(new.name)
            try:
                statement = "INSERT INTO metric_groups (name) VALUES (%s)"
                group = await session.insert(statement, new.name)
            except IntegrityError as error:
                _expect_duplicate(error)
                raise MetricConflict(f"There is a metric group {new.name} already.") from error
            await metric_rows.set_related_dimensions(session, group, tuple(sorted(names)))

        await self.database.transaction(work)

    async def add(self, new: NewMetric, user: str, dual_write: DualWrite | None = None) -> Metric:
        async def work(session: DatabaseSession) -> Metric:
            is_hybrid = new.value_type == HYBRID
            name = metric_rules.HYBRID_GROUP if is_hybrid else new.name
            group = await metric_rows.group_id(session, name)
            if group is None:
                raise metric_rules.no_group(new.name)
            related = None if is_hybrid else await self._group_dimensions(session, group)
            metric = metric_rules.first_version(new, related, user, self.clock())
            if metric.references:
                # Without the lock, a metric that it refers to could be deleted at the same time.
                await metric_rows.lock_references(session)
            absent = await metric_rows.missing(session, "metrics", metric.references)
            metric_rules.refuse_missing("metric", absent)
            try:
                metric_id = await metric_rows.insert_metric(session, metric, group, NOT_MIGRATED)
            except IntegrityError as error:
                _expect_duplicate(error)
                raise metric_exists(new.name) from error
            await metric_rows.insert_version(session, metric_id, metric)
            await metric_rows.set_consumed_metrics(
                session, metric_id, metric.consumed_metrics or ()
            )
            if dual_write is not None:
                await session.run(
                    SET_STATE, await dual_write(None, metric, NOT_MIGRATED), metric_id
                )
            return metric

        return await self.database.transaction(work)

    async def _group_dimensions(self, session: DatabaseSession, group: int) -> tuple[str, ...]:
        dimensions = await session.rows(
            "SELECT d.name FROM dimensions_metric_groups g JOIN dimensions d "
            "ON d.id = g.dimension_id WHERE g.metric_group_id = %s ORDER BY d.name",
            group,
        )
        return tuple(row["name"] for row in dimensions)

    async def revise(
        self,
        name: str,
        revision: metric_rules.Revision,
        expected: int | None,
        dual_write: DualWrite | None = None,
    ) -> Metric:
        async def work(session: DatabaseSession) -> Metric:
            locked = await session.row(metric_rows.LOCK_METRIC, name)
            row = await session.row(metric_rows.SELECT_METRIC, name)
            if locked is None or row is None:
                raise no_metric(name)
            state = locked["migratedToDynamoDB"]
            if dual_write is not None and state == IN_MIGRATION:
                raise in_migration(name)
            previous = metric_rows.metric_of(row)
            if expected is not None and previous.latest_version != expected:
                raise changed(name, expected, previous.latest_version)
            metric = revision(previous)
            await self._check_references(session, previous, metric)
            await metric_rows.insert_version(session, locked["id"], metric)
            await self._update_sets(session, locked["id"], locked["metric_group_id"], metric)
            # Without a dual write a copy in DynamoDB is outdated and has to be made again.
            state = await dual_write(previous, metric, state) if dual_write else NOT_MIGRATED
            await session.run(SET_STATE, state, locked["id"])
            return metric

        return await self.database.transaction(work)

    async def delete(self, name: str, expected: int | None) -> None:
        async def work(session: DatabaseSession) -> None:
            locked = await session.row(metric_rows.LOCK_METRIC, name)
            row = await session.row(metric_rows.SELECT_METRIC, name)
            if locked is None or row is None:
                raise no_metric(name)
            latest = metric_rows.metric_of(row).latest_version
            if expected is not None and latest != expected:
                raise changed(name, expected, latest)
            await metric_rows.lock_references(session)
            metric_rules.refuse_dependants(
                name,
                await metric_rows.consumers(session, locked["id"]),
                await metric_rows.chained_to(session, locked["id"]),
            )
            await metric_rows.delete_metric(session, locked["id"], name)

        await self.database.transaction(work)

    async def _check_references(
        self, session: DatabaseSession, previous: Metric, metric: Metric
    ) -> None:
        dimensions = set(metric.related_dimensions or ()) - set(previous.related_dimensions or ())
        absent = await metric_rows.missing(session, "dimensions", dimensions)
        metric_rules.refuse_missing("dimension", absent)
        added = metric_rules.added_references(previous, metric)
        if not added:
            return

        async def references(name: str) -> set[str]:
            row = await session.row(metric_rows.SELECT_METRIC, name)
            return metric_rows.metric_of(row).references if row is not None else set()

        await metric_rows.lock_references(session)
        metric_rules.refuse_missing("metric", await metric_rows.missing(session, "metrics", added))
        await metric_rules.refuse_cycle(metric.name, added, references)

    async def _update_sets(
        self, session: DatabaseSession, metric_id: int, group: int, metric: Metric
    ) -> None:
        if metric.is_hybrid:
            await metric_rows.set_consumed_metrics(
                session, metric_id, metric.consumed_metrics or ()
            )
        else:
            await metric_rows.set_related_dimensions(
                session, group, metric.related_dimensions or ()
            )

    def name_lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Returns the lock that is held while a metric of this name is added to either store."""
        return self.database.lock(f"metric {name}")


def _expect_duplicate(error: IntegrityError) -> None:
    if number(error) != DUPLICATE:
        raise error

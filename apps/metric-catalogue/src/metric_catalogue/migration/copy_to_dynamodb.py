"""Copies one metric from MariaDB to DynamoDB, or cleans up after a failed copy (figures 5.12 and
5.13).

This is not the `load` of `partita migrate`: the thesis migrates metric by metric, with a state in
each row (NOT_MIGRATED, IN_MIGRATION, MIGRATED) that dual writes respect. No binary log is read, so
the user of the database needs no rights of replication.
"""

from __future__ import annotations

from typing import Any

from metric_catalogue.metrics.catalogue_errors import MetricConflict, in_migration, no_metric
from metric_catalogue.migration import items_from_rows
from metric_catalogue.stores.dynamodb import transaction_actions
from metric_catalogue.stores.dynamodb.catalogue_tables import CONSUMER, GROUP
from metric_catalogue.stores.dynamodb.dynamodb_catalogue import DynamoDBCatalogue
from metric_catalogue.stores.dynamodb.metric_items import LATEST, Item
from metric_catalogue.stores.mariadb import metric_rows
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_connections import DatabaseSession
from metric_catalogue.stores.mariadb.metric_rows import IN_MIGRATION, MIGRATED, NOT_MIGRATED

IMPORTED, SKIPPED = "imported", "skipped"
CHANGE_STATE = (
    "UPDATE metrics SET migratedToDynamoDB = %s WHERE name = %s AND migratedToDynamoDB = %s"
)


async def migrate_one(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, name: str) -> str:
    """Copies all versions of a metric, unless it is migrated already. Returns IMPORTED or SKIPPED.

    While its row says IN_MIGRATION, servers refuse to update the metric. Raises MetricConflict when
    one of its items exists in DynamoDB already.
    """
    # Committed by itself, so that all servers see the state and refuse updates meanwhile.
    if not await _change_state(mariadb, name, NOT_MIGRATED, IN_MIGRATION):
        state = await state_of(mariadb, name)
        if state == MIGRATED:
            return SKIPPED
        raise in_migration(name)
    await write(mariadb, dynamodb, name)
    if not await _change_state(mariadb, name, IN_MIGRATION, MIGRATED):
        raise MetricConflict(
            f"The state of {name} changed from {IN_MIGRATION} while it was copied."
        )
    return IMPORTED


async def state_of(mariadb: MariaDBCatalogue, name: str) -> str:
    statement = "SELECT migratedToDynamoDB AS state FROM metrics WHERE name = %s"
    states = await mariadb.database.rows(statement, name)
    if not states:
        raise no_metric(name)
    return str(states[0]["state"])


async def _change_state(mariadb: MariaDBCatalogue, name: str, old: str, new: str) -> bool:
    database = mariadb.database
    async with database.session() as session:
        changed = session.run(CHANGE_STATE, new, name, old)
        return await database.naming_holders(session, changed) == 1


async def write(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, name: str) -> None:
    """Writes all items of a metric; writes nothing for a metric that MariaDB does not have.

    A transaction takes 100 actions, so a metric with many versions needs several. The last one
    writes version 0, and until then the metric does not exist for readers. It also writes the
    latest version and the entries of consumers, because a clean-up finds those entries in the
    latest version.
    """
    made = (await items_from_rows.of_metrics(mariadb.database.rows, [name])).get(name)
    if made is None:
        return
    tables = dynamodb.tables
    # Version 0, the only item with latestVersion, sorts last, after the latest version.
    ordered = sorted(made.items, key=lambda item: ("latestVersion" in item, _number(item)))
    *older, latest, whole = (transaction_actions.put_new(tables.metrics, item) for item in ordered)
    last = [
        latest,
        whole,
        transaction_actions.delete(tables.directory, transaction_actions.entry(GROUP, name)),
        *(transaction_actions.put(tables.directory, item) for item in made.consumed.values()),
    ]
    while len(older) + len(last) > transaction_actions.ACTIONS_MAX:
        await _write_all(dynamodb, older[: transaction_actions.ACTIONS_MAX], name)
        older = older[transaction_actions.ACTIONS_MAX :]
    await _write_all(dynamodb, older + last, name)


async def _write_all(dynamodb: DynamoDBCatalogue, actions: list[dict[str, Any]], name: str) -> None:
    if transaction_actions.FAILED in await dynamodb.transact(actions):
        raise MetricConflict(f"Items of {name} exist in DynamoDB already.")


async def clean_up(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, name: str) -> int:
    """Deletes the items of a metric that is not migrated, and returns their number.

    The row stays locked meanwhile. A metric that turns out to be migrated keeps its items.
    """

    async def work(session: DatabaseSession) -> int:
        # The lock keeps dual writes out between this check and the deletion.
        row = await session.row(metric_rows.LOCK_METRIC, name)
        if row is not None and row["migratedToDynamoDB"] == MIGRATED:
            return 0
        count = await remove(dynamodb, name)
        if row is not None:
            await session.run(metric_rows.SET_STATE, NOT_MIGRATED, row["id"])
        return count

    return await mariadb.database.transaction(work)


async def remove(dynamodb: DynamoDBCatalogue, name: str) -> int:
    """Deletes all items of a metric, version 0 first, so that readers never see a part of it.
    Returns the number of items."""
    tables = dynamodb.tables
    items = [item async for item in dynamodb.items_of(name)]
    deletions = [
        transaction_actions.delete(
            tables.metrics, transaction_actions.key(name, item["version"]["S"])
        )
        for item in sorted(items, key=lambda item: item["version"]["S"] != LATEST)
    ]
    for consumed in _consumed(items):
        entry = transaction_actions.entry(CONSUMER + consumed, name)
        deletions.append(transaction_actions.delete(tables.directory, entry))
    while deletions:
        await dynamodb.transact(deletions[: transaction_actions.ACTIONS_MAX])
        deletions = deletions[transaction_actions.ACTIONS_MAX :]
    return len(items)


def _number(version: Item) -> int:
    return int(version["version"]["S"])


def _consumed(items: list[Item]) -> set[str]:
    return {name for item in items for name in item.get("consumedMetrics", {}).get("SS", ())}

"""One metric from MariaDB to DynamoDB, and away from there again (figures 5.12 and 5.13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partita.apps.metrics.dynamodb import transactions
from partita.apps.metrics.dynamodb.catalogue import DynamoDBCatalogue
from partita.apps.metrics.dynamodb.items import LATEST, Item, latest_item, version_item
from partita.apps.metrics.dynamodb.tables import CONSUMER, GROUP
from partita.apps.metrics.failures import Conflict, in_migration, no_metric
from partita.apps.metrics.mariadb import rows
from partita.apps.metrics.mariadb.catalogue import LegacyCatalogue
from partita.apps.metrics.mariadb.connections import Session
from partita.apps.metrics.mariadb.rows import IN_MIGRATION, MIGRATED, NOT_MIGRATED
from partita.apps.metrics.metric import Metric, Version

TRANSACTION_PARTS_MAX = 100
IMPORTED, SKIPPED = "imported", "skipped"
CHANGE_STATE = (
    "UPDATE metrics SET migratedToDynamoDB = %s WHERE name = %s AND migratedToDynamoDB = %s"
)


async def migrate_one(legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue, name: str) -> str:
    """Mark it, copy all its versions, mark it again. What was migrated before is left alone.

    While it is marked nobody updates it. Conflict when any of its items is there already.
    """
    if not await _change_state(legacy, name, NOT_MIGRATED, IN_MIGRATION):
        state = await state_of(legacy, name)
        if state == MIGRATED:
            return SKIPPED
        raise in_migration(name)
    metric = await legacy.get(name)
    await write(dynamodb, metric, await legacy.all_versions(name))
    if not await _change_state(legacy, name, IN_MIGRATION, MIGRATED):
        raise Conflict(f"{name} has not stayed {IN_MIGRATION} while it was copied.")
    return IMPORTED


async def state_of(legacy: LegacyCatalogue, name: str) -> str:
    statement = "SELECT migratedToDynamoDB AS state FROM metrics WHERE name = %s"
    found = await legacy.database.rows(statement, name)
    if not found:
        raise no_metric(name)
    return str(found[0]["state"])


async def _change_state(legacy: LegacyCatalogue, name: str, old: str, new: str) -> bool:
    async with legacy.database.session() as session:
        return await session.run(CHANGE_STATE, new, name, old) == 1


async def write(dynamodb: DynamoDBCatalogue, metric: Metric, versions: Sequence[Version]) -> None:
    """Version 0 comes last, with the latest one: until then there is no such metric.

    What it consumes comes with them: who cleans up finds it in the latest version.
    """
    tables = dynamodb.tables
    *older, latest = (transactions.put_new(tables.metrics, version_item(v)) for v in versions)
    last = [
        latest,
        transactions.put_new(tables.metrics, latest_item(metric)),
        transactions.delete(tables.directory, transactions.entry(GROUP, metric.name)),
        *transactions.relationships(tables, None, metric),
    ]
    while len(older) + len(last) > TRANSACTION_PARTS_MAX:
        await _write_all(dynamodb, older[:TRANSACTION_PARTS_MAX], metric.name)
        older = older[TRANSACTION_PARTS_MAX:]
    await _write_all(dynamodb, older + last, metric.name)


async def _write_all(dynamodb: DynamoDBCatalogue, parts: list[dict[str, Any]], name: str) -> None:
    if transactions.FAILED in await dynamodb.transact(parts):
        raise Conflict(f"There are items of {name} in DynamoDB already.")


async def clean_up(legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue, name: str) -> int:
    """Delete the items of a metric that has not been migrated; how many there were.

    The row is locked meanwhile. A metric that has been migrated after all is left alone.
    """

    async def story(session: Session) -> int:
        row = await session.row(rows.LOCK_METRIC, name)
        if row is not None and row["migratedToDynamoDB"] == MIGRATED:
            return 0
        count = await remove(dynamodb, name)
        if row is not None:
            await session.run(rows.SET_STATE, NOT_MIGRATED, row["id"])
        return count

    return await legacy.database.transaction(story)


async def remove(dynamodb: DynamoDBCatalogue, name: str) -> int:
    """All items of a metric, version 0 first: from then on there is no such metric."""
    tables = dynamodb.tables
    items = [item async for item in dynamodb.items_of(name)]
    deletions = [
        transactions.delete(tables.metrics, transactions.key(name, item["version"]["S"]))
        for item in sorted(items, key=lambda item: item["version"]["S"] != LATEST)
    ]
    for consumed in _consumed(items):
        entry = transactions.entry(CONSUMER + consumed, name)
        deletions.append(transactions.delete(tables.directory, entry))
    while deletions:
        await dynamodb.transact(deletions[:TRANSACTION_PARTS_MAX])
        deletions = deletions[TRANSACTION_PARTS_MAX:]
    return len(items)


def _consumed(items: list[Item]) -> set[str]:
    return {name for item in items for name in item.get("consumedMetrics", {}).get("SS", ())}

"""Compares the dimensions, and the groups whose metric is not added yet, of both sides, and copies
them from one side to the other."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from metric_catalogue.metrics.catalogue_errors import MetricConflict
from metric_catalogue.metrics.metric import NewDimension, NewGroup
from metric_catalogue.migration import items_from_rows
from metric_catalogue.stores.dynamodb.catalogue_tables import CONSUMER, DIMENSION, GROUP
from metric_catalogue.stores.dynamodb.dynamodb_catalogue import (
    DynamoDBCatalogue,
    related_dimensions,
)
from metric_catalogue.stores.dynamodb.metric_items import Item
from metric_catalogue.stores.mariadb import metric_rows
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_connections import DatabaseSession
from partita_migrate.moving.target_access.target_items import item_digest

COMPARISONS = 3
PAUSE_SECONDS = 0.5
ONLY_MARIADB, ONLY_DYNAMODB = "only MariaDB has it", "only DynamoDB has it"

Entries = dict[tuple[str, str], Item]
"""The items of the directory, by kind and name."""
Differences = dict[tuple[str, str], str]


async def find_differences(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> Differences:
    """Compares three times, and returns the differences that were found each time: others may be
    dual writes that were under way. The directory has no lock that would exclude them, as metrics
    have."""
    differences = await _compare(mariadb, dynamodb)
    for _ in range(COMPARISONS - 1):
        if differences:
            await asyncio.sleep(PAUSE_SECONDS)
            again = await _compare(mariadb, dynamodb)
            differences = dict(differences.items() & again.items())
    return differences


async def _compare(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> Differences:
    here, there = await _both(mariadb, dynamodb)
    return {
        **dict.fromkeys(here.keys() - there.keys(), ONLY_MARIADB),
        **dict.fromkeys(there.keys() - here.keys(), ONLY_DYNAMODB),
        **{
            key: "its dimensions differ"
            for key in here.keys() & there.keys()
            if item_digest(here[key]) != item_digest(there[key])
        },
    }


async def _both(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> tuple[Entries, Entries]:
    """Returns the entries of MariaDB and those of DynamoDB, dimensions first: groups refer to
    them."""
    here = await items_from_rows.of_directory(mariadb.database.rows)
    there = {
        (kind, item["name"]["S"]): item
        for kind in (DIMENSION, GROUP)
        async for item in dynamodb.entries(kind)
    }
    return here, there


async def repair_dynamodb(
    mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, differences: Differences
) -> None:
    """Makes the entries of DynamoDB equal to those of MariaDB."""
    for kind, name in differences:
        await dynamodb.remove_entry(kind, name)
    await copy_to_dynamodb(mariadb, dynamodb)


async def remove_stale_consumers(dynamodb: DynamoDBCatalogue, differences: Differences) -> None:
    """Removes the entries of consumers that do not consume the metric any more."""
    for kind, name in differences:
        if kind.startswith(CONSUMER):
            metric = await dynamodb.find(name)
            consumed = metric.consumed_metrics if metric is not None else None
            if kind.removeprefix(CONSUMER) not in (consumed or ()):
                await dynamodb.remove_entry(kind, name)


async def copy_to_dynamodb(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> None:
    """Copies the entries that DynamoDB lacks."""
    here, there = await _both(mariadb, dynamodb)
    for (kind, name), item in here.items():
        if (kind, name) in there:
            continue
        with suppress(MetricConflict):
            if kind == DIMENSION:
                await dynamodb.add_dimension(NewDimension(name=name))
            else:
                related = list(related_dimensions(item))
                await dynamodb.add_group(NewGroup(name=name, related_dimensions=related))


async def copy_to_mariadb(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> None:
    """Copies the entries that MariaDB lacks, and the dimensions of groups that exist on both
    sides."""
    here, there = await _both(mariadb, dynamodb)
    dimensions = [name for kind, name in there.keys() - here.keys() if kind == DIMENSION]
    await mariadb.database.transaction(partial(_add_dimensions, names=sorted(dimensions)))
    for kind, name in there:
        # Read again: when its metric has been added since, the group is gone.
        related = await dynamodb.group(name) if kind == GROUP else None
        old = here.get((GROUP, name))
        if related is not None and (old is None or related != related_dimensions(old)):
            await _copy_group(mariadb, name, related, is_new=old is None)


async def _add_dimensions(session: DatabaseSession, names: list[str]) -> None:
    statement = "INSERT IGNORE INTO dimensions (name) VALUES (%s)"
    await session.run_many(statement, [(name,) for name in names])


async def _copy_group(
    mariadb: MariaDBCatalogue, name: str, related: tuple[str, ...], *, is_new: bool
) -> None:
    async def set_dimensions(session: DatabaseSession) -> None:
        group = await metric_rows.group_id(session, name)
        if group is not None:
            await metric_rows.set_related_dimensions(session, group, related)

    if not is_new:
        await mariadb.database.transaction(set_dimensions)
        return
    # A conflict means that the metric exists in MariaDB; its group is copied with the metric.
    with suppress(MetricConflict):
        await mariadb.add_group(NewGroup(name=name, related_dimensions=list(related)))

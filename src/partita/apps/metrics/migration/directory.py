"""Everything but the metrics themselves: dimensions, groups whose metric is not added yet, and
consumers. Both sides are compared, and copied from one to the other.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from partita.apps.metrics.dynamodb.catalogue import DynamoDBCatalogue, related_dimensions
from partita.apps.metrics.dynamodb.tables import CONSUMER, DIMENSION, GROUP
from partita.apps.metrics.failures import Conflict
from partita.apps.metrics.mariadb import rows
from partita.apps.metrics.mariadb.catalogue import MariaDBCatalogue
from partita.apps.metrics.mariadb.connections import Session
from partita.apps.metrics.metric import NewDimension, NewGroup
from partita.apps.metrics.rules import HYBRID_GROUP

PAGE = 500
COMPARISONS = 3
PAUSE_SECONDS = 0.5
SELECT_WAITING_GROUPS = (
    "SELECT g.name AS name, d.name AS dimension FROM metric_groups g "
    "JOIN dimensions_metric_groups r ON r.metric_group_id = g.id "
    "JOIN dimensions d ON d.id = r.dimension_id WHERE g.name <> %s "
    "AND NOT EXISTS (SELECT 1 FROM metrics m WHERE m.metric_group_id = g.id) "
    # A hybrid metric has no group of its own, but its name is taken.
    "AND NOT EXISTS (SELECT 1 FROM metrics m WHERE m.name = g.name) ORDER BY d.name"
)
SELECT_RELATIONSHIPS = (
    "SELECT c.name AS consumer, k.name AS consumed FROM metric_relationships r "
    "JOIN metrics c ON c.id = r.consumer_metric_id JOIN metrics k ON k.id = r.consumed_metric_id"
)

Differences = dict[tuple[str, str], str]
"""By kind and name, as in DynamoDB's directory."""


class Directory(NamedTuple):
    dimensions: set[str]
    groups: dict[str, tuple[str, ...]]
    consumers: set[tuple[str, str]]
    """Kind, which includes the consumed metric, and name of the consumer."""


async def find_differences(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> Differences:
    """Differences found every time; others may be dual writes that were under way."""
    found = await _compare(mariadb, dynamodb)
    for _ in range(COMPARISONS - 1):
        if found:
            await asyncio.sleep(PAUSE_SECONDS)
            found = dict(found.items() & (await _compare(mariadb, dynamodb)).items())
    return found


async def _compare(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> Differences:
    here, there = await _of_mariadb(mariadb), await _of_dynamodb(dynamodb)
    only_here, only_there = "only MariaDB has it", "only DynamoDB has it"
    return {
        **{(DIMENSION, name): only_here for name in here.dimensions - there.dimensions},
        **{(DIMENSION, name): only_there for name in there.dimensions - here.dimensions},
        **{(GROUP, name): only_here for name in here.groups.keys() - there.groups.keys()},
        **{(GROUP, name): only_there for name in there.groups.keys() - here.groups.keys()},
        **{
            (GROUP, name): "its dimensions differ"
            for name in here.groups.keys() & there.groups.keys()
            if here.groups[name] != there.groups[name]
        },
        # The other direction is compared with each metric, once it is migrated.
        **dict.fromkeys(there.consumers - here.consumers, only_there),
    }


async def _of_mariadb(mariadb: MariaDBCatalogue) -> Directory:
    read = mariadb.database.rows
    return Directory(
        {row["name"] for row in await read("SELECT name FROM dimensions")},
        await _waiting_groups(mariadb),
        {(CONSUMER + row["consumed"], row["consumer"]) for row in await read(SELECT_RELATIONSHIPS)},
    )


async def _waiting_groups(mariadb: MariaDBCatalogue) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for row in await mariadb.database.rows(SELECT_WAITING_GROUPS, HYBRID_GROUP):
        groups[row["name"]] = (*groups.get(row["name"], ()), row["dimension"])
    return groups


async def _of_dynamodb(dynamodb: DynamoDBCatalogue) -> Directory:
    found = Directory(set(), {}, set())
    async for item in dynamodb.entries():
        kind, name = item["kind"]["S"], item["name"]["S"]
        if kind == DIMENSION:
            found.dimensions.add(name)
        elif kind == GROUP:
            found.groups[name] = related_dimensions(item)
        elif kind.startswith(CONSUMER):
            found.consumers.add((kind, name))
    return found


async def repair_dynamodb(
    mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, differences: Differences
) -> None:
    """Make DynamoDB what MariaDB is."""
    for kind, name in differences:
        await dynamodb.remove_entry(kind, name)
    await copy_to_dynamodb(mariadb, dynamodb)


async def remove_stale_consumers(dynamodb: DynamoDBCatalogue, differences: Differences) -> None:
    """Remove entries that the metrics themselves contradict."""
    for kind, name in differences:
        if kind.startswith(CONSUMER):
            metric = await dynamodb.find(name)
            consumed = metric.consumed_metrics if metric is not None else None
            if kind.removeprefix(CONSUMER) not in (consumed or ()):
                await dynamodb.remove_entry(kind, name)


async def copy_to_dynamodb(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> None:
    """Copy what is missing there."""
    after = ""
    while names := await mariadb.list_dimensions(PAGE, after):
        for name in sorted(await dynamodb.missing_dimensions(names)):
            with suppress(Conflict):
                await dynamodb.add_dimension(NewDimension(name=name))
        after = names[-1]
    for name, dimensions in (await _waiting_groups(mariadb)).items():
        with suppress(Conflict):
            await dynamodb.add_group(NewGroup(name=name, related_dimensions=list(dimensions)))


async def copy_to_mariadb(mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> None:
    """Copy what is missing there, and the dimensions of groups that exist on both sides."""
    after = ""
    while names := await dynamodb.list_dimensions(PAGE, after):
        await mariadb.database.transaction(partial(_add_dimensions, names=names))
        after = names[-1]
    waiting = await _waiting_groups(mariadb)
    after = ""
    while names := await dynamodb.list_groups(PAGE, after):
        for name in names:
            # Its metric may have been added since.
            related = await dynamodb.group(name)
            if related is not None and related != waiting.get(name):
                await _copy_group(mariadb, name, related)
        after = names[-1]


async def _add_dimensions(session: Session, names: list[str]) -> None:
    statement = "INSERT IGNORE INTO dimensions (name) VALUES (%s)"
    await session.run_many(statement, [(name,) for name in names])


async def _copy_group(mariadb: MariaDBCatalogue, name: str, related: tuple[str, ...]) -> None:
    async def set_dimensions(session: Session) -> None:
        group = await rows.group_id(session, name)
        if group is not None:
            await rows.set_related_dimensions(session, group, related)

    try:
        await mariadb.add_group(NewGroup(name=name, related_dimensions=list(related)))
    except Conflict:
        # Groups of existing metrics are copied with their metric.
        if name in await _waiting_groups(mariadb):
            await mariadb.database.transaction(set_dimensions)

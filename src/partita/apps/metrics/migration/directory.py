"""What both sides have beside their metrics: dimensions, groups that wait for their metric, and who
consumes what; compared, and brought from one side to the other.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from partita.apps.metrics.dynamodb.catalogue import DynamoDBCatalogue, related_dimensions
from partita.apps.metrics.dynamodb.tables import CONSUMER, DIMENSION, GROUP
from partita.apps.metrics.failures import Conflict
from partita.apps.metrics.mariadb import rows
from partita.apps.metrics.mariadb.catalogue import LegacyCatalogue
from partita.apps.metrics.mariadb.connections import Session
from partita.apps.metrics.metric import NewDimension, NewGroup
from partita.apps.metrics.rules import HYBRID_GROUP

PAGE = 500
LOOKS = 3
LOOK_SECONDS = 0.5
SELECT_WAITING_GROUPS = (
    "SELECT g.name AS name, d.name AS dimension FROM metric_groups g "
    "JOIN dimensions_metric_groups r ON r.metric_group_id = g.id "
    "JOIN dimensions d ON d.id = r.dimension_id WHERE g.name <> %s "
    "AND NOT EXISTS (SELECT 1 FROM metrics m WHERE m.metric_group_id = g.id) "
    # A hybrid metric belongs to no group of its own, but the name is taken.
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
    """The kind, which names what is consumed, and the name of the consumer."""


async def find_differences(legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue) -> Differences:
    """What differs at every look: what does so once may be a write on its way to both sides."""
    found = await _look(legacy, dynamodb)
    for _ in range(LOOKS - 1):
        if found:
            await asyncio.sleep(LOOK_SECONDS)
            found = dict(found.items() & (await _look(legacy, dynamodb)).items())
    return found


async def _look(legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue) -> Differences:
    here, there = await _of_legacy(legacy), await _of_dynamodb(dynamodb)
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
        # The other direction is looked at with each metric: it needs to be migrated for that.
        **dict.fromkeys(there.consumers - here.consumers, only_there),
    }


async def _of_legacy(legacy: LegacyCatalogue) -> Directory:
    read = legacy.database.rows
    return Directory(
        {row["name"] for row in await read("SELECT name FROM dimensions")},
        await _waiting_groups(legacy),
        {(CONSUMER + row["consumed"], row["consumer"]) for row in await read(SELECT_RELATIONSHIPS)},
    )


async def _waiting_groups(legacy: LegacyCatalogue) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for row in await legacy.database.rows(SELECT_WAITING_GROUPS, HYBRID_GROUP):
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
    legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue, differences: Differences
) -> None:
    """MariaDB is right."""
    for kind, name in differences:
        await dynamodb.remove_entry(kind, name)
    await copy_to_dynamodb(legacy, dynamodb)


async def remove_stale_consumers(dynamodb: DynamoDBCatalogue, differences: Differences) -> None:
    """The metrics themselves are right about what they consume."""
    for kind, name in differences:
        if kind.startswith(CONSUMER):
            metric = await dynamodb.find(name)
            consumed = metric.consumed_metrics if metric is not None else None
            if kind.removeprefix(CONSUMER) not in (consumed or ()):
                await dynamodb.remove_entry(kind, name)


async def copy_to_dynamodb(legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue) -> None:
    """What is missing there."""
    after = ""
    while names := await legacy.list_dimensions(PAGE, after):
        for name in sorted(await dynamodb.missing_dimensions(names)):
            with suppress(Conflict):
                await dynamodb.add_dimension(NewDimension(name=name))
        after = names[-1]
    for name, dimensions in (await _waiting_groups(legacy)).items():
        with suppress(Conflict):
            await dynamodb.add_group(NewGroup(name=name, related_dimensions=list(dimensions)))


async def copy_to_legacy(legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue) -> None:
    """What is missing there; of a group that both have, DynamoDB knows the dimensions."""
    after = ""
    while names := await dynamodb.list_dimensions(PAGE, after):
        async with legacy.database.session() as session:
            statement = "INSERT IGNORE INTO dimensions (name) VALUES (%s)"
            await session.run_many(statement, [(name,) for name in names])
        after = names[-1]
    waiting = await _waiting_groups(legacy)
    after = ""
    while names := await dynamodb.list_groups(PAGE, after):
        for name in names:
            # It may have become a metric since.
            related = await dynamodb.group(name)
            if related is not None and related != waiting.get(name):
                await _copy_group(legacy, name, related)
        after = names[-1]


async def _copy_group(legacy: LegacyCatalogue, name: str, related: tuple[str, ...]) -> None:
    async def set_dimensions(session: Session) -> None:
        group = await rows.group_id(session, name)
        if group is not None:
            await rows.set_related_dimensions(session, group, related)

    try:
        await legacy.add_group(NewGroup(name=name, related_dimensions=list(related)))
    except Conflict:
        # Unless it is a metric's by now: those are carried with their dimensions.
        if name in await _waiting_groups(legacy):
            await legacy.database.transaction(set_dimensions)

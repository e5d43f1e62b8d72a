"""Dimensions, and groups that wait for their metric, from one side to the other."""

from __future__ import annotations

from contextlib import suppress

from partita.apps.metrics.dynamodb import DynamoDBCatalogue
from partita.apps.metrics.failures import Conflict
from partita.apps.metrics.legacy import LegacyCatalogue
from partita.apps.metrics.metric import NewDimension, NewGroup
from partita.apps.metrics.rules import HYBRID_GROUP

PAGE = 500
SELECT_WAITING_GROUPS = (
    "SELECT g.name AS name, d.name AS dimension FROM metric_groups g "
    "JOIN dimensions_metric_groups r ON r.metric_group_id = g.id "
    "JOIN dimensions d ON d.id = r.dimension_id WHERE g.name <> %s AND NOT EXISTS "
    "(SELECT 1 FROM metrics m WHERE m.metric_group_id = g.id)"
)


async def copy_to_dynamodb(legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue) -> None:
    after = ""
    while names := await legacy.list_dimensions(PAGE, after):
        for name in sorted(await dynamodb.missing_dimensions(names)):
            with suppress(Conflict):
                await dynamodb.add_dimension(NewDimension(name=name))
        after = names[-1]
    groups: dict[str, list[str]] = {}
    for row in await legacy.database.rows(SELECT_WAITING_GROUPS, HYBRID_GROUP):
        groups.setdefault(row["name"], []).append(row["dimension"])
    for name, dimensions in groups.items():
        with suppress(Conflict):
            await dynamodb.add_group(NewGroup(name=name, related_dimensions=dimensions))


async def copy_to_legacy(legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue) -> None:
    after = ""
    while names := await dynamodb.list_dimensions(PAGE, after):
        async with legacy.database.session() as session:
            statement = "INSERT IGNORE INTO dimensions (name) VALUES (%s)"
            await session.run_many(statement, [(name,) for name in names])
        after = names[-1]
    after = ""
    while names := await dynamodb.list_groups(PAGE, after):
        for name in names:
            # It may have become a metric since.
            if (related := await dynamodb.group(name)) is not None:
                with suppress(Conflict):
                    await legacy.add_group(NewGroup(name=name, related_dimensions=list(related)))
        after = names[-1]

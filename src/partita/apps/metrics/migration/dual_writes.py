"""The catalogue in both stores, on the way from one to the other.

`MigratingCatalogue`: MariaDB answers, and what is written there is written to DynamoDB too, as in
figures 5.8 and 5.9. When DynamoDB cannot take it the metric counts as not migrated, and the
migration takes it up again: the request succeeds all the same.

`MirroredCatalogue`: DynamoDB answers, and what is written there is carried to MariaDB, so that
there is a way back. Cutover and rollback both pass through it (see `modes`).
"""

from __future__ import annotations

import logging
from contextlib import suppress

from partita.apps.metrics import rules
from partita.apps.metrics.dynamodb.catalogue import DynamoDBCatalogue
from partita.apps.metrics.failures import CatalogueError, Conflict
from partita.apps.metrics.mariadb.catalogue import LegacyCatalogue
from partita.apps.metrics.mariadb.connections import Session
from partita.apps.metrics.mariadb.rows import LOCK_METRIC, MIGRATED, NOT_MIGRATED
from partita.apps.metrics.metric import Metric, NewDimension, NewGroup, NewMetric
from partita.apps.metrics.migration.to_mariadb import carry

logger = logging.getLogger(__name__)


class MigratingCatalogue(LegacyCatalogue):
    def __init__(self, legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue) -> None:
        super().__init__(legacy.database, legacy.clock)
        self._dynamodb = dynamodb

    async def add_dimension(self, new: NewDimension) -> None:
        await super().add_dimension(new)
        with suppress(CatalogueError):
            await self._dynamodb.add_dimension(new)

    async def add_group(self, new: NewGroup) -> None:
        await super().add_group(new)
        with suppress(CatalogueError):
            await self._dynamodb.add_group(new)

    async def add(self, new: NewMetric, user: str, beside: object = None) -> Metric:
        async with self.naming(new.name):
            return await super().add(new, user, self._write_beside)

    async def revise(
        self, name: str, revision: rules.Revision, expected: int | None, beside: object = None
    ) -> Metric:
        return await super().revise(name, revision, expected, self._write_beside)

    async def _write_beside(self, previous: Metric | None, metric: Metric, state: str) -> str:
        """What `migratedToDynamoDB` becomes."""
        if previous is not None and state != MIGRATED:
            return state
        try:
            guard = None
            # A new metric closes no cycle: nothing refers to it yet.
            if previous is not None and rules.added_references(previous, metric):
                guard = await self._dynamodb.guard()
            await self._dynamodb.save(previous, metric, guard)
        except CatalogueError as error:
            logger.warning("%s is to be migrated again: %s", metric.name, error)
            return NOT_MIGRATED
        return MIGRATED


class MirroredCatalogue(DynamoDBCatalogue):
    def __init__(self, legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue) -> None:
        super().__init__(dynamodb.client, dynamodb.tables, dynamodb.clock)
        self._legacy = legacy

    async def add_dimension(self, new: NewDimension) -> None:
        await super().add_dimension(new)
        with suppress(Conflict):
            await self._legacy.add_dimension(new)

    async def add_group(self, new: NewGroup) -> None:
        await super().add_group(new)
        with suppress(Conflict):
            await self._legacy.add_group(new)

    async def add(self, new: NewMetric, user: str) -> Metric:
        async with self._legacy.naming(new.name):
            metric = await super().add(new, user)
            await self._legacy.database.transaction(
                lambda session: carry(session, metric, [metric])
            )
        return metric

    async def revise(self, name: str, revision: rules.Revision, expected: int | None) -> Metric:
        done: list[Metric] = []

        async def story(session: Session) -> Metric:
            # The same lock that the migrating catalogue takes: one of them at a time.
            await session.row(LOCK_METRIC, name)
            if not done:
                done.append(await super(MirroredCatalogue, self).revise(name, revision, expected))
            versions = await self.all_versions(name)
            await carry(session, done[0], versions)
            return done[0]

        return await self._legacy.database.transaction(story)

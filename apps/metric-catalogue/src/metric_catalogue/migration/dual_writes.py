"""Dual writes (figures 5.8 and 5.9): during the migration MariaDB answers, and every write goes to
DynamoDB too.

When DynamoDB refuses a write, the request still succeeds. The metric then counts as not migrated,
and is copied again.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from metric_catalogue.metrics import metric_rules
from metric_catalogue.metrics.catalogue_errors import CatalogueError
from metric_catalogue.metrics.metric import Metric, NewDimension, NewGroup, NewMetric
from metric_catalogue.stores.dynamodb.dynamodb_catalogue import DynamoDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue
from metric_catalogue.stores.mariadb.metric_rows import MIGRATED, NOT_MIGRATED

logger = logging.getLogger(__name__)


class MigratingCatalogue(MariaDBCatalogue):
    """The catalogue in MariaDB, with dual writes to DynamoDB."""

    def __init__(self, mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue) -> None:
        super().__init__(mariadb.database, mariadb.clock)
        self._dynamodb = dynamodb

    async def add_dimension(self, new: NewDimension) -> None:
        await super().add_dimension(new)
        with suppress(CatalogueError):
            await self._dynamodb.add_dimension(new)

    async def add_group(self, new: NewGroup) -> None:
        await super().add_group(new)
        with suppress(CatalogueError):
            await self._dynamodb.add_group(new)

    async def add(self, new: NewMetric, user: str, dual_write: object = None) -> Metric:
        async with self.name_lock(new.name):
            return await super().add(new, user, self._write_to_dynamodb)

    async def revise(
        self,
        name: str,
        revision: metric_rules.Revision,
        expected: int | None,
        dual_write: object = None,
    ) -> Metric:
        return await super().revise(name, revision, expected, self._write_to_dynamodb)

    async def _write_to_dynamodb(self, previous: Metric | None, metric: Metric, state: str) -> str:
        """Writes the new version to DynamoDB, and returns the new value of `migratedToDynamoDB`.

        A metric that is not migrated yet is left to the state machine, which copies all versions.
        """
        if previous is not None and state != MIGRATED:
            return state
        try:
            guard = None
            # A new metric cannot close a cycle of references: nothing refers to it yet.
            if previous is not None and metric_rules.added_references(previous, metric):
                guard = await self._dynamodb.guard()
            await self._dynamodb.save(previous, metric, guard)
        except CatalogueError as error:
            logger.warning("%s has to be migrated again: %s", metric.name, error)
            return NOT_MIGRATED
        return MIGRATED

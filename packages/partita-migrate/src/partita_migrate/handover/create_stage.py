"""Stage `create`: creates the tables of a design, and leaves existing tables alone.

It can be run again without changing anything. For an existing table it lists every difference from
the design. Only `--update` changes such a table, and only where no item can be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct, field

from partita.client import Client, ClientError, Unreachable
from partita.errors import PartitaError
from partita_migrate.handover.auto_scaling_updates import (
    TableUpdate,
    region_of,
    scaling_of,
    scaling_update,
)
from partita_migrate.handover.table_differences import (
    ExistingTable,
    TableDifference,
    differences,
    recovery_update,
)
from partita_migrate.handover.table_requests import AutoScalingBounds, TableRequest, tables_of
from partita_migrate.model.model_files import CHOSEN
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

Action = Literal["create", "created", "unchanged", "differs", "update", "updated"]
"""`create` and `update` are outcomes of a dry run."""
NOT_SCALED = ("ResourceNotFoundException", "ValidationException")
ACTIVE_SECONDS_MAX = 600
POLL_SECONDS = 0.05
POLL_SECONDS_MAX = 5.0
NO_RECOVERY = (
    "This endpoint does not support point-in-time recovery; the table was created without it."
)
NO_SCALING = (
    "This endpoint scales tables through Application Auto Scaling; the files of --emit contain"
    " the policies."
)
NO_TAGS = "This endpoint does not store tags; the table was created without them."


class CreatedTable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome for one table; in a dry run, the outcome that it would have."""

    table: str
    action: Action
    differences: list[TableDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class CreateResult(Struct, frozen=True, kw_only=True):
    """The result of stage `create`."""

    endpoint: str
    model: str
    is_dry_run: bool
    tables: list[CreatedTable]

    @property
    def differs(self) -> bool:
        return any(table.action == "differs" for table in self.tables)


def create(
    folder: Folder,
    endpoint: str,
    *,
    name: str = CHOSEN,
    region: str = "us-east-1",
    is_dry_run: bool = False,
    update: bool = False,
    progress: Progress = silent,
) -> CreateResult:
    tables_wanted = tables_of(folder, name)
    tables = asyncio.run(_create(tables_wanted, endpoint, region, is_dry_run, update, progress))
    return CreateResult(endpoint=endpoint, model=name, is_dry_run=is_dry_run, tables=tables)


async def _create(
    tables: list[TableRequest],
    endpoint: str,
    region: str,
    is_dry_run: bool,
    update: bool,
    progress: Progress,
) -> list[CreatedTable]:
    client = Client(endpoint, region, tries=5)
    try:
        maker = _Maker(client, is_dry_run, update)
        await maker.look(tables)
        outcomes = []
        for number, table in enumerate(tables):
            progress("Tables", number, len(tables))
            outcomes.append(await maker.make(table))
        progress("Tables", len(tables), len(tables))
        return outcomes
    except Unreachable as error:
        raise PartitaError(f"{error.message} Is a server running there?") from error
    except ClientError as error:
        raise PartitaError(f"{endpoint} refused to create the tables: {error}") from error
    finally:
        await client.close()


class _Maker:
    """Creates or updates the tables, one call at a time."""

    def __init__(self, client: Client, is_dry_run: bool, update: bool) -> None:
        self.client = client
        self.is_dry_run = is_dry_run
        self.update = update
        self.existing: dict[str, ExistingTable | None] = {}

    async def look(self, tables: list[TableRequest]) -> None:
        """Describes the existing tables and starts creating the missing ones. All CreateTable calls
        are sent first, because DynamoDB creates tables in the background."""
        for table in tables:
            self.existing[table.name] = await self._describe(table)
        if not self.is_dry_run:
            for table in tables:
                if self.existing[table.name] is None:
                    await self._call("CreateTable", table.create_request())

    async def make(self, table: TableRequest) -> CreatedTable:
        existing = self.existing[table.name]
        if existing is None:
            return await self._created(table)
        different = differences(table, existing)
        notes = list(_notes(table, existing))
        action: Action = "differs" if different else "unchanged"
        # All or nothing: a table that is only partly updated would match neither design.
        if different and self.update and all(difference.update for difference in different):
            action = "update" if self.is_dry_run else "updated"
            for difference in different:
                if difference.update is not None and not self.is_dry_run:
                    await self._apply(table, difference.update)
        return CreatedTable(table=table.name, action=action, differences=different, notes=notes)

    async def _created(self, table: TableRequest) -> CreatedTable:
        if self.is_dry_run:
            return CreatedTable(table=table.name, action="create")
        await self._wait(table.name)
        if table.time_to_live:
            await self._call(
                "UpdateTimeToLive",
                {
                    "TableName": table.name,
                    "TimeToLiveSpecification": {
                        "AttributeName": table.time_to_live,
                        "Enabled": True,
                    },
                },
            )
        notes = []
        if table.point_in_time_recovery:
            request = recovery_update(table)
            # A compatible server may lack these operations; the table is created nevertheless, with
            # a note.
            if await self._optional(request.operation, request.request) is None:
                notes.append(NO_RECOVERY)
        if table.scaling and not await self._scale(table):
            notes.append(NO_SCALING)
        return CreatedTable(table=table.name, action="created", notes=notes)

    async def _scale(self, table: TableRequest) -> bool:
        """Sets auto scaling. Amazon DynamoDB has this operation for global tables only and refuses
        it for others."""
        described = (await self._call("DescribeTable", {"TableName": table.name}))["Table"]
        request = scaling_update(table, region_of(described["TableArn"]))
        try:
            return await self._optional(request.operation, request.request) is not None
        except ClientError as error:
            if error.code in NOT_SCALED:
                return False
            raise

    async def _apply(self, table: TableRequest, update: TableUpdate) -> None:
        await self._call(update.operation, update.request)
        await self._wait(table.name)

    async def _describe(self, table: TableRequest) -> ExistingTable | None:
        named = {"TableName": table.name}
        try:
            description = (await self._call("DescribeTable", named))["Table"]
        except ClientError as error:
            if error.code == "ResourceNotFoundException":
                return None
            raise
        expiry = (await self._call("DescribeTimeToLive", named))["TimeToLiveDescription"]
        backups = await self._optional("DescribeContinuousBackups", named)
        return ExistingTable(
            description=description,
            tags=await self._tags(description["TableArn"]),
            time_to_live=expiry.get("AttributeName")
            if expiry.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
            else None,
            point_in_time_recovery=_has_recovery(backups),
            scaling=await self._scaling(named) if table.scaling else None,
        )

    async def _scaling(self, named: dict[str, Any]) -> list[AutoScalingBounds] | None:
        try:
            answer = await self._optional("DescribeTableReplicaAutoScaling", named)
        except ClientError as error:
            if error.code in NOT_SCALED:
                return None
            raise
        return None if answer is None else scaling_of(answer["TableAutoScalingDescription"])

    async def _tags(self, arn: str) -> dict[str, str] | None:
        tags: dict[str, str] = {}
        request = {"ResourceArn": arn}
        while True:
            answer = await self._optional("ListTagsOfResource", request)
            if answer is None:
                return None
            tags |= {tag["Key"]: tag["Value"] for tag in answer.get("Tags", [])}
            if not answer.get("NextToken"):
                return tags
            request = {"ResourceArn": arn, "NextToken": answer["NextToken"]}

    async def _wait(self, name: str) -> None:
        """Waits until the table and all its indexes are ACTIVE."""
        pause = POLL_SECONDS
        waited = 0.0
        while True:
            table = (await self._call("DescribeTable", {"TableName": name}))["Table"]
            parts = [table["TableStatus"]]
            parts += [index["IndexStatus"] for index in table.get("GlobalSecondaryIndexes", [])]
            if set(parts) == {"ACTIVE"}:
                return
            if waited > ACTIVE_SECONDS_MAX:
                raise PartitaError(
                    f"{name} is still {table['TableStatus']} after {waited:.0f} seconds; run create"
                    " again to see whether the table is ready by then."
                )
            await asyncio.sleep(pause)
            waited += pause
            pause = min(pause * 2, POLL_SECONDS_MAX)

    async def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        return await self.client.call("dynamodb", operation, request)

    async def _optional(self, operation: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Calls an operation that not every server has. Returns None if the server does not know
        it."""
        try:
            return await self._call(operation, request)
        except ClientError as error:
            if error.code == "UnknownOperationException":
                return None
            raise


def _notes(table: TableRequest, existing: ExistingTable) -> Iterator[str]:
    if table.point_in_time_recovery and existing.point_in_time_recovery is None:
        yield NO_RECOVERY
    if table.tags and existing.tags is None:
        yield NO_TAGS
    if table.scaling and existing.scaling is None:
        yield NO_SCALING


def _has_recovery(backups: dict[str, Any] | None) -> bool | None:
    if backups is None:
        return None
    described = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(described.get("PointInTimeRecoveryStatus") == "ENABLED")

"""The story of `partita metrics migrate`, `cutover` and `rollback`.

    migrate    legacy -> migrating; every metric is copied; both sides are compared
    cutover    migrating -> mirrored -> dynamodb, when both sides are equal
    rollback   dynamodb -> mirrored; what was written since is carried back; -> migrating -> legacy

Each can be stopped anywhere and run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from partita.apps.metrics import service
from partita.apps.metrics.dynamodb.catalogue import DynamoDBCatalogue
from partita.apps.metrics.dynamodb.tables import Tables
from partita.apps.metrics.mariadb.catalogue import LegacyCatalogue
from partita.apps.metrics.mariadb.connections import LockHeld, Session
from partita.apps.metrics.mariadb.rows import LOCK_METRIC, MIGRATED, NOT_MIGRATED
from partita.apps.metrics.migration import directory
from partita.apps.metrics.migration import state_machine as machine
from partita.apps.metrics.migration.counts import Counts
from partita.apps.metrics.migration.invoker import Invoker
from partita.apps.metrics.migration.to_dynamodb import CHANGE_STATE, remove
from partita.apps.metrics.migration.to_mariadb import carry
from partita.apps.metrics.migration.verification import Verification, verify
from partita.apps.metrics.modes import Mode, Modes, steps
from partita.errors import PartitaError

LOCK_SECONDS_MAX = 5.0
REPAIRS_MAX = 3
AT_ONCE = 8


class Display(Protocol):
    """What a person sees meanwhile."""

    def migrating(self, counts: Counts, total: int) -> None: ...

    def verifying(self, compared: int, total: int) -> None: ...


class Both:
    """Both stores, and the mode that the servers are in. Only one at a time moves a catalogue."""

    def __init__(
        self, legacy: LegacyCatalogue, dynamodb: DynamoDBCatalogue, modes: Modes, display: Display
    ) -> None:
        self.legacy = legacy
        self.dynamodb = dynamodb
        self.modes = modes
        self.display = display

    async def mode(self) -> Mode:
        return await self.modes.begin(Mode.LEGACY)

    async def go(self, end: Mode) -> None:
        """Through all modes between; all servers are in one before the next is begun."""
        here = await self.mode()
        await self.modes.wait_for_servers(here)
        for mode in steps(here, end):
            await self.modes.change(here, mode)
            here = mode

    async def count(self) -> int:
        return await self._count("")

    async def count_unmigrated(self) -> int:
        return await self._count(f"migratedToDynamoDB <> '{MIGRATED}' AND ")

    async def _count(self, condition: str) -> int:
        """Of metrics; a row without versions is none."""
        found = await self.legacy.database.rows(
            f"SELECT COUNT(*) AS count FROM metrics m WHERE {condition}EXISTS "
            "(SELECT 1 FROM metric_versions v WHERE v.metric_id = m.id)"
        )
        return int(found[0]["count"])

    async def verify(self) -> Verification:
        total = await self.count()
        return await verify(
            self.legacy, self.dynamodb, lambda compared: self.display.verifying(compared, total)
        )


@asynccontextmanager
async def opened(
    mysql: str, endpoint: str, tables: Tables, display: Display
) -> AsyncIterator[Both]:
    async with service.opened(mysql, endpoint, tables) as stores:
        assert stores.legacy and stores.dynamodb and stores.modes
        yield Both(stores.legacy, stores.dynamodb, stores.modes, display)


@asynccontextmanager
async def _alone(both: Both) -> AsyncIterator[None]:
    database = both.legacy.database
    lock = f"moving {database.address.database}"
    try:
        async with database.lock(lock, LOCK_SECONDS_MAX):
            yield
    except LockHeld as error:
        raise PartitaError("Another command is moving this catalogue: let it finish.") from error


async def migrate(
    mysql: str, endpoint: str, tables: Tables, display: Display
) -> tuple[Counts, Verification]:
    async with opened(mysql, endpoint, tables, display) as both, _alone(both):
        if await both.mode() in (Mode.MIRRORED, Mode.DYNAMODB):
            raise PartitaError(
                f"The catalogue is in the mode {await both.mode()}: there is nothing to migrate."
            )
        await both.go(Mode.MIGRATING)
        await directory.copy_to_dynamodb(both.legacy, both.dynamodb)
        total = await both.count()
        async with machine.opened(mysql, endpoint, tables) as running:
            invoker = Invoker(running, both.legacy, lambda counts: display.migrating(counts, total))
            await invoker.run()
            found = await both.verify()
            for _ in range(REPAIRS_MAX):
                if found.is_equal or invoker.counts.errors:
                    break
                await _repair(both, found)
                await invoker.run_again()
                found = await both.verify()
            return invoker.counts, found


async def _repair(both: Both, found: Verification) -> None:
    """MariaDB is right: what differs is migrated again, what only DynamoDB has is removed.

    A server that was killed between its two writes leaves such differences behind.
    """
    for name in found.differences:
        async with both.legacy.database.session() as session:
            await session.run(CHANGE_STATE, NOT_MIGRATED, name, MIGRATED)
        async with both.legacy.naming(name):
            if not await both.legacy.all_versions(name):
                await remove(both.dynamodb, name)
    await directory.repair_dynamodb(both.legacy, both.dynamodb, found.directory)


async def compare(mysql: str, endpoint: str, tables: Tables, display: Display) -> Verification:
    async with opened(mysql, endpoint, tables, display) as both:
        return await both.verify()


async def cutover(mysql: str, endpoint: str, tables: Tables, display: Display) -> Verification:
    async with opened(mysql, endpoint, tables, display) as both, _alone(both):
        mode = await both.mode()
        if mode == Mode.LEGACY:
            raise PartitaError("Nothing has been migrated: `partita metrics migrate` comes first.")
        found = Verification()
        if mode == Mode.MIGRATING:
            # Who has made a group may add its metric at any moment.
            await directory.copy_to_dynamodb(both.legacy, both.dynamodb)
            await _refuse_unmigrated(both)
            found = await both.verify()
            if not found.is_equal:
                return found
            await both.go(Mode.MIRRORED)
            try:
                await _refuse_unmigrated(both)
            except PartitaError:
                await both.go(Mode.MIGRATING)
                raise
        await directory.copy_to_dynamodb(both.legacy, both.dynamodb)
        await both.go(Mode.DYNAMODB)
        return found


async def _refuse_unmigrated(both: Both) -> None:
    count = await both.count_unmigrated()
    if count:
        raise PartitaError(
            f"{count} metrics are not migrated: run `partita metrics migrate` again."
        )


async def rollback(mysql: str, endpoint: str, tables: Tables, display: Display) -> Verification:
    async with opened(mysql, endpoint, tables, display) as both, _alone(both):
        found = Verification()
        if await both.mode() in (Mode.MIRRORED, Mode.DYNAMODB):
            await both.go(Mode.MIRRORED)
            await directory.copy_to_legacy(both.legacy, both.dynamodb)
            # Nobody takes dimensions and waiting groups away: both sides may have all of them.
            await directory.copy_to_dynamodb(both.legacy, both.dynamodb)
            before = await both.verify()
            await _carry_back(both, before.differences)
            await directory.remove_stale_consumers(both.dynamodb, before.directory)
            found = await both.verify()
            if not found.is_equal:
                return found
        await both.go(Mode.LEGACY)
        return found


async def _carry_back(both: Both, names: dict[str, str]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async def story(session: Session) -> None:
            await session.row(LOCK_METRIC, name)
            metric = await both.dynamodb.find(name)
            if metric is not None:
                await carry(session, metric, await both.dynamodb.all_versions(name))

        async with places:
            await both.legacy.database.transaction(story)

    await asyncio.gather(*(one(name) for name in names))

"""The stages of the migration: `partita metrics migrate`, `verify`, `cutover` and `rollback`.

    migrate    legacy -> migrating; every metric is copied; both sides are compared
    cutover    migrating -> mirrored -> dynamodb, if both sides are equal
    rollback   dynamodb -> mirrored; what was written since is copied back; -> migrating -> legacy

Each can be stopped at any point and run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from partita.apps.metrics import service
from partita.apps.metrics.dynamodb.catalogue import DynamoDBCatalogue
from partita.apps.metrics.dynamodb.tables import Tables
from partita.apps.metrics.mariadb.catalogue import MariaDBCatalogue
from partita.apps.metrics.mariadb.connections import LockHeld, Session
from partita.apps.metrics.mariadb.rows import LOCK_METRIC, MIGRATED, NOT_MIGRATED
from partita.apps.metrics.migration import directory
from partita.apps.metrics.migration import state_machine as machine
from partita.apps.metrics.migration.counts import Counts
from partita.apps.metrics.migration.invoker import Invoker
from partita.apps.metrics.migration.to_dynamodb import CHANGE_STATE, remove
from partita.apps.metrics.migration.to_mariadb import copy_back
from partita.apps.metrics.migration.verification import Verification, verify
from partita.apps.metrics.modes import Mode, Modes, steps
from partita.errors import PartitaError

LOCK_SECONDS_MAX = 5.0
REPAIRS_MAX = 3
AT_ONCE = 8


class Display(Protocol):
    """Shows the progress of a stage."""

    def migrating(self, counts: Counts, total: int) -> None: ...

    def verifying(self, compared: int, total: int) -> None: ...


class BothStores:
    """Both stores, and the mode of the servers."""

    def __init__(
        self, mariadb: MariaDBCatalogue, dynamodb: DynamoDBCatalogue, modes: Modes, display: Display
    ) -> None:
        self.mariadb = mariadb
        self.dynamodb = dynamodb
        self.modes = modes
        self.display = display

    async def mode(self) -> Mode:
        return await self.modes.begin(Mode.LEGACY)

    async def go(self, end: Mode) -> None:
        """Change the mode step by step; all servers follow before the next step."""
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
        """Rows without versions are placeholders, not metrics."""
        found = await self.mariadb.database.rows(
            f"SELECT COUNT(*) AS count FROM metrics m WHERE {condition}EXISTS "
            "(SELECT 1 FROM metric_versions v WHERE v.metric_id = m.id)"
        )
        return int(found[0]["count"])

    async def verify(self) -> Verification:
        total = await self.count()
        return await verify(
            self.mariadb, self.dynamodb, lambda compared: self.display.verifying(compared, total)
        )


@asynccontextmanager
async def opened(
    mysql: str, endpoint: str, tables: Tables, display: Display
) -> AsyncIterator[BothStores]:
    async with service.opened(mysql, endpoint, tables) as stores:
        assert stores.mariadb and stores.dynamodb and stores.modes
        yield BothStores(stores.mariadb, stores.dynamodb, stores.modes, display)


@asynccontextmanager
async def _locked(both: BothStores) -> AsyncIterator[None]:
    """Only one command at a time migrates a catalogue."""
    database = both.mariadb.database
    lock = f"moving {database.address.database}"
    try:
        async with database.lock(lock, LOCK_SECONDS_MAX):
            yield
    except LockHeld as error:
        raise PartitaError(
            "Another command is migrating this catalogue: wait until it has finished."
        ) from error


async def migrate(
    mysql: str, endpoint: str, tables: Tables, display: Display
) -> tuple[Counts, Verification]:
    async with opened(mysql, endpoint, tables, display) as both, _locked(both):
        if await both.mode() in (Mode.MIRRORED, Mode.DYNAMODB):
            raise PartitaError(
                f"The catalogue is in the mode {await both.mode()}: it has been migrated already."
            )
        await both.go(Mode.MIGRATING)
        await directory.copy_to_dynamodb(both.mariadb, both.dynamodb)
        total = await both.count()
        async with machine.opened(mysql, endpoint, tables) as running:
            invoker = Invoker(
                running, both.mariadb, lambda counts: display.migrating(counts, total)
            )
            await invoker.run()
            found = await both.verify()
            for _ in range(REPAIRS_MAX):
                if found.is_equal or invoker.counts.errors:
                    break
                await _repair(both, found)
                await invoker.run_again()
                found = await both.verify()
            return invoker.counts, found


async def _repair(both: BothStores, found: Verification) -> None:
    """Migrate what differs again, and remove what only DynamoDB has.

    A server that was killed between its two writes leaves such differences.
    """
    for name in found.differences:
        async with both.mariadb.database.session() as session:
            await session.run(CHANGE_STATE, NOT_MIGRATED, name, MIGRATED)
        async with both.mariadb.name_lock(name):
            if not await both.mariadb.all_versions(name):
                await remove(both.dynamodb, name)
    await directory.repair_dynamodb(both.mariadb, both.dynamodb, found.directory)


async def compare(mysql: str, endpoint: str, tables: Tables, display: Display) -> Verification:
    async with opened(mysql, endpoint, tables, display) as both:
        return await both.verify()


async def cutover(mysql: str, endpoint: str, tables: Tables, display: Display) -> Verification:
    async with opened(mysql, endpoint, tables, display) as both, _locked(both):
        mode = await both.mode()
        if mode == Mode.LEGACY:
            raise PartitaError("Nothing has been migrated: run `partita metrics migrate` first.")
        found = Verification()
        if mode == Mode.MIGRATING:
            # The metric of a new group may be added at any moment.
            await directory.copy_to_dynamodb(both.mariadb, both.dynamodb)
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
        await directory.copy_to_dynamodb(both.mariadb, both.dynamodb)
        await both.go(Mode.DYNAMODB)
        return found


async def _refuse_unmigrated(both: BothStores) -> None:
    count = await both.count_unmigrated()
    if count:
        raise PartitaError(
            f"{count} metrics are not migrated: run `partita metrics migrate` again."
        )


async def rollback(mysql: str, endpoint: str, tables: Tables, display: Display) -> Verification:
    async with opened(mysql, endpoint, tables, display) as both, _locked(both):
        found = Verification()
        if await both.mode() in (Mode.MIRRORED, Mode.DYNAMODB):
            await both.go(Mode.MIRRORED)
            await directory.copy_to_mariadb(both.mariadb, both.dynamodb)
            # Dimensions and groups are never deleted, so each side may get those of the other.
            await directory.copy_to_dynamodb(both.mariadb, both.dynamodb)
            before = await both.verify()
            await _copy_all_back(both, before.differences)
            await directory.remove_stale_consumers(both.dynamodb, before.directory)
            found = await both.verify()
            if not found.is_equal:
                return found
        await both.go(Mode.LEGACY)
        return found


async def _copy_all_back(both: BothStores, names: dict[str, str]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async def work(session: Session) -> None:
            await session.row(LOCK_METRIC, name)
            metric = await both.dynamodb.find(name)
            if metric is not None:
                await copy_back(session, metric, await both.dynamodb.all_versions(name))

        async with places:
            await both.mariadb.database.transaction(work)

    await asyncio.gather(*(one(name) for name in names))

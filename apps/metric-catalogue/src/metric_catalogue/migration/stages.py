"""The stages of the migration: `partita metrics migrate`, `verify`, `cutover` and `rollback`.

    migrate    legacy -> migrating; every metric is copied; both sides are compared
    cutover    both sides are compared; the fence of MariaDB is closed, and DynamoDB refuses dual
               writes; if what has changed meanwhile is equal too, -> sealed -> dynamodb
    rollback   dynamodb -> sealed; what was written since is copied back; -> migrating, the fence
               is opened, -> legacy

Each can be killed at any point and run again, and so can another one. Requests that meet the closed
fence or the sealed catalogue wait in their server, and are answered in the next mode.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from metric_catalogue import service
from metric_catalogue.dynamodb.catalogue import DynamoDBCatalogue
from metric_catalogue.dynamodb.tables import Tables
from metric_catalogue.mariadb.catalogue import MariaDBCatalogue
from metric_catalogue.mariadb.connections import LockHeld
from metric_catalogue.mariadb.rows import MIGRATED, NOT_MIGRATED
from metric_catalogue.migration import directory, state_machine, way_back
from metric_catalogue.migration.fence import PassingPool, catalogue_fence
from metric_catalogue.migration.functions import LOCK_SECONDS
from metric_catalogue.migration.run import Counts, Run
from metric_catalogue.migration.to_dynamodb import CHANGE_STATE, remove, write
from metric_catalogue.migration.verification import Verification, verify, verify_since
from metric_catalogue.modes import BEFORE_CUTOVER, Mode, steps
from partita.errors import PartitaError
from partita_migrate.moving.fences.fence import SOURCE, TARGET, Fence
from partita_migrate.progress import Progress

LOCK_SECONDS_MAX = 5.0
REPAIRS_MAX = 3
WAIT_SECONDS = 30.0
"""For those that have written in MariaDB and have not committed yet."""


class BothStores:
    """Both stores, and the mode of the servers."""

    def __init__(self, stores: service.Stores, tables: Tables, progress: Progress) -> None:
        assert stores.mariadb and stores.client and stores.modes
        self.mariadb = stores.mariadb
        self.passing = MariaDBCatalogue(PassingPool(self.mariadb.database.address))
        """The same, for what goes back while the fence is closed."""
        self.dynamodb = DynamoDBCatalogue(stores.client, tables, BEFORE_CUTOVER)
        self.sealed = DynamoDBCatalogue(stores.client, tables, (Mode.SEALED,))
        self.client = stores.client
        self.modes = stores.modes
        self.progress = progress
        self.mariadb.database.server_of = self.modes.server_of

    async def mode(self) -> Mode:
        return await self.modes.begin(Mode.LEGACY)

    async def go(self, end: Mode) -> None:
        """Change the mode step by step; all servers follow before the next step."""
        here = await self.mode()
        # Of a command that was killed while it changed the mode.
        await self.modes.copy(here)
        await self.modes.wait_for_servers(here)
        for mode in steps(here, end):
            await self.modes.change(here, mode)
            here = mode

    async def go_back(self, mode: Mode) -> None:
        """After a failure. Nobody is waited for: it may have been the waiting that failed."""
        here = await self.mode()
        if here != mode:
            await self.modes.set(here, mode)
        else:
            await self.modes.copy(mode)

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
            self.mariadb,
            self.dynamodb,
            lambda compared: self.progress("Comparing", compared, total),
        )

    async def verify_since(self, before: Verification) -> Verification:
        return await verify_since(self.mariadb, self.dynamodb, before)


@asynccontextmanager
async def opened(
    mysql: str, endpoint: str, tables: Tables, progress: Progress
) -> AsyncIterator[BothStores]:
    async with service.opened(mysql, endpoint, tables, lock_seconds=LOCK_SECONDS) as stores:
        both = BothStores(stores, tables, progress)
        try:
            yield both
        finally:
            both.passing.database.close()


@asynccontextmanager
async def _locked(both: BothStores) -> AsyncIterator[None]:
    """Only one command at a time migrates a catalogue."""
    database = both.mariadb.database
    async with AsyncExitStack() as stack:
        try:
            lock = database.lock(f"moving {database.address.database}", LOCK_SECONDS_MAX)
            await stack.enter_async_context(lock)
        except LockHeld as error:
            raise PartitaError(
                f"Another command is migrating this catalogue: wait until it has finished. {error}"
            ) from error
        yield


async def migrate(
    mysql: str, endpoint: str, tables: Tables, progress: Progress
) -> tuple[Counts, Verification]:
    async with opened(mysql, endpoint, tables, progress) as both, _locked(both):
        if await both.mode() not in BEFORE_CUTOVER:
            raise PartitaError(
                f"The catalogue is in the mode {await both.mode()}: it has been migrated already."
            )
        await both.go(Mode.MIGRATING)
        await asyncio.to_thread(_open_and_install, mysql)
        await directory.copy_to_dynamodb(both.mariadb, both.dynamodb)
        total = await both.count()
        async with state_machine.opened(both.client, mysql, endpoint, tables) as machine:
            run = Run(machine, both.mariadb, lambda counts: counts.show(progress, total))
            await run.begin()
            found = await both.verify()
            for _ in range(REPAIRS_MAX):
                if found.is_equal or run.counts.errors:
                    break
                await _repair(both, found)
                await run.go_on()
                found = await both.verify()
            return run.counts, found


def _open_and_install(mysql: str) -> None:
    """A cutover that was killed has left the fence closed. It is installed now, when nobody waits
    for it; if it cannot be had, the cutover says why."""
    fence = catalogue_fence(mysql)
    if fence.is_closed:
        fence.turn(SOURCE)
    with suppress(PartitaError):
        fence.install(0)


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


async def compare(mysql: str, endpoint: str, tables: Tables, progress: Progress) -> Verification:
    async with opened(mysql, endpoint, tables, progress) as both:
        return await both.verify()


async def cutover(mysql: str, endpoint: str, tables: Tables, progress: Progress) -> Verification:
    async with opened(mysql, endpoint, tables, progress) as both, _locked(both):
        mode = await both.mode()
        if mode == Mode.LEGACY:
            raise PartitaError("Nothing has been migrated: run `partita metrics migrate` first.")
        found = Verification()
        if mode == Mode.DYNAMODB:
            await both.go(Mode.DYNAMODB)
            return found
        fence = await asyncio.to_thread(catalogue_fence, mysql)
        began = time.monotonic()
        if mode == Mode.MIGRATING:
            # Of a cutover that was killed.
            await both.modes.copy(mode)
            # The metric of a new group may be added at any moment.
            await directory.copy_to_dynamodb(both.mariadb, both.dynamodb)
            await _refuse_unmigrated(both)
            found = await both.verify()
            if found.is_equal:
                # What was written meanwhile is compared before anybody waits for it.
                found = await both.verify_since(found)
            if not found.is_equal:
                return found
            await _install(both, fence)
            began = time.monotonic()
            await _close(both, fence)
            found = await _sealed(both, fence, found)
            if not found.is_equal:
                return found
        else:
            await both.go(mode)
        await asyncio.to_thread(fence.turn, TARGET)
        await both.modes.change(Mode.SEALED, Mode.DYNAMODB)
        found.waited_seconds = time.monotonic() - began
        return found


async def _install(both: BothStores, fence: Fence) -> None:
    await _naming_holders(both, fence.install)


async def _close(both: BothStores, fence: Fence) -> None:
    await _naming_holders(both, fence.close)


async def _naming_holders(both: BothStores, work: Callable[[float], None]) -> None:
    """Who is in the way is named, with the server that it belongs to."""
    try:
        await asyncio.to_thread(work, WAIT_SECONDS)
    except PartitaError as error:
        names = "; ".join(await both.mariadb.database.open_transactions()) or "none"
        raise PartitaError(f"{error} Transactions that are open: {names}.") from error


async def _sealed(both: BothStores, fence: Fence, before: Verification) -> Verification:
    """Nobody can write in MariaDB any more, nor finish a dual write in DynamoDB, so what is equal
    now stays so. A failure opens both."""
    is_sealed = False
    try:
        await both.modes.copy(Mode.SEALED)
        await _refuse_unmigrated(both)
        # Groups and dimensions of servers that were killed between their two writes.
        await directory.copy_to_dynamodb(both.mariadb, both.sealed)
        found = await both.verify_since(before)
        if found.differences:
            await _mend(both, found.differences)
            found = await both.verify_since(before)
        if found.is_equal:
            await both.modes.change(Mode.MIGRATING, Mode.SEALED)
            is_sealed = True
        return found
    finally:
        if not is_sealed:
            await both.go_back(Mode.MIGRATING)
            await asyncio.to_thread(fence.turn, SOURCE)


async def _mend(both: BothStores, names: Iterable[str]) -> None:
    """The closing fence refuses the last statement of a dual write whose DynamoDB half is done: its
    request is answered later, and what it left is made again as MariaDB has it."""
    for name in names:
        await remove(both.sealed, name)
        await write(both.mariadb, both.sealed, name)


async def _refuse_unmigrated(both: BothStores) -> None:
    count = await both.count_unmigrated()
    if count:
        raise PartitaError(
            f"{count} metrics are not migrated: run `partita metrics migrate` again."
        )


async def rollback(
    mysql: str, endpoint: str, tables: Tables, progress: Progress, replaced: Path | None = None
) -> Verification:
    """`replaced`: the file that is given what MariaDB has and DynamoDB contradicts; without one,
    that is refused."""
    async with opened(mysql, endpoint, tables, progress) as both, _locked(both):
        found = Verification()
        fence = await asyncio.to_thread(catalogue_fence, mysql)
        if await both.mode() in (Mode.SEALED, Mode.DYNAMODB):
            # Of a catalogue that was served from DynamoDB without a cutover, it may be open.
            await _install(both, fence)
            await _close(both, fence)
            found = await way_back.copy_all(both, replaced)
            if not found.is_equal:
                return found
            # MariaDB answers from here on, and writes wait at the fence.
            await both.go(Mode.MIGRATING)
        if await asyncio.to_thread(lambda: fence.is_installed):
            await asyncio.to_thread(fence.turn, SOURCE)
        await both.go(Mode.LEGACY)
        return found

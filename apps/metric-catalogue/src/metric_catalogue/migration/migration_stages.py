"""The stages of the migration: `partita metrics migrate`, `verify`, `cutover` and `rollback`.

    migrate    legacy -> migrating; copies every metric and compares both sides
    cutover    compares both sides; closes the fence of MariaDB and lets DynamoDB refuse dual
               writes; if what has changed meanwhile is equal too, -> sealed -> dynamodb
    rollback   dynamodb -> sealed; copies back what was written since the cutover; -> migrating,
               opens the fence, -> legacy

Each command can be killed at any point. Afterwards the same command or another one can be run, and
completes or undoes what was begun. Requests that meet the closed fence or the sealed catalogue wait
in their server, and are answered in the next mode.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from metric_catalogue import catalogue_service
from metric_catalogue.migration import catalogue_rollback, directory_copy
from metric_catalogue.migration.catalogue_fence import PassingPool, catalogue_fence
from metric_catalogue.migration.catalogue_verification import (
    CatalogueVerification,
    verify,
    verify_since,
)
from metric_catalogue.migration.copy_to_dynamodb import CHANGE_STATE, remove, write
from metric_catalogue.migration.step_functions import migration_machine
from metric_catalogue.migration.step_functions.migration_functions import LOCK_SECONDS
from metric_catalogue.migration.step_functions.migration_run import MigrationCounts, MigrationRun
from metric_catalogue.stores.catalogue_modes import BEFORE_CUTOVER, Mode, steps
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables
from metric_catalogue.stores.dynamodb.dynamodb_catalogue import DynamoDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_connections import LockTimeout
from metric_catalogue.stores.mariadb.metric_rows import MIGRATED, NOT_MIGRATED
from partita.errors import PartitaError
from partita_migrate.moving.switching.fences.source_fence import SOURCE, TARGET, SourceFence
from partita_migrate.workspace.stage_progress import Progress

LOCK_SECONDS_MAX = 5.0
REPAIRS_MAX = 3
WAIT_SECONDS = 30.0
"""How long the fence waits for transactions that have written in MariaDB and have not committed."""


class BothStores:
    """Both stores, and the mode of the servers."""

    def __init__(
        self, stores: catalogue_service.OpenStores, tables: CatalogueTables, progress: Progress
    ) -> None:
        assert stores.mariadb and stores.client and stores.modes
        self.mariadb = stores.mariadb
        self.passing = MariaDBCatalogue(PassingPool(self.mariadb.database.address))
        """The same catalogue, with connections that may write while the fence is closed."""
        self.dynamodb = DynamoDBCatalogue(stores.client, tables, BEFORE_CUTOVER)
        self.sealed = DynamoDBCatalogue(stores.client, tables, (Mode.SEALED,))
        self.client = stores.client
        self.modes = stores.modes
        self.progress = progress
        self.mariadb.database.server_of = self.modes.server_of

    async def mode(self) -> Mode:
        return await self.modes.begin(Mode.LEGACY)

    async def go(self, end: Mode) -> None:
        """Changes the mode step by step. All servers follow before the next step."""
        here = await self.mode()
        # A command that was killed while it changed the mode may not have written all copies.
        await self.modes.copy(here)
        await self.modes.wait_for_servers(here)
        for mode in steps(here, end):
            await self.modes.change(here, mode)
            here = mode

    async def go_back(self, mode: Mode) -> None:
        """Sets the mode after a failure, without waiting for servers: perhaps it was the waiting
        that failed."""
        here = await self.mode()
        if here != mode:
            await self.modes.set(here, mode)
        else:
            await self.modes.copy(mode)

    async def count(self) -> int:
        """Returns the number of metrics in MariaDB."""
        return sum((await self.mariadb.count_by_state()).values())

    async def verify(self) -> CatalogueVerification:
        total = await self.count()
        return await verify(
            self.mariadb,
            self.dynamodb,
            lambda compared: self.progress("Comparing", compared, total),
        )

    async def verify_since(self, before: CatalogueVerification) -> CatalogueVerification:
        return await verify_since(self.mariadb, self.dynamodb, before)


@asynccontextmanager
async def open_both_stores(
    mysql: str, endpoint: str, tables: CatalogueTables, progress: Progress
) -> AsyncIterator[BothStores]:
    async with catalogue_service.open_stores(
        mysql, endpoint, tables, lock_seconds=LOCK_SECONDS
    ) as stores:
        both = BothStores(stores, tables, progress)
        try:
            yield both
        finally:
            both.passing.database.close()


@asynccontextmanager
async def _locked(both: BothStores) -> AsyncIterator[None]:
    """Holds the lock that makes sure that only one command at a time migrates a catalogue."""
    database = both.mariadb.database
    async with AsyncExitStack() as stack:
        try:
            lock = database.lock(f"moving {database.address.database}", LOCK_SECONDS_MAX)
            await stack.enter_async_context(lock)
        except LockTimeout as error:
            raise PartitaError(
                f"Another command is migrating this catalogue: wait until it has finished. {error}"
            ) from error
        yield


async def migrate(
    mysql: str, endpoint: str, tables: CatalogueTables, progress: Progress
) -> tuple[MigrationCounts, CatalogueVerification]:
    """Copies every metric, compares both sides, and migrates again what differs."""
    async with open_both_stores(mysql, endpoint, tables, progress) as both, _locked(both):
        if await both.mode() not in BEFORE_CUTOVER:
            raise PartitaError(
                f"The catalogue is in the mode {await both.mode()}: it has been migrated already."
            )
        # The mode comes first: from here on a new metric is in both databases, so the copy cannot
        # miss what is added after it has begun.
        await both.go(Mode.MIGRATING)
        await asyncio.to_thread(_open_and_install, mysql)
        await directory_copy.copy_to_dynamodb(both.mariadb, both.dynamodb)
        total = await both.count()
        async with migration_machine.open_machine(both.client, mysql, endpoint, tables) as machine:
            run = MigrationRun(machine, both.mariadb, lambda counts: counts.show(progress, total))
            await run.begin()
            verification = await both.verify()
            for _ in range(REPAIRS_MAX):
                if verification.is_equal or run.counts.errors:
                    break
                await _repair(both, verification)
                await run.go_on()
                verification = await both.verify()
            return run.counts, verification


def _open_and_install(mysql: str) -> None:
    """Opens a fence that a killed cutover has left closed, and installs the triggers now, while no
    writes wait for it. If they cannot be installed, the cutover reports the reason."""
    fence = catalogue_fence(mysql)
    if fence.is_closed:
        fence.turn(SOURCE)
    with suppress(PartitaError):
        fence.install(0)


async def _repair(both: BothStores, verification: CatalogueVerification) -> None:
    """Marks metrics that differ as not migrated, and removes what only DynamoDB has.

    A server that was killed between its two writes leaves such differences.
    """
    for name in verification.differences:
        async with both.mariadb.database.session() as session:
            await session.run(CHANGE_STATE, NOT_MIGRATED, name, MIGRATED)
        # Under the lock, because a metric of this name may just be added to both databases.
        async with both.mariadb.name_lock(name):
            if not await both.mariadb.all_versions(name):
                await remove(both.dynamodb, name)
    await directory_copy.repair_dynamodb(both.mariadb, both.dynamodb, verification.directory)


async def compare(
    mysql: str, endpoint: str, tables: CatalogueTables, progress: Progress
) -> CatalogueVerification:
    """Compares both sides, for `partita metrics verify`. Changes nothing."""
    async with open_both_stores(mysql, endpoint, tables, progress) as both:
        return await both.verify()


async def cutover(
    mysql: str, endpoint: str, tables: CatalogueTables, progress: Progress
) -> CatalogueVerification:
    """Lets DynamoDB answer if both sides are equal. Returns the verification, and changes nothing
    when it found differences."""
    async with open_both_stores(mysql, endpoint, tables, progress) as both, _locked(both):
        mode = await both.mode()
        if mode == Mode.LEGACY:
            raise PartitaError("Nothing has been migrated: run `partita metrics migrate` first.")
        verification = CatalogueVerification()
        if mode == Mode.DYNAMODB:
            await both.go(Mode.DYNAMODB)
            return verification
        fence = await asyncio.to_thread(catalogue_fence, mysql)
        began = time.monotonic()
        if mode == Mode.MIGRATING:
            # A cutover that was killed may have left copies of the mode that say `sealed`.
            await both.modes.copy(mode)
            # Groups that were added while MariaDB alone answered: their metric may be added at any
            # moment, and its dual write needs the group.
            await directory_copy.copy_to_dynamodb(both.mariadb, both.dynamodb)
            await _refuse_unmigrated(both)
            verification = await both.verify()
            if verification.is_equal:
                # Compares what was written during the long comparison, while nobody waits yet.
                verification = await both.verify_since(verification)
            if not verification.is_equal:
                return verification
            # CREATE TRIGGER waits for open transactions, so it runs before writes have to wait.
            await _naming_holders(both, fence.install)
            began = time.monotonic()
            await _close(both, fence)
            verification = await _sealed(both, fence, verification)
            if not verification.is_equal:
                return verification
        else:
            await both.go(mode)
        # The fence turns before the mode: after a kill in between nobody can write in MariaDB, and
        # the next cutover goes on from `sealed`.
        await asyncio.to_thread(fence.turn, TARGET)
        await both.modes.change(Mode.SEALED, Mode.DYNAMODB)
        verification.waited_seconds = time.monotonic() - began
        return verification


async def _close(both: BothStores, fence: SourceFence) -> None:
    await _naming_holders(both, fence.close)


async def _naming_holders(both: BothStores, work: Callable[[float], None]) -> None:
    """Runs a step of the fence. An error names the open transactions that are in the way, with the
    server of the catalogue that each belongs to."""
    try:
        await asyncio.to_thread(work, WAIT_SECONDS)
    except PartitaError as error:
        names = "; ".join(await both.mariadb.database.open_transactions()) or "none"
        raise PartitaError(f"{error} Transactions that are open: {names}.") from error


async def _sealed(
    both: BothStores, fence: SourceFence, before: CatalogueVerification
) -> CatalogueVerification:
    """Compares both sides while nobody can write in MariaDB or finish a dual write in DynamoDB, so
    that what is equal now stays equal. Opens both again if they differ or anything fails."""
    is_sealed = False
    try:
        await both.modes.copy(Mode.SEALED)
        await _refuse_unmigrated(both)
        # Servers that were killed between their two writes left groups and dimensions behind.
        await directory_copy.copy_to_dynamodb(both.mariadb, both.sealed)
        verification = await both.verify_since(before)
        if verification.differences:
            await _mend(both, verification.differences)
            verification = await both.verify_since(before)
        if verification.is_equal:
            await both.modes.change(Mode.MIGRATING, Mode.SEALED)
            is_sealed = True
        return verification
    finally:
        if not is_sealed:
            # DynamoDB opens first: a writer that the fence still refuses waits and tries again.
            await both.go_back(Mode.MIGRATING)
            await asyncio.to_thread(fence.turn, SOURCE)


async def _mend(both: BothStores, names: Iterable[str]) -> None:
    """Writes metrics to DynamoDB again, as MariaDB has them.

    The closing fence refuses the last statement of a dual write whose DynamoDB half is done. Its
    request is answered in the next mode, so what it left in DynamoDB must go.
    """
    for name in names:
        await remove(both.sealed, name)
        await write(both.mariadb, both.sealed, name)


async def _refuse_unmigrated(both: BothStores) -> None:
    states = await both.mariadb.count_by_state()
    count = sum(states.values()) - states.get(MIGRATED, 0)
    if count:
        raise PartitaError(
            f"{count} metrics are not migrated: run `partita metrics migrate` again."
        )


async def rollback(
    mysql: str,
    endpoint: str,
    tables: CatalogueTables,
    progress: Progress,
    replaced: Path | None = None,
) -> CatalogueVerification:
    """Lets MariaDB answer again, after everything written in DynamoDB since is copied back.

    Versions that somebody wrote in MariaDB past the fence, and that would be overwritten, are
    appended to the file `replaced`; without a file the rollback is refused.
    """
    async with open_both_stores(mysql, endpoint, tables, progress) as both, _locked(both):
        verification = CatalogueVerification()
        fence = await asyncio.to_thread(catalogue_fence, mysql)
        if await both.mode() in (Mode.SEALED, Mode.DYNAMODB):
            # A catalogue that was served from DynamoDB from the start has no closed fence yet.
            await _naming_holders(both, fence.install)
            await _close(both, fence)
            verification = await catalogue_rollback.copy_all(both, replaced)
            if not verification.is_equal:
                return verification
            # MariaDB answers from here on, and writes wait at the fence.
            await both.go(Mode.MIGRATING)
        if await asyncio.to_thread(lambda: fence.is_installed):
            await asyncio.to_thread(fence.turn, SOURCE)
        await both.go(Mode.LEGACY)
        return verification

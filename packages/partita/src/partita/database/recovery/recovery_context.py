"""The context that all recovery tasks share: bases, backups, restores, exports, imports, bulk puts.

A task is a generator: each `yield` ends a piece of work and returns the next write batch. A task
that yields a future is resumed when that is done. One that yields COMMITTED is resumed when all its
changes are on disk, which it waits for before it reports a result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Final

from msgspec.structs import replace

from partita.database.recovery.chunk_manifests import ChunkManifest, get_manifest
from partita.database.recovery.recovery_records import (
    RecoveryBase,
    RecoveryRecords,
    Resource,
    kind_of,
)
from partita.database.recovery.s3.object_buckets import ObjectBuckets
from partita.database.recovery.s3.record_preparation import PreparationProcess
from partita.database.storage.archive import Archive
from partita.database.storage.engine import BulkLoadable, Snapshot
from partita.database.storage.recovery_log import RecoveryLog
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import CREATING, RestoreOrigin, Table
from partita.errors import StorageError
from partita.foundation.clock import Clock

Task = Generator["Future[Any] | None", WriteBatch, None]
Run = Callable[[Callable[[], Any]], "Future[Any]"]
"""Runs a function that waits for disk or network, on the background thread if there is one."""


class RecoveryContext:
    """The parts of a database that recovery tasks use."""

    def __init__(
        self,
        catalog: TableCatalog,
        records: RecoveryRecords,
        snapshot: Snapshot,
        archive: Archive,
        log: RecoveryLog,
        clock: Clock,
        run: Run,
        transient_seconds: float,
        table_arn: Callable[[str], str],
        buckets: ObjectBuckets,
        loads: BulkLoadable | None = None,
    ) -> None:
        self.catalog = catalog
        self.records = records
        self.snapshot = snapshot
        self.archive = archive
        self.log = log
        self.clock = clock
        self.run = run
        self.transient_seconds = transient_seconds
        self.table_arn = table_arn
        self.buckets = buckets
        self.loads = loads
        self.preparing = PreparationProcess()

    def arn(self, resource: Resource) -> str:
        kind = kind_of(type(resource))
        return f"{self.table_arn(resource.table_name)}/{kind}/{resource.id}"

    def bases(self, table_id: str) -> list[RecoveryBase]:
        """The bases of a table, the oldest first."""
        bases = [base for base in self.records.of(RecoveryBase) if base.table_id == table_id]
        return sorted(bases, key=lambda base: base.stamp)

    def base_at(self, table_id: str, stamp: int) -> RecoveryBase | None:
        """The newest base of a table that is not later than a stamp."""
        before = [base for base in self.bases(table_id) if base.stamp <= stamp]
        return before[-1] if before else None


def finish_loading(
    work: RecoveryContext,
    write_batch: WriteBatch,
    table: Table,
    origin: RestoreOrigin | None = None,
) -> None:
    """Makes a table ACTIVE once all its items are loaded."""
    settles_at = work.clock() + work.transient_seconds
    done = replace(table, transition=CREATING, settles_at=settles_at, origin=origin, import_id=None)
    work.catalog.save(write_batch, done)


def load_past_manifest(
    work: RecoveryContext, table_id: str, stamp: int
) -> Generator[Future[Any] | None, Any, tuple[ChunkManifest, int]]:
    """Returns the manifest of the newest base before a stamp, with the log flushed up to it."""
    yield work.run(work.log.flush)
    base = work.base_at(table_id, stamp)
    if base is None:
        raise StorageError(f"The archive has no base of table {table_id} before that moment.")
    return get_manifest(work.archive, base.manifest), stamp


def run_at_once(work: Callable[[], Any]) -> Future[Any]:
    """Runs a function on this thread: the `Run` of a database without a background thread."""
    future: Future[Any] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        # As with a thread pool, any error is raised where the result is awaited.
        future.set_exception(error)
    return future


COMMITTED: Final = run_at_once(lambda: None)
"""Yielded by tasks that run ahead of their commits, to wait until these are on disk."""

"""The background jobs of recovery: bases, backups, restores, exports, imports, and retention.

The tasks to run follow from the catalog and the recovery records, so a restart finds them again.
Tasks take turns, a piece each. A task that failed is tried again after a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import pairwise
from typing import Any, Final

from msgspec.structs import replace

from partita.database.recovery.chunk_manifests import collect_garbage
from partita.database.recovery.recovery_bases import take_backup, take_base
from partita.database.recovery.recovery_context import COMMITTED, RecoveryContext, Task
from partita.database.recovery.recovery_records import (
    CANCELLING,
    IN_PROGRESS,
    BackupRecord,
    BulkPutRecord,
    ExportRecord,
    ImportRecord,
    RecoveryBase,
)
from partita.database.recovery.restore_task import restore
from partita.database.recovery.s3.bulk_put import bulk_put
from partita.database.recovery.s3.s3_export import export
from partita.database.recovery.s3.s3_import import import_table
from partita.database.storage.recovery_log import EVERYTHING, LOGS, MICROSECONDS, log_files
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import DAY, Table
from partita.database.tables.table_statistics import read_statistics
from partita.errors import StorageError

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 10.0
BASE_BYTES_MIN: Final = 16 << 20
"""A new base is taken when the log since the last one is larger than both the table and this."""
RETENTION_SECONDS: Final = 60.0
PENDING_COMMITS_MAX: Final = 256
"""The commits that an engine without a write-ahead log keeps in memory before a flush."""

RUN_AHEAD: Final = frozenset(("bulk", "restore"))
"""Tasks that need not wait for the commit of their last piece: they read what was decided."""

Key = tuple[str, str]
Starts = Iterator[tuple[Key, Callable[[], Task]]]


class RecoveryJobs:
    """The tasks of recovery, of which each call of `work` does a piece."""

    def __init__(self, context: RecoveryContext, new_id: Callable[[], str]) -> None:
        self._context = context
        self._new_id = new_id
        self._tasks: dict[Key, Task] = {}
        self._waiting: dict[Key, Future[Any]] = {}
        self._not_before: dict[Key, float] = {}
        """The times when failed tasks are retried, or logs of tables are measured again."""
        self._retained_at = 0.0
        self._is_early = False
        """True when a task will start as soon as the current commit is on disk."""
        self._collecting: Future[Any] | None = None
        self._removals_seen = 0
        self._is_garbage = True
        """True when there may be chunks that no manifest refers to."""

    def restart(self) -> None:
        """Start all tasks again, because a commit was lost, perhaps with pieces of them."""
        for key in list(self._tasks):
            self._end(key)

    def is_kept(self, prefix: bytes) -> bool:
        """True when a backup of a deleted table still reads the items under a prefix."""
        return any(
            not backup.is_available and table_layout.items_prefix(backup.table.number) == prefix
            for backup in self._context.records.of(BackupRecord)
        )

    def work(self, write_batch: WriteBatch) -> bool:
        """Do one piece of a task, or of retention if it is due; True if there was work."""
        self._start_tasks()
        if self._advance_first(list(self._ready()), write_batch):
            return True
        if self._fix_latest(write_batch) or self._retain(write_batch):
            return True
        self._collect_garbage()
        self._flush_in_memory()
        return self._is_early

    @property
    def can_work_ahead(self) -> bool:
        return any(self._runs_ahead(key) for key in self._ready())

    def work_ahead(self, write_batch: WriteBatch) -> bool:
        ahead = [key for key in self._ready() if self._runs_ahead(key)]
        return self._advance_first(ahead, write_batch)

    def _runs_ahead(self, key: Key) -> bool:
        return key[0] in RUN_AHEAD and self._waiting.get(key) is not COMMITTED

    # Tasks

    def _ready(self) -> Iterator[Key]:
        """Yields the tasks that can continue, the one that waited longest first."""
        for key in self._tasks:
            waiting = self._waiting.get(key)
            if waiting is None or waiting.done():
                yield key

    def _advance_first(self, ready: Sequence[Key], write_batch: WriteBatch) -> bool:
        if not ready:
            return False
        # Move the task to the end of the queue, so that the others get their turn.
        self._tasks[ready[0]] = self._tasks.pop(ready[0])
        self._advance(ready[0], write_batch)
        return True

    def _start_tasks(self) -> None:
        if self._collecting is not None:
            if not self._collecting.done():
                return
            self._collecting = None
        self._is_early = False
        required = dict(self._required())
        for key in [key for key in self._tasks if key not in required]:
            self._end(key)
        now = self._context.clock()
        for key, start in required.items():
            if key not in self._tasks and now >= self._not_before.get(key, 0.0):
                task = start()
                next(task)
                self._tasks[key] = task

    def _required(self) -> Starts:
        """Yields all tasks that the catalog and the records require, with their start functions."""
        context = self._context
        for backup in context.records.of(BackupRecord):
            if backup.is_available:
                continue
            if context.records.is_committed(backup):
                yield ("backup", backup.id), partial(take_backup, context, backup)
            else:
                self._is_early = True
        for record in context.records.of(ExportRecord):
            if record.status == IN_PROGRESS:
                if context.records.is_committed(record):
                    yield ("export", record.id), partial(export, context, record)
                else:
                    self._is_early = True
        for bulk in context.records.of(BulkPutRecord):
            if bulk.status in (IN_PROGRESS, CANCELLING):
                if context.records.is_committed(bulk):
                    yield ("bulk", bulk.id), partial(bulk_put, context, bulk)
                else:
                    self._is_early = True
        for table in context.catalog:
            if table.recovery is None and table.origin is None and table.import_id is None:
                continue
            committed = context.catalog.committed(table)
            if committed is None or _task_settings(committed) != _task_settings(table):
                self._is_early = True
                continue
            if self._needs_base(table):
                yield ("base", table.table_id), partial(take_base, context, table, self._new_id())
            origin = table.origin
            if origin and origin.is_in_progress and origin.is_fixed:
                yield ("restore", table.table_id), partial(restore, context, table, origin)
            if table.import_id is not None:
                imported = context.records.find(ImportRecord, table.import_id)
                if imported is not None:
                    yield ("import", imported.id), partial(import_table, context, imported, table)

    def _needs_base(self, table: Table) -> bool:
        if table.recovery is None:
            return False
        key = "base", table.table_id
        if key in self._tasks:
            return True
        bases = self._context.bases(table.table_id)
        if not bases:
            return True
        look = "log", table.table_id
        now = self._context.clock()
        if now < self._not_before.get(look, 0.0):
            return False
        self._not_before[look] = now + RETRY_SECONDS
        archive = self._context.archive
        files = log_files(archive, table.table_id)
        log_bytes = sum(archive.size(name) for first, name in files if first > bases[-1].stamp)
        size = read_statistics(self._context.snapshot, table.number).size_bytes
        return log_bytes > max(BASE_BYTES_MIN, size)

    def _advance(self, key: Key, write_batch: WriteBatch) -> None:
        task = self._tasks[key]
        waited = self._waiting.pop(key, None)
        savepoint = write_batch.savepoint()
        try:
            failure = None if waited is None else waited.exception()
            future = task.send(write_batch) if failure is None else task.throw(failure)
        except StopIteration:
            self._end(key)
        except StorageError as error:
            write_batch.rollback_to(savepoint)
            logger.error("The %s %s failed, and will be tried again: %s", *key, error)
            self._put_off(key)
        except Exception:
            # A bug in one task must not stop the others.
            write_batch.rollback_to(savepoint)
            logger.exception("The %s %s failed, and will be tried again.", *key)
            self._put_off(key)
        else:
            if future is not None:
                self._waiting[key] = future

    def _put_off(self, key: Key) -> None:
        self._end(key)
        self._not_before[key] = self._context.clock() + RETRY_SECONDS

    def _end(self, key: Key) -> None:
        self._tasks.pop(key).close()
        self._waiting.pop(key, None)

    def _fix_latest(self, write_batch: WriteBatch) -> bool:
        """Choose the commit of a restore to the latest moment, once the first base exists."""
        for table in self._context.catalog:
            origin = table.origin
            if origin and origin.is_in_progress and not origin.is_fixed:
                if self._context.bases(origin.table_id):
                    fixed = replace(origin, stamp=self._context.log.latest())
                    self._context.catalog.save(write_batch, replace(table, origin=fixed))
                    return True
        return False

    # Retention

    def _retain(self, write_batch: WriteBatch) -> bool:
        now, removals = self._context.clock(), self._context.records.removals
        is_due = removals != self._removals_seen
        if self._tasks or (0 <= now - self._retained_at < RETENTION_SECONDS and not is_due):
            return False
        self._retained_at, self._removals_seen = now, removals
        self._is_garbage = self._is_garbage or is_due
        in_use = self._tables_in_use()
        if self._context.log.follows_everything:
            in_use.add(EVERYTHING)
        expired: list[BackupRecord | RecoveryBase] = [
            *self._old_bases(now, in_use),
            *self._expired_backups(now),
        ]
        for record in expired:
            self._context.records.remove(write_batch, record)
        # The logs are only dropped in a later piece, when the removal of their bases is committed.
        if not expired:
            self._drop_logs(in_use)
        return bool(expired)

    def _old_bases(self, now: float, in_use: set[str]) -> Iterator[RecoveryBase]:
        """Yields the bases of tables without recovery, and those before the recovery period."""
        periods = {
            table.table_id: table.recovery for table in self._context.catalog if table.recovery
        }
        for table_id in {base.table_id for base in self._context.records.of(RecoveryBase)} - in_use:
            bases = self._context.bases(table_id)
            setting = periods.get(table_id)
            if setting is None:
                yield from bases
                continue
            horizon = int((now - setting.period_days * DAY) * MICROSECONDS)
            for base, following in pairwise(bases):
                if following.stamp <= horizon:
                    yield base

    def _expired_backups(self, now: float) -> Iterator[BackupRecord]:
        for backup in self._context.records.of(BackupRecord):
            if backup.expires_at is not None and backup.expires_at <= now:
                yield backup

    def _tables_in_use(self) -> set[str]:
        """Returns the ids of the tables whose past is being restored, exported or backed up."""
        records = self._context.records
        restored = {
            table.origin.table_id
            for table in self._context.catalog
            if table.origin and table.origin.is_in_progress
        }
        exported = {
            record.table.table_id
            for record in records.of(ExportRecord)
            if record.status == IN_PROGRESS
        }
        backed_up = {
            backup.table.table_id for backup in records.of(BackupRecord) if not backup.is_available
        }
        return restored | exported | backed_up

    def _drop_logs(self, in_use: set[str]) -> None:
        archive = self._context.archive
        followed = {table.table_id for table in self._context.catalog if table.recovery}
        table_ids = {name.split("/")[1] for name in archive.names(LOGS)}
        for table_id in table_ids - in_use:
            bases = self._context.bases(table_id)
            files = log_files(archive, table_id)
            if table_id not in followed:
                old = [name for _, name in files]
            elif bases:
                # All commits in a file are older than the first one of the next file.
                old = [
                    name
                    for (_, name), (following, _) in pairwise(files)
                    if following <= bases[0].stamp
                ]
            else:
                old = []
            for name in old:
                archive.delete(name)

    def _collect_garbage(self) -> None:
        """Start removing the files that no record refers to; no task starts until that is done."""
        if self._is_garbage and not self._tasks:
            self._is_garbage = False
            records = self._context.records
            kept = {backup.manifest for backup in records.of(BackupRecord)}
            kept |= {base.manifest for base in records.of(RecoveryBase)}
            self._collecting = self._context.run(
                partial(collect_garbage, self._context.archive, kept)
            )

    def _flush_in_memory(self) -> None:
        """Flush the recovery log of an engine without a write-ahead log, which never does so."""
        if self._context.log.pending_commits > PENDING_COMMITS_MAX:
            self._context.run(self._context.log.flush)


def _task_settings(table: Table) -> tuple[Any, ...]:
    """Returns the settings that require tasks, which start once the settings are committed."""
    return table.recovery, table.origin, table.import_id

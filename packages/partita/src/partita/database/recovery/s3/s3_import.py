"""ImportTable: creates a table with the items of a bucket's objects.

Records that are not valid items are counted and logged, and the import goes on. If an object cannot
be read to its end, its rest is skipped and counts as one error (guide, "Import format quotas and
validation"). After any such error the import ends as FAILED, although the table has all other
items, as in the service (recorded). After a restart an import begins again: putting an item twice
does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from concurrent.futures import Future
from functools import partial
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from partita.database.recovery import recovery_stages
from partita.database.recovery.item_loader import ItemLoader
from partita.database.recovery.recovery_context import RecoveryContext, Task, finish_loading
from partita.database.recovery.recovery_records import COMPLETED, FAILED, ImportRecord
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.recovery.s3.import_formats import open_object
from partita.database.recovery.s3.object_buckets import BucketError, ObjectBucket
from partita.database.recovery.s3.object_pieces import TruncatedObject
from partita.database.recovery.s3.record_preparation import (
    PreparationProcess,
    PreparedBatches,
    UnusableRecord,
)
from partita.database.storage.engine import prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.bulk_load import BulkLoad
from partita.database.tables.definition.table_schema import Table

logger = logging.getLogger(__name__)

INDEXED_ITEMS: Final = 500
"""How many items are indexed in one turn of the event loop."""
RECORDS_PER_SAVE: Final = 10_000
"""The progress that DescribeImport shows is saved after this many records."""
OBJECTS_MAX: Final = 50_000


def import_table(work: RecoveryContext, record: ImportRecord, table: Table) -> Task:
    yield None
    try:
        done, write_batch = yield from _import_items(work, record, table)
        finish_loading(work, write_batch, table)
    except BucketError as error:
        done = replace(record, status=FAILED, failure_code=error.code, failure_message=str(error))
        write_batch = yield None
        # An incomplete table could be mistaken for the whole import.
        work.catalog.remove(write_batch, table)
    work.records.save(write_batch, replace(done, ended_at=work.clock()))


def _import_items(
    work: RecoveryContext, record: ImportRecord, table: Table
) -> Generator[Future[Any] | None, Any, tuple[ImportRecord, WriteBatch]]:
    recovery_stages.reach_stage(RecoveryStage.IMPORT_BEGUN)
    source = record.request["S3BucketSource"]
    bucket = work.buckets.find(source["S3Bucket"])
    keys = yield from keys_of(work, bucket, source)
    record = replace(record, processed_items=0, processed_bytes=0, imported_items=0, errors=0)
    loader = ItemLoader(work, table)
    compression = record.request.get("InputCompressionType", "NONE")
    preparing = work.preparing.joined(sum(keys.values()), compression)
    try:
        for key in keys:
            record = yield from _import_object(work, record, table, bucket, key, loader, preparing)
        yield from loader.finish()
        recovery_stages.reach_stage(RecoveryStage.IMPORT_LOADED)
        write_batch = yield from _index(work, table, loader)
        recovery_stages.reach_stage(RecoveryStage.IMPORT_INDEXED)
    finally:
        work.preparing.leave()
        loader.stop()
    return _with_status(record), write_batch


def _with_status(record: ImportRecord) -> ImportRecord:
    if not record.errors:
        return replace(record, status=COMPLETED)
    return replace(
        record,
        status=FAILED,
        failure_code="ItemValidationError",
        failure_message="Some of the items failed validation checks and were not imported. "
        "Please check the log of the server for more details.",
    )


def _index(
    work: RecoveryContext, table: Table, loader: ItemLoader
) -> Generator[Future[Any] | None, Any, WriteBatch]:
    """Writes index entries and counts once all items are loaded, so that an item that occurs
    several times in the input counts once."""
    loading = BulkLoad(work.snapshot, table, is_resumed=False)
    prefix = table_layout.items_prefix(table.number)
    position, stop = prefix, prefix_end(prefix)
    while run := list(islice(work.snapshot.range(position, stop), INDEXED_ITEMS)):
        entries = loading.entries([(key[len(prefix) :], value) for key, value in run])
        position = run[-1][0] + b"\x00"
        if entries:
            yield from loader.put(entries)
        else:
            yield None
    return (yield from loader.finish(loading.figures()))


def keys_of(
    work: RecoveryContext, bucket: ObjectBucket, source: dict[str, Any]
) -> Generator[Future[Any] | None, Any, dict[str, int]]:
    """The keys of the objects that a request names, sorted, with their sizes."""
    listed = work.run(partial(bucket.sizes, source.get("S3KeyPrefix", "")))
    yield listed
    keys: dict[str, int] = listed.result()
    if len(keys) > OBJECTS_MAX:
        raise BucketError(
            "TooManyObjects",
            f"The prefix has {len(keys)} objects; an operation reads at most {OBJECTS_MAX}.",
        )
    return dict(sorted(keys.items()))


def _import_object(
    work: RecoveryContext,
    record: ImportRecord,
    table: Table,
    bucket: ObjectBucket,
    key: str,
    loader: ItemLoader,
    preparing: PreparationProcess | None,
) -> Generator[Future[Any] | None, Any, ImportRecord]:
    request = record.request
    compression = request.get("InputCompressionType", "NONE")
    source = open_object(
        bucket, key, request["InputFormat"], compression, request.get("InputFormatOptions", {})
    )
    batches = PreparedBatches(work.run, source, preparing)
    before, saved_items = record.processed_bytes, record.processed_items
    while True:
        try:
            batch = yield from batches.next(table)
        except TruncatedObject as problem:
            record = replace(record, processed_items=record.processed_items + 1)
            return _with_error(record, key, str(problem))
        if batch is None:
            return replace(record, processed_bytes=before + source.read_bytes)
        # If a key occurs more than once, its last item wins.
        pairs: dict[bytes, bytes] = {}
        errors = record.errors
        for prepared in batch:
            if isinstance(prepared, UnusableRecord):
                record = _with_error(record, key, prepared.message)
            else:
                pairs[prepared.key] = prepared.value
        yield from loader.put(sorted(pairs.items()))
        recovery_stages.reach_stage(RecoveryStage.IMPORT_ITEMS_PUT)
        record = replace(
            record,
            processed_items=record.processed_items + len(batch),
            processed_bytes=before + source.read_bytes,
            imported_items=record.imported_items + len(batch) - (record.errors - errors),
        )
        if record.processed_items - saved_items > RECORDS_PER_SAVE:
            saved_items = record.processed_items
            write_batch = yield None
            work.records.save(write_batch, record)


def _with_error(record: ImportRecord, key: str, problem: str) -> ImportRecord:
    logger.warning("The import %s could not use a record of %s: %s", record.id, key, problem)
    return replace(record, errors=record.errors + 1)

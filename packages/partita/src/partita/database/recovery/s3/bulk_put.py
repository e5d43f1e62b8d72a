"""Bulk puts: write the items of a bucket's objects into a table that is in use.

A batch of items and the progress of the operation are in the same commit. After a restart the
operation continues after the last item that was put, and no condition is evaluated twice. A record
may have a condition expression, as in PutItem (guide, "Per-item condition expressions"). Items that
could not be put are listed in report files in the output bucket.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Generator
from concurrent.futures import Future
from functools import partial
from hashlib import md5
from itertools import islice
from threading import Timer
from typing import Any, Final

import orjson
from msgspec.structs import replace

from partita.database.capacity.capacity_units import write_units
from partita.database.expressions.condition import compile_condition
from partita.database.item.attribute_values import normalize_item
from partita.database.recovery import recovery_stages
from partita.database.recovery.recovery_context import COMMITTED, RecoveryContext, Task
from partita.database.recovery.recovery_records import (
    CANCELLED,
    CANCELLING,
    COMPLETED,
    COMPLETED_WITH_ERRORS,
    FAILED,
    BulkPutRecord,
)
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.recovery.s3.import_formats import open_object
from partita.database.recovery.s3.object_buckets import BucketError, ObjectBucket
from partita.database.recovery.s3.object_pieces import TruncatedObject
from partita.database.recovery.s3.record_preparation import (
    PreparationProcess,
    Prepared,
    PreparedBatches,
    PreparedItem,
    UnusableRecord,
)
from partita.database.recovery.s3.s3_export import encryption_of, iso, put_checked
from partita.database.recovery.s3.s3_import import keys_of
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_index_keys
from partita.database.tables.definition.table_schema import DELETING, Table
from partita.database.tables.index_entries import entry_of
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import StoredItem, prepared
from partita.database.tables.write_path import write_item
from partita.errors import DynamoDBError, ValidationException

REPORT_LINES_MAX: Final = 1000
REPORT_BYTES_MAX: Final = 1 << 20
ERROR, CONDITION_CHECK_FAILURE = "ERROR", "CONDITION_CHECK_FAILURE"


class _Stopped(Exception):
    """Raised to end the operation before the end of its input."""

    def __init__(self, status: str, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def bulk_put(work: RecoveryContext, record: BulkPutRecord) -> Task:
    yield None
    progress = _Progress(record)
    try:
        yield from _put_all(work, progress)
        yield from _report(work, progress)
        yield from _summarize(work, progress)
        failed = progress.record.failed_items
        done = replace(progress.record, status=COMPLETED_WITH_ERRORS if failed else COMPLETED)
    except (BucketError, _Stopped) as error:
        status = error.status if isinstance(error, _Stopped) else FAILED
        done = replace(
            progress.record,
            status=status,
            failure_code=error.code,
            failure_message=str(error),
        )
    write_batch = yield COMMITTED
    work.records.save(write_batch, replace(done, ended_at=work.clock(), reports=[]))


class _Progress:
    """The operation's record as it advances, and the report lines that are not in a file yet."""

    def __init__(self, record: BulkPutRecord) -> None:
        self.record = record
        output = record.request["OutputS3Configuration"]
        self._output_types: set[str] = set(output["OutputType"])
        self._reports = list(record.reports)
        self._report_bytes = sum(map(len, self._reports))

    def report(self, kind: str, **members: Any) -> None:
        if kind in self._output_types:
            line = orjson.dumps({"Type": kind, **members}).decode()
            self._reports.append(line)
            self._report_bytes += len(line)

    @property
    def is_report_due(self) -> bool:
        return len(self._reports) >= REPORT_LINES_MAX or self._report_bytes > REPORT_BYTES_MAX

    @property
    def reports(self) -> list[str]:
        return list(self._reports)

    def forget_reports(self) -> None:
        self._reports, self._report_bytes = [], 0


def _put_all(
    work: RecoveryContext, progress: _Progress
) -> Generator[Future[Any] | None, Any, None]:
    recovery_stages.reach_stage(RecoveryStage.BULK_BEGUN)
    source = progress.record.request["InputS3Configuration"]
    bucket = work.buckets.find(source["S3Bucket"])
    # Fails here if the output bucket cannot be used: nothing is put that could not be reported.
    _output(work, progress.record)
    sizes = yield from keys_of(work, bucket, source)
    if not sizes:
        raise BucketError(
            "S3NoSuchKey", f"The bucket {source['S3Bucket']} has no object with that prefix."
        )
    progress.record = replace(progress.record, total_bytes=sum(sizes.values()))
    compression = source.get("InputCompressionType", "NONE")
    preparing = work.preparing.joined(sum(sizes.values()), compression)
    try:
        for key, size in islice(sizes.items(), progress.record.done_objects, None):
            yield from _put_object(work, progress, bucket, key, size, preparing)
            recovery_stages.reach_stage(RecoveryStage.BULK_OBJECT_DONE)
    finally:
        work.preparing.leave()


def _put_object(
    work: RecoveryContext,
    progress: _Progress,
    bucket: ObjectBucket,
    key: str,
    size: int,
    preparing: PreparationProcess | None,
) -> Generator[Future[Any] | None, Any, None]:
    source = progress.record.request["InputS3Configuration"]
    compression = source.get("InputCompressionType", "NONE")
    reader = open_object(bucket, key, source["InputFormat"], compression)
    batches = PreparedBatches(work.run, reader, preparing)
    skipped = progress.record.done_records
    pace = _Pace(work, progress.record.request.get("MaxWriteRequestUnits"))
    while True:
        try:
            batch = yield from batches.next(_table(work, progress.record))
        except TruncatedObject as problem:
            _fail(progress, key, None, UnusableRecord(ValidationException.__name__, str(problem)))
            break
        if batch is None:
            break
        # The first records of the object may have been put before a restart.
        done = min(skipped, len(batch))
        skipped -= done
        yield from _put_batch(work, progress, key, batch[done:], pace)
        recovery_stages.reach_stage(RecoveryStage.BULK_ITEMS_PUT)
    write_batch = yield None
    _table(work, progress.record)
    record = progress.record
    progress.record = replace(
        record,
        done_objects=record.done_objects + 1,
        done_records=0,
        done_object_bytes=record.done_object_bytes + size,
        processed_bytes=record.done_object_bytes + size,
        reports=progress.reports,
    )
    work.records.save(write_batch, progress.record)


def _put_batch(
    work: RecoveryContext, progress: _Progress, key: str, batch: list[Prepared], pace: _Pace
) -> Generator[Future[Any] | None, Any, None]:
    at = 0
    while at < len(batch):
        yield from pace.wait()
        write_batch = yield None
        table = _table(work, progress.record)
        usage = dict(progress.record.usage)
        first = at
        while at < len(batch) and not progress.is_report_due:
            number = progress.record.done_records + at - first + 1
            if not _put_record(write_batch, table, batch[at], progress, key, number, usage, pace):
                # A transaction holds the item: it is tried again in the next write batch.
                break
            at += 1
        record = progress.record
        progress.record = replace(
            record,
            processed_items=record.processed_items + at - first,
            done_records=record.done_records + at - first,
            usage=usage,
            reports=progress.reports,
        )
        work.records.save(write_batch, progress.record)
        if progress.is_report_due:
            yield from _report(work, progress)


def _put_record(
    write_batch: WriteBatch,
    table: Table,
    record: Prepared,
    progress: _Progress,
    key: str,
    number: int,
    usage: dict[str, int],
    pace: _Pace,
) -> bool:
    """Puts or reports a record; returns False if it has to wait for a transaction."""
    if isinstance(record, UnusableRecord):
        _fail(progress, key, number, record)
        return True
    if write_batch.is_held(record.key):
        return False
    stored = prepared(record.value, table.sort_attributes)
    old = load(write_batch, record.key)
    # A full item collection is the only reason why a write fails after it has changed the batch.
    savepoint = write_batch.savepoint() if table.local_indexes else None
    try:
        if table.indexes:
            # The table may have got indexes since the record was prepared.
            check_index_keys(table, stored.item)
        pace.spend(max(stored.size, old.size if old else 0))
        if not _is_condition_met(record, old):
            existing = {"ExistingItem": old.item} if old else {}
            progress.report(
                CONDITION_CHECK_FAILURE, Object=key, Record=number, Item=stored.item, **existing
            )
            return True
        write_item(write_batch, table, record.key, old, stored)
    except DynamoDBError as error:
        if savepoint is not None:
            write_batch.rollback_to(savepoint)
        _fail(progress, key, number, UnusableRecord(type(error).__name__, str(error), stored.item))
        return True
    _count(usage, table, stored, table_layout.place_of(record.key))
    return True


def _is_condition_met(record: PreparedItem, old: StoredItem | None) -> bool:
    """True when the record has no condition, or the existing item meets it."""
    if record.condition is None:
        return True
    names = record.condition.get("ExpressionAttributeNames", {})
    values = normalize_item(record.condition.get("ExpressionAttributeValues", {}))
    condition = compile_condition(record.condition["ConditionExpression"], names)
    condition.check(values)
    unused = (names.keys() - condition.names_used) | (values.keys() - condition.values_used)
    if unused:
        raise ValidationException(f"{min(unused)} is not used in ConditionExpression")
    return condition.holds(old.item if old else None, values)


def _count(usage: dict[str, int], table: Table, stored: StoredItem, place: bytes) -> None:
    """Adds the bytes of a put item to the usage of the table and of its indexes."""
    usage[""] = usage.get("", 0) + stored.size
    for index in table.indexes:
        entry = None if index.status == DELETING else entry_of(table, index, stored, place)
        if entry is not None:
            usage[index.name] = usage.get(index.name, 0) + entry.size


def _fail(progress: _Progress, key: str, number: int | None, failure: UnusableRecord) -> None:
    members: dict[str, Any] = {
        "Object": key,
        "ErrorCode": failure.code,
        "ErrorMessage": failure.message,
    }
    if number is not None:
        members["Record"] = number
    if failure.item is not None:
        members["Item"] = failure.item
    progress.report(ERROR, **members)
    progress.record = replace(progress.record, failed_items=progress.record.failed_items + 1)


def _table(work: RecoveryContext, record: BulkPutRecord) -> Table:
    """Returns the table; raises `_Stopped` if it was deleted or the operation was cancelled."""
    current = work.records.find(BulkPutRecord, record.id)
    if current is None or current.status == CANCELLING:
        raise _Stopped(CANCELLED, "Cancelled", "The bulk operation was cancelled by a request.")
    table = work.catalog.find(record.table_name)
    if table is None or table.table_id != record.table_id or table.transition == DELETING:
        raise _Stopped(
            FAILED, "TableNotFound", f"The table {record.table_name} was deleted meanwhile."
        )
    return table


class _Pace:
    """Limits the operation to MaxWriteRequestUnits per second, if the request has it."""

    def __init__(self, work: RecoveryContext, units_max: int | None) -> None:
        self._work = work
        self._units_max = units_max
        self._second = int(work.clock())
        self._spent = 0

    def spend(self, size: int) -> None:
        if self._units_max is not None:
            self._spent += write_units(size)

    def wait(self) -> Generator[Future[Any] | None, Any, None]:
        """Waits until the units spent so far fit into the seconds that have passed."""
        while self._units_max is not None and self._spent >= self._units_max:
            now = int(self._work.clock())
            if now != self._second:
                elapsed = max(now - self._second, 1)
                self._second = now
                self._spent = max(0, self._spent - elapsed * self._units_max)
                continue
            yield _later(1 - self._work.clock() % 1)


def _later(seconds: float) -> Future[None]:
    passed: Future[None] = Future()
    timer = Timer(seconds, passed.set_result, (None,))
    timer.daemon = True
    timer.start()
    return passed


# The output


def _output(work: RecoveryContext, record: BulkPutRecord) -> tuple[ObjectBucket, str]:
    output = record.request["OutputS3Configuration"]
    bucket = work.buckets.find(output["S3Bucket"], encryption_of(output))
    prefix = output.get("S3KeyPrefix", "").strip("/")
    return bucket, f"{prefix}/AWSDynamoDB/{record.id}/" if prefix else f"AWSDynamoDB/{record.id}/"


def _report(work: RecoveryContext, progress: _Progress) -> Generator[Future[Any] | None, Any, None]:
    """Writes the report lines into a file. After a crash it writes the same file again."""
    lines = progress.reports
    if not lines:
        return
    bucket, folder = _output(work, progress.record)
    key = f"{folder}data/{len(progress.record.report_files):06d}.json"
    content = "".join(f"{line}\n" for line in lines).encode()
    yield work.run(partial(bucket.put, key, content))
    recovery_stages.reach_stage(RecoveryStage.BULK_REPORTED)
    digest = b64encode(md5(content, usedforsecurity=False).digest()).decode()
    files = [*progress.record.report_files, (key, len(lines), digest)]
    write_batch = yield None
    _table(work, progress.record)
    progress.forget_reports()
    progress.record = replace(progress.record, reports=[], report_files=files)
    work.records.save(write_batch, progress.record)


def _summarize(
    work: RecoveryContext, progress: _Progress
) -> Generator[Future[Any] | None, Any, None]:
    """Writes the manifest files, in the format that exports have."""
    record = progress.record
    bucket, folder = _output(work, record)
    files = [
        orjson.dumps({"itemCount": count, "md5Checksum": digest, "dataFileS3Key": key}) + b"\n"
        for key, count, digest in record.report_files
    ]
    key = f"{folder}manifest-files.json"
    yield from put_checked(work, bucket, key, b"".join(files))
    summary = {
        "version": "2026-01-01",
        "bulkOperationArn": work.arn(record),
        "startTime": iso(record.started_at),
        "endTime": iso(work.clock()),
        "tableArn": work.table_arn(record.table_name),
        "tableId": record.table_id,
        "processedItemCount": record.processed_items,
        "failedItemCount": record.failed_items,
        "manifestFilesS3Key": key,
        "outputFormat": "DYNAMODB_JSON",
    }
    name = f"{folder}manifest-summary.json"
    yield from put_checked(work, bucket, name, orjson.dumps(summary))
    recovery_stages.reach_stage(RecoveryStage.BULK_SUMMARIZED)

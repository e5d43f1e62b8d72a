"""Bulk puts: items out of the objects of a bucket, into a table that is in use.

Each piece of items is one commit, and so is how far the operation has come: after a restart it
goes on behind the last item that was put, and no condition is asked twice. A line of the input
may have a condition, as PutItem has it (guide, "Per-item condition expressions"). What could not
be put is told in files of the output bucket.
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

from partita.database.capacity.units import write_units
from partita.database.expressions.condition import compile_condition
from partita.database.item.values import normalize_item
from partita.database.recovery import stages
from partita.database.recovery.buckets import Bucket, BucketError
from partita.database.recovery.exporting import encryption_of, iso, put_checked
from partita.database.recovery.formats import open_object
from partita.database.recovery.importing import keys_of
from partita.database.recovery.objects import NotWhole
from partita.database.recovery.preparing import Batches, Prepared, Preparing, Ready, Unusable
from partita.database.recovery.records import (
    CANCELLED,
    CANCELLING,
    COMPLETED,
    COMPLETED_WITH_ERRORS,
    FAILED,
    Bulk,
)
from partita.database.recovery.stages import Stage
from partita.database.recovery.tasks import COMMITTED, Task, Workplace
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import layout
from partita.database.tables.indexes import entry_of
from partita.database.tables.keys import check_index_keys
from partita.database.tables.read import load
from partita.database.tables.schema import DELETING, Table
from partita.database.tables.stored import Stored, prepared
from partita.database.tables.write_path import write_item
from partita.errors import DynamoDBError, ValidationException

REPORT_LINES_MAX: Final = 1000
REPORT_BYTES_MAX: Final = 1 << 20
ERROR, CONDITION_CHECK_FAILURE = "ERROR", "CONDITION_CHECK_FAILURE"


class _Stopped(Exception):
    """The operation ends before its input does."""

    def __init__(self, status: str, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def bulk_put(work: Workplace, record: Bulk) -> Task:
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
    """The record as it grows."""

    def __init__(self, record: Bulk) -> None:
        self.record = record
        output = record.request["OutputS3Configuration"]
        self._wanted: set[str] = set(output["OutputType"])
        self._reports = list(record.reports)
        self._report_bytes = sum(map(len, self._reports))

    def report(self, kind: str, **said: Any) -> None:
        if kind in self._wanted:
            line = orjson.dumps({"Type": kind, **said}).decode()
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


def _put_all(work: Workplace, progress: _Progress) -> Generator[Future[Any] | None, Any, None]:
    stages.reached(Stage.BULK_BEGUN)
    source = progress.record.request["InputS3Configuration"]
    bucket = work.buckets.find(source["S3Bucket"])
    # Before anything is written: what cannot be reported must not happen.
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
            stages.reached(Stage.BULK_OBJECT_DONE)
    finally:
        work.preparing.leave()


def _put_object(
    work: Workplace,
    progress: _Progress,
    bucket: Bucket,
    key: str,
    size: int,
    preparing: Preparing | None,
) -> Generator[Future[Any] | None, Any, None]:
    source = progress.record.request["InputS3Configuration"]
    compression = source.get("InputCompressionType", "NONE")
    reader = open_object(bucket, key, source["InputFormat"], compression)
    batches = Batches(work.run, reader, preparing)
    skipped = progress.record.done_records
    pace = _Pace(work, progress.record.request.get("MaxWriteRequestUnits"))
    while True:
        try:
            batch = yield from batches.next(_table(work, progress.record))
        except NotWhole as problem:
            _fail(progress, key, None, Unusable(ValidationException.__name__, str(problem)))
            break
        if batch is None:
            break
        # Put before the last restart.
        before = min(skipped, len(batch))
        skipped -= before
        yield from _put_batch(work, progress, key, batch[before:], pace)
        stages.reached(Stage.BULK_ITEMS_PUT)
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
    work: Workplace, progress: _Progress, key: str, batch: list[Prepared], pace: _Pace
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
            if not _put_one(write_batch, table, batch[at], progress, key, number, usage, pace):
                # A transaction holds it: after its commit.
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


def _put_one(
    write_batch: WriteBatch,
    table: Table,
    asked: Prepared,
    progress: _Progress,
    key: str,
    number: int,
    usage: dict[str, int],
    pace: _Pace,
) -> bool:
    """Whether it was dealt with."""
    if isinstance(asked, Unusable):
        _fail(progress, key, number, asked)
        return True
    if write_batch.is_held(asked.key):
        return False
    stored = prepared(asked.value, table.sort_attributes)
    old = load(write_batch, asked.key)
    # Only an item collection that is full refuses what has begun to be written.
    savepoint = write_batch.savepoint() if table.local_indexes else None
    try:
        if table.indexes:
            # There may be more of them than when it was prepared.
            check_index_keys(table, stored.item)
        pace.spend(max(stored.size, old.size if old else 0))
        if not _may_put(asked, old):
            shown = {"ExistingItem": old.item} if old else {}
            progress.report(
                CONDITION_CHECK_FAILURE, Object=key, Record=number, Item=stored.item, **shown
            )
            return True
        write_item(write_batch, table, asked.key, old, stored)
    except DynamoDBError as error:
        if savepoint is not None:
            write_batch.rollback_to(savepoint)
        _fail(progress, key, number, Unusable(type(error).__name__, str(error), stored.item))
        return True
    _count(usage, table, stored, layout.place_of(asked.key))
    return True


def _may_put(asked: Ready, old: Stored | None) -> bool:
    """Whether its condition holds, if it has one."""
    if asked.condition is None:
        return True
    names = asked.condition.get("ExpressionAttributeNames", {})
    values = normalize_item(asked.condition.get("ExpressionAttributeValues", {}))
    condition = compile_condition(asked.condition["ConditionExpression"], names)
    condition.check(values)
    unused = (names.keys() - condition.names_used) | (values.keys() - condition.values_used)
    if unused:
        raise ValidationException(f"{min(unused)} is not used in ConditionExpression")
    return condition.holds(old.item if old else None, values)


def _count(usage: dict[str, int], table: Table, stored: Stored, place: bytes) -> None:
    usage[""] = usage.get("", 0) + stored.size
    for index in table.indexes:
        entry = None if index.status == DELETING else entry_of(table, index, stored, place)
        if entry is not None:
            usage[index.name] = usage.get(index.name, 0) + entry.size


def _fail(progress: _Progress, key: str, number: int | None, found: Unusable) -> None:
    said: dict[str, Any] = {
        "Object": key,
        "ErrorCode": found.code,
        "ErrorMessage": found.message,
    }
    if number is not None:
        said["Record"] = number
    if found.item is not None:
        said["Item"] = found.item
    progress.report(ERROR, **said)
    progress.record = replace(progress.record, failed_items=progress.record.failed_items + 1)


def _table(work: Workplace, record: Bulk) -> Table:
    """The table, if it is still there and the operation still wanted."""
    current = work.records.find(Bulk, record.id)
    if current is None or current.status == CANCELLING:
        raise _Stopped(CANCELLED, "Cancelled", "The bulk operation was cancelled by a request.")
    table = work.catalog.find(record.table_name)
    if table is None or table.table_id != record.table_id or table.transition == DELETING:
        raise _Stopped(
            FAILED, "TableNotFound", f"The table {record.table_name} was deleted meanwhile."
        )
    return table


class _Pace:
    """Up to so many write request units a second, if that was asked for."""

    def __init__(self, work: Workplace, units_max: int | None) -> None:
        self._work = work
        self._units_max = units_max
        self._second = int(work.clock())
        self._spent = 0

    def spend(self, size: int) -> None:
        if self._units_max is not None:
            self._spent += write_units(size)

    def wait(self) -> Generator[Future[Any] | None, Any, None]:
        """Until the next second, behind what this one may have."""
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


def _output(work: Workplace, record: Bulk) -> tuple[Bucket, str]:
    output = record.request["OutputS3Configuration"]
    bucket = work.buckets.find(output["S3Bucket"], encryption_of(output))
    prefix = output.get("S3KeyPrefix", "").strip("/")
    return bucket, f"{prefix}/AWSDynamoDB/{record.id}/" if prefix else f"AWSDynamoDB/{record.id}/"


def _report(work: Workplace, progress: _Progress) -> Generator[Future[Any] | None, Any, None]:
    """Write down what is to be told. Done twice after a crash, it gives the same file."""
    lines = progress.reports
    if not lines:
        return
    bucket, folder = _output(work, progress.record)
    key = f"{folder}data/{len(progress.record.report_files):06d}.json"
    content = "".join(f"{line}\n" for line in lines).encode()
    yield work.run(partial(bucket.put, key, content))
    stages.reached(Stage.BULK_REPORTED)
    digest = b64encode(md5(content, usedforsecurity=False).digest()).decode()
    files = [*progress.record.report_files, (key, len(lines), digest)]
    write_batch = yield None
    _table(work, progress.record)
    progress.forget_reports()
    progress.record = replace(progress.record, reports=[], report_files=files)
    work.records.save(write_batch, progress.record)


def _summarize(work: Workplace, progress: _Progress) -> Generator[Future[Any] | None, Any, None]:
    """Manifests, in the form of those of exports."""
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
    stages.reached(Stage.BULK_SUMMARIZED)

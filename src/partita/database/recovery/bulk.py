"""Bulk puts: items out of the objects of a bucket, into a table that is in use.

Each piece of items is one commit, and so is how far the operation has come: after a restart it
goes on behind the last item that was put, and no condition is asked twice. A line of the input
may have a condition, as PutItem has it (guide, "Per-item condition expressions"). What could not
be put is told in files of the output bucket.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from functools import partial
from hashlib import md5
from itertools import islice
from threading import Timer
from typing import Any, Final

import orjson
from msgspec.structs import replace

from partita.database.capacity.units import write_units
from partita.database.expressions.condition import Condition, compile_condition
from partita.database.item.values import normalize_item
from partita.database.recovery.buckets import Bucket, BucketError
from partita.database.recovery.exporting import encryption_of, iso, put_checked
from partita.database.recovery.importing import Record, checked, keys_of, open_object
from partita.database.recovery.objects import NotWhole
from partita.database.recovery.records import (
    CANCELLED,
    CANCELLING,
    COMPLETED,
    COMPLETED_WITH_ERRORS,
    FAILED,
    Bulk,
)
from partita.database.recovery.tasks import Task, Workplace
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import layout
from partita.database.tables.indexes import entry_of
from partita.database.tables.read import load
from partita.database.tables.schema import DELETING, Table
from partita.database.tables.stored import Stored
from partita.database.tables.write_path import write_item
from partita.errors import DynamoDBError, ValidationException

PIECE_RECORDS: Final = 250
REPORT_LINES_MAX: Final = 1000
REPORT_BYTES_MAX: Final = 1 << 20
ERROR, CONDITION_CHECK_FAILURE = "ERROR", "CONDITION_CHECK_FAILURE"
MEMBERS: Final = frozenset(
    ("Item", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")
)


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
    write_batch = yield None
    work.records.save(write_batch, replace(done, ended_at=work.clock(), reports=[]))


class _Progress:
    """The record as it grows."""

    def __init__(self, record: Bulk) -> None:
        self.record = record
        output = record.request["OutputS3Configuration"]
        self.wanted: set[str] = set(output["OutputType"])

    def report(self, kind: str, **said: Any) -> None:
        if kind in self.wanted:
            line = orjson.dumps({"Type": kind, **said}).decode()
            self.record = replace(self.record, reports=[*self.record.reports, line])

    @property
    def is_report_due(self) -> bool:
        lines = self.record.reports
        return len(lines) >= REPORT_LINES_MAX or sum(map(len, lines)) > REPORT_BYTES_MAX


def _put_all(work: Workplace, progress: _Progress) -> Generator[Future[Any] | None, Any, None]:
    source = progress.record.request["InputS3Configuration"]
    bucket = work.buckets.find(source["S3Bucket"])
    # Before anything is written: what cannot be reported must not happen.
    _output(work, progress.record)
    sizes = yield from keys_of(work, bucket, source)
    progress.record = replace(progress.record, total_bytes=sum(sizes.values()))
    for key, size in islice(sizes.items(), progress.record.done_objects, None):
        yield from _put_object(work, progress, bucket, key, size)


def _put_object(
    work: Workplace, progress: _Progress, bucket: Bucket, key: str, size: int
) -> Generator[Future[Any] | None, Any, None]:
    source = progress.record.request["InputS3Configuration"]
    compression = source.get("InputCompressionType", "NONE")
    reader = open_object(bucket, key, source["InputFormat"], compression)
    skipped = progress.record.done_records
    pace = _Pace(work, progress.record.request.get("MaxWriteRequestUnits"))
    ahead = work.run(reader.next)
    while True:
        try:
            yield ahead
            content = ahead.result()
        except NotWhole as problem:
            _fail(progress, key, None, None, ValidationException(str(problem)))
            break
        if not content:
            break
        ahead = work.run(reader.next)
        records: Iterator[Record] = reader.parse(content, _table(work, progress.record))
        if skipped:
            # Put before the last restart.
            skipped -= sum(1 for _ in islice(records, skipped))
        while piece := list(islice(records, PIECE_RECORDS)):
            yield from _put_piece(work, progress, key, piece, pace)
            if progress.is_report_due:
                yield from _report(work, progress)
    write_batch = yield None
    record = progress.record
    progress.record = replace(
        record,
        done_objects=record.done_objects + 1,
        done_records=0,
        done_object_bytes=record.done_object_bytes + size,
        processed_bytes=record.done_object_bytes + size,
    )
    work.records.save(write_batch, progress.record)


def _put_piece(
    work: Workplace, progress: _Progress, key: str, piece: list[Record], pace: _Pace
) -> Generator[Future[Any] | None, Any, None]:
    at = 0
    while at < len(piece):
        yield from pace.wait()
        write_batch = yield None
        table = _table(work, progress.record)
        usage = dict(progress.record.usage)
        first = at
        while at < len(piece) and not progress.is_report_due:
            number = progress.record.done_records + at - first + 1
            try:
                if not _put_one(write_batch, table, piece[at], progress, key, number, usage, pace):
                    # A transaction holds it: after its commit.
                    break
            except DynamoDBError as error:
                item = piece[at]
                found = item.get("Item") if isinstance(item, dict) else None
                _fail(progress, key, number, found, error)
            at += 1
        record = progress.record
        progress.record = replace(
            record,
            processed_items=record.processed_items + at - first,
            done_records=record.done_records + at - first,
            usage=usage,
        )
        work.records.save(write_batch, progress.record)
        if progress.is_report_due:
            yield from _report(work, progress)


def _put_one(
    write_batch: WriteBatch,
    table: Table,
    asked: Record,
    progress: _Progress,
    key: str,
    number: int,
    usage: dict[str, int],
    pace: _Pace,
) -> bool:
    """Whether it was dealt with."""
    if isinstance(asked, str):
        raise ValidationException(asked)
    stored = checked(table, asked["Item"])
    condition, values = (None, {}) if len(asked) == 1 else _condition(asked)
    item_key = layout.item_key(table, stored.item)
    if write_batch.is_held(item_key):
        return False
    old = load(write_batch, item_key)
    pace.spend(write_units(max(stored.size, old.size if old else 0)))
    if condition is not None and not condition.holds(old.item if old else None, values):
        shown = {"ExistingItem": old.item} if old else {}
        progress.report(
            CONDITION_CHECK_FAILURE, Object=key, Record=number, Item=stored.item, **shown
        )
        return True
    write_item(write_batch, table, item_key, old, stored)
    _count(usage, table, stored, layout.place_of(item_key))
    return True


def _condition(asked: dict[str, Any]) -> tuple[Condition | None, dict[str, Any]]:
    unknown = asked.keys() - MEMBERS
    if unknown:
        raise ValidationException(f"a record has an unknown member: {min(unknown)}")
    text = asked.get("ConditionExpression")
    names = asked.get("ExpressionAttributeNames", {})
    given = asked.get("ExpressionAttributeValues", {})
    if not (isinstance(names, dict) and all(isinstance(name, str) for name in names.values())):
        raise ValidationException("ExpressionAttributeNames must be a map of strings")
    if not isinstance(text, str):
        raise ValidationException("ConditionExpression must be a string")
    values: dict[str, Any] = normalize_item(given)
    condition = compile_condition(text, names)
    condition.check(values)
    unused = (names.keys() - condition.names_used) | (values.keys() - condition.values_used)
    if unused:
        raise ValidationException(f"{min(unused)} is not used in ConditionExpression")
    return condition, values


def _count(usage: dict[str, int], table: Table, stored: Stored, place: bytes) -> None:
    usage[""] = usage.get("", 0) + stored.size
    for index in table.indexes:
        entry = None if index.status == DELETING else entry_of(table, index, stored, place)
        if entry is not None:
            usage[index.name] = usage.get(index.name, 0) + entry.size


def _fail(
    progress: _Progress, key: str, number: int | None, item: Any, error: DynamoDBError
) -> None:
    said = {"Object": key, "ErrorCode": type(error).__name__, "ErrorMessage": str(error)}
    if number is not None:
        said["Record"] = number  # type: ignore[assignment]
    if item is not None:
        said["Item"] = item
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

    def spend(self, units: int) -> None:
        self._spent += units

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
    lines = progress.record.reports
    if not lines:
        return
    bucket, folder = _output(work, progress.record)
    key = f"{folder}data/{len(progress.record.report_files):06d}.json"
    content = "".join(f"{line}\n" for line in lines).encode()
    yield work.run(partial(bucket.put, key, content))
    digest = b64encode(md5(content, usedforsecurity=False).digest()).decode()
    files = [*progress.record.report_files, (key, len(lines), digest)]
    write_batch = yield None
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
        "bulkOperationArn": f"{work.table_arn(record.table_name)}/bulk/{record.id}",
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

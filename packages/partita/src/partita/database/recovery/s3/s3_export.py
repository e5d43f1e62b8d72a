"""ExportTableToPointInTime: writes a table's state, or its changes in a period, into a bucket.

Data files and manifests have the names and formats of the service.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b, md5
from itertools import islice
from typing import Any, Final

import orjson
from msgspec.structs import replace
from zlib_ng import zlib_ng

from partita.database.recovery import recovery_stages
from partita.database.recovery.chunk_manifests import ChunkManifest
from partita.database.recovery.recovery_context import RecoveryContext, Task, load_past_manifest
from partita.database.recovery.recovery_records import COMPLETED, FAILED, ExportRecord
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.recovery.s3.export_filter import ExportFilter
from partita.database.recovery.s3.ion_items import VERSION, ion_item, ion_struct, ion_value
from partita.database.recovery.s3.object_buckets import BucketError, ObjectBucket
from partita.database.recovery.table_states import (
    SLICE_ITEMS,
    Range,
    Slice,
    changed_ranges,
    table_state,
)
from partita.database.storage.archive import Archive
from partita.database.storage.recovery_log import MICROSECONDS, read_log
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.stored_item import HEADER_BYTES, decode, unpack_sizes
from partita.errors import StorageError

GZIP: Final = 31
"""zlib's window bits for a gzip header: 16 + 15."""
COMPRESSION: Final = 1
FILE_BYTES_MAX: Final = 32 << 20
ION, DYNAMODB_JSON = "ION", "DYNAMODB_JSON"
FULL, INCREMENTAL = "FULL_EXPORT", "INCREMENTAL_EXPORT"
NEW_AND_OLD_IMAGES: Final = "NEW_AND_OLD_IMAGES"
Line = tuple[bytes, int]
"""A record, empty if a filter excludes it, and the size of the items that were read for it."""
Lines = Iterator[list[Line]]
"""The lines of an export, some at a time."""


def export(work: RecoveryContext, record: ExportRecord) -> Task:
    yield None
    try:
        done = yield from _write_export(work, record)
    except (BucketError, StorageError) as error:
        code = error.code if isinstance(error, BucketError) else "InternalError"
        done = replace(record, status=FAILED, failure_code=code, failure_message=str(error))
    write_batch = yield None
    work.records.save(write_batch, replace(done, ended_at=work.clock()))


class _Files:
    """Writes the data files, and collects a manifest line for each finished one."""

    def __init__(
        self, work: RecoveryContext, bucket: ObjectBucket, export_id: str, folder: str, ending: str
    ) -> None:
        self._work = work
        self._export_id = export_id
        self._bucket = bucket
        self._folder = folder
        self._ending = ending
        self._files = 0
        self.manifest: list[bytes] = []
        self.items = 0
        self.size_bytes = 0
        self._begin()

    def _begin(self) -> None:
        self._compressor = zlib_ng.compressobj(COMPRESSION, wbits=GZIP)
        self._pieces: list[bytes] = []
        self._file_items = 0
        self._file_bytes = 0

    @property
    def has_items(self) -> bool:
        return self._file_items > 0

    def add(self, lines: list[Line]) -> bool:
        """Appends records; returns True if the file is large enough to be finished."""
        content = [line for line, _ in lines if line]
        piece = self._compressor.compress(b"".join(content))
        self._pieces.append(piece)
        self._file_items += len(content)
        self._file_bytes += len(piece)
        self.size_bytes += sum(size for _, size in lines)
        return self._file_bytes > FILE_BYTES_MAX

    def finish(self) -> Future[Any]:
        # The name depends on the export and the file's number only, so that a repeated attempt
        # overwrites the files of an interrupted one. Consumers read every file in the folder.
        name = blake2b(f"{self._export_id} {self._files}".encode(), digest_size=13)
        key = f"{self._folder}{name.hexdigest()}{self._ending}"
        pieces = [*self._pieces, self._compressor.flush()]
        put = partial(self._put, key, pieces, self._file_items)
        self._files += 1
        self.items += self._file_items
        self._begin()
        return self._work.run(put)

    def _put(self, key: str, pieces: list[bytes], items: int) -> None:
        """Runs on the background thread, because the checksum of a large file takes long."""
        content = b"".join(pieces)
        digest = md5(content, usedforsecurity=False)
        self._bucket.put(key, content)
        line = {
            "itemCount": items,
            "md5Checksum": b64encode(digest.digest()).decode(),
            "etag": f"{digest.hexdigest()}-1",
            "dataFileS3Key": key,
        }
        self.manifest.append(orjson.dumps(line) + b"\n")


def _write_export(
    work: RecoveryContext, record: ExportRecord
) -> Generator[Future[Any] | None, Any, ExportRecord]:
    request = record.request
    bucket = work.buckets.find(request["S3Bucket"], encryption_of(request))
    prefix = request.get("S3Prefix", "").strip("/")
    root = f"{prefix}/AWSDynamoDB/" if prefix else "AWSDynamoDB/"
    folder = f"{root}{record.id}/"
    yield work.run(partial(bucket.put, f"{folder}_started", b""))
    recovery_stages.reach_stage(RecoveryStage.EXPORT_STARTED)
    is_full = request.get("ExportType", FULL) == FULL
    is_ion = request.get("ExportFormat", DYNAMODB_JSON) == ION
    data = f"{folder}data/" if is_full else f"{root}data/"
    files = _Files(work, bucket, record.id, data, ".ion.gz" if is_ion else ".json.gz")
    lines = yield from (_full if is_full else _incremental)(work, record, is_ion)
    for some_lines in lines:
        if some_lines and files.add(some_lines):
            yield files.finish()
            recovery_stages.reach_stage(RecoveryStage.EXPORT_DATA_WRITTEN)
        yield None
    if not files.manifest or files.has_items:
        yield files.finish()
        recovery_stages.reach_stage(RecoveryStage.EXPORT_DATA_WRITTEN)
    done = replace(record, status=COMPLETED, item_count=files.items, billed_bytes=files.size_bytes)
    key = f"{folder}manifest-files.json"
    yield from put_checked(work, bucket, key, b"".join(files.manifest))
    recovery_stages.reach_stage(RecoveryStage.EXPORT_FILES_LISTED)
    summary = _summary(work, done, key)
    yield from put_checked(work, bucket, f"{folder}manifest-summary.json", orjson.dumps(summary))
    recovery_stages.reach_stage(RecoveryStage.EXPORT_SUMMARIZED)
    return done


def put_checked(
    work: RecoveryContext, bucket: ObjectBucket, key: str, content: bytes
) -> Generator[Future[Any] | None, Any, None]:
    """Writes a manifest, then the file with its checksum."""
    digest = b64encode(md5(content, usedforsecurity=False).digest())
    yield work.run(partial(bucket.put, key, content))
    yield work.run(partial(bucket.put, key.removesuffix(".json") + ".checksum", digest))


def encryption_of(request: dict[str, Any]) -> dict[str, str]:
    """The options of S3's server-side encryption that a request asks for."""
    if "S3SseAlgorithm" not in request:
        return {}
    algorithm = request["S3SseAlgorithm"]
    options = {"server_side_encryption": "aws:kms" if algorithm == "KMS" else algorithm}
    if "S3SseKmsKeyId" in request:
        options["sse_kms_key_id"] = request["S3SseKmsKeyId"]
    return options


# Records


def _full(
    work: RecoveryContext, record: ExportRecord, is_ion: bool
) -> Generator[Future[Any] | None, Any, Lines]:
    manifest, until = yield from load_past_manifest(work, record.table.table_id, record.until)
    selection = _selection(record)
    within = None if selection is None else selection.within
    slices = table_state(work.archive, manifest, record.table.table_id, until, within=within)
    return (_items(items, selection, is_ion) for items in slices)


def _selection(record: ExportRecord) -> ExportFilter | None:
    specification = record.request.get("FilterSpecification")
    return None if specification is None else ExportFilter(specification, record.table)


def _items(items: Slice, selection: ExportFilter | None, is_ion: bool) -> list[Line]:
    if selection is None and not is_ion:
        # Stored values are JSON behind a header of sizes, so nothing has to be decoded.
        return [
            (b'{"Item":%b}\n' % value[HEADER_BYTES:], unpack_sizes(value)[0]) for _, value in items
        ]
    return [(_item(value, selection, is_ion), unpack_sizes(value)[0]) for _, value in items]


def _item(value: bytes, selection: ExportFilter | None, is_ion: bool) -> bytes:
    item = decode(value[HEADER_BYTES:])
    if selection is not None:
        if not selection.selects(item):
            return b""
        item = selection.project(item)
    if is_ion:
        return b"%b{Item:%b}\n" % (VERSION, ion_item(item))
    return b'{"Item":%b}\n' % orjson.dumps(item)


def _incremental(
    work: RecoveryContext, record: ExportRecord, is_ion: bool
) -> Generator[Future[Any] | None, Any, Lines]:
    """The items that were written in the period, with their images at its start and its end."""
    table_id = record.table.table_id
    manifest, since = yield from load_past_manifest(work, table_id, record.since)
    selection = _selection(record) or ExportFilter({}, record.table)
    view = record.request.get("IncrementalExportSpecification", {}).get("ExportViewType")
    has_old = view in (None, NEW_AND_OLD_IMAGES)
    write = partial(_change, record.table, selection, is_ion, has_old)
    ranges = changed_ranges(work.archive, table_id, since, record.until, selection.within)
    return (
        lines
        for within in ranges
        for lines in _changes(work.archive, manifest, record, since, within, write)
    )


def _changes(
    archive: Archive,
    manifest: ChunkManifest,
    record: ExportRecord,
    since: int,
    within: Range,
    write: Callable[[int, bytes | None, bytes | None], bytes],
) -> Lines:
    """The changes in a range of places: first of items that existed before the period, then of new
    items."""
    table_id = record.table.table_id
    written: dict[bytes, tuple[int, bytes | None]] = {}
    for commits in read_log(archive, table_id, since, record.until):
        for stamp, changes in commits:
            for place, value in changes:
                if within[0] <= place < within[1]:
                    written[place] = stamp, value
        yield []
    for items in table_state(archive, manifest, table_id, since, within=within):
        changed = []
        for place, old in items:
            if place in written:
                stamp, new = written.pop(place)
                changed.append((write(stamp, old, new), _size(old) + _size(new)))
        yield changed
    # An item without an image here was put and deleted within the period, and is left out.
    added = ((stamp, new) for stamp, new in written.values() if new is not None)
    while some_added := list(islice(added, SLICE_ITEMS)):
        yield [(write(stamp, None, new), _size(new)) for stamp, new in some_added]


def _size(value: bytes | None) -> int:
    return unpack_sizes(value)[0] if value else 0


def _change(
    table: Table,
    selection: ExportFilter,
    is_ion: bool,
    has_old: bool,
    stamp: int,
    old: bytes | None,
    new: bytes | None,
) -> bytes:
    item = decode((new or old or b"")[HEADER_BYTES:])
    if not selection.selects(item):
        return b""
    keys = {name: item[name] for name in table.key_names}
    images = {"NewImage": new, **({"OldImage": old} if has_old else {})}
    projected = {
        name: selection.project(decode(value[HEADER_BYTES:]))
        for name, value in images.items()
        if value
    }
    if is_ion:
        members = {name: ion_item(image) for name, image in projected.items()}
        metadata = ion_struct({"WriteTimestampMicros": ion_value({"N": str(stamp)})})
        record = ion_struct({"Metadata": metadata, "Keys": ion_item(keys), **members})
        return b"%b{Record:%b}\n" % (VERSION, record)
    metadata_json = {"WriteTimestampMicros": str(stamp)}
    return orjson.dumps({"Metadata": metadata_json, "Keys": keys, **projected}) + b"\n"


# Manifests


def _summary(work: RecoveryContext, record: ExportRecord, manifest_key: str) -> dict[str, Any]:
    request = record.request
    is_full = request.get("ExportType", FULL) == FULL
    if is_full:
        times = {"exportTime": iso(record.exported_at)}
    else:
        times = {
            "exportFromTime": iso(record.since / MICROSECONDS),
            "exportToTime": iso(record.until / MICROSECONDS),
        }
    view = request.get("IncrementalExportSpecification", {}).get("ExportViewType")
    return {
        "version": "2020-06-30" if is_full else "2023-08-01",
        "exportArn": work.arn(record),
        "startTime": iso(record.started_at),
        "endTime": iso(work.clock()),
        "tableArn": work.table_arn(record.table_name),
        "tableId": record.table.table_id,
        **times,
        "s3Bucket": request["S3Bucket"],
        "s3Prefix": request.get("S3Prefix"),
        "s3SseAlgorithm": request.get("S3SseAlgorithm"),
        "s3SseKmsKeyId": request.get("S3SseKmsKeyId"),
        "manifestFilesS3Key": manifest_key,
        "billedSizeBytes": record.billed_bytes,
        "itemCount": record.item_count,
        "outputFormat": request.get("ExportFormat", DYNAMODB_JSON),
        **({} if is_full else {"outputView": view or NEW_AND_OLD_IMAGES}),
        "exportType": FULL if is_full else INCREMENTAL,
    }


def iso(moment: float) -> str:
    """Formats a time as manifests have it: 2026-11-16T14:02:10.000Z."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"

"""Imports: items out of the objects of a bucket, into a table that the import creates.

Records that are no items are counted and logged, and do not stop an import; an object that cannot
be read to its end is one error, and its rest is skipped (guide, "Import format quotas and
validation"). After a restart an import begins again: putting the same items twice does no harm.
"""

from __future__ import annotations

import binascii
import csv
import gzip
import logging
import zlib
from base64 import b64decode
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from io import BytesIO, StringIO
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from partita.database.item.sizes import check_item_size
from partita.database.item.values import Item, normalize_item
from partita.database.recovery.buckets import INSTALL, Bucket, BucketError
from partita.database.recovery.ion import NotIon, item_from_ion, read_ion
from partita.database.recovery.records import COMPLETED, FAILED, Import
from partita.database.recovery.tasks import Task, Workplace, finish_loading
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import layout
from partita.database.tables.keys import check_item
from partita.database.tables.read import load
from partita.database.tables.schema import Table
from partita.database.tables.stored import pack
from partita.database.tables.write_path import write_item
from partita.errors import DynamoDBError

logger = logging.getLogger(__name__)

PIECE_RECORDS: Final = 100
CSV, DYNAMODB_JSON, ION = "CSV", "DYNAMODB_JSON", "ION"
OBJECTS_MAX: Final = 50_000

Record = Item | str
"""An item, or why it is none."""

_decode = msgspec.json.Decoder().decode
_SHAPES: Final[dict[str, type]] = {
    **dict.fromkeys(("S", "N", "B"), str),
    **dict.fromkeys(("SS", "NS", "BS", "L"), list),
    **dict.fromkeys(("BOOL", "NULL"), bool),
    "M": dict,
}


def import_table(work: Workplace, record: Import, table: Table) -> Task:
    yield None
    try:
        done = yield from _imported(work, record, table)
    except BucketError as error:
        done = replace(record, status=FAILED, failure_code=error.code, failure_message=str(error))
    write_batch = yield None
    if done.status == FAILED:
        # Nothing is left behind that could be taken for the whole.
        work.catalog.remove(write_batch, table)
    else:
        finish_loading(work, write_batch, table)
    work.records.save(write_batch, replace(done, ended_at=work.clock()))


def _imported(
    work: Workplace, record: Import, table: Table
) -> Generator[Future[Any] | None, Any, Import]:
    source = record.request["S3BucketSource"]
    bucket = work.buckets.find(source["S3Bucket"])
    listed = work.run(partial(bucket.keys, source.get("S3KeyPrefix", "")))
    yield listed
    keys: list[str] = listed.result()
    if not keys:
        raise BucketError(
            "S3NoSuchKey", f"The bucket {source['S3Bucket']} has no object with that prefix."
        )
    if len(keys) > OBJECTS_MAX:
        raise BucketError("TooManyObjects", f"An import takes up to {OBJECTS_MAX} objects.")
    record = replace(record, processed_items=0, processed_bytes=0, imported_items=0, errors=0)
    for key in keys:
        record = yield from _import_object(work, record, table, bucket, key)
    return replace(record, status=COMPLETED)


def _import_object(
    work: Workplace, record: Import, table: Table, bucket: Bucket, key: str
) -> Generator[Future[Any] | None, Any, Import]:
    fetched = work.run(partial(_content, bucket, key, record.request))
    yield fetched
    content: bytes | str = fetched.result()
    if isinstance(content, str):
        return _with_error(record, key, content)
    records = records_of(content, record.request, table)
    count = 0
    while piece := list(_next(records, PIECE_RECORDS)):
        write_batch = yield None
        problems = [put(write_batch, table, one) for one in piece]
        for problem in filter(None, problems):
            count += 1
            record = _with_error(record, key, problem)
        imported = len(piece) - sum(map(bool, problems))
        record = replace(
            record,
            processed_items=record.processed_items + len(piece),
            imported_items=record.imported_items + imported,
        )
        work.records.save(write_batch, record)
    return replace(record, processed_bytes=record.processed_bytes + len(content))


def _with_error(record: Import, key: str, problem: str) -> Import:
    logger.warning("The import %s could not use a record of %s: %s", record.id, key, problem)
    return replace(record, errors=record.errors + 1)


def put(write_batch: WriteBatch, table: Table, record: Record) -> str | None:
    """Put an item, or say why that cannot be done."""
    if isinstance(record, str):
        return record
    try:
        item = normalize_item(record)
        stored = pack(item)
        check_item_size(stored.size)
        check_item(table, item)
    except DynamoDBError as error:
        return str(error)
    key = layout.item_key(table, item)
    write_item(write_batch, table, key, load(write_batch, key), stored)
    return None


def _next(records: Iterator[Record], count: int) -> Iterator[Record]:
    for _ in range(count):
        one = next(records, None)
        if one is None:
            return
        yield one


# Objects


def _content(bucket: Bucket, key: str, request: dict[str, Any]) -> bytes | str:
    """What an object holds, or why it cannot be read."""
    content = bucket.get(key)
    kind = request.get("InputCompressionType", "NONE")
    try:
        if kind == "GZIP":
            return gzip.decompress(content)
        if kind == "ZSTD":
            return _unzstd(content)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        return f"it is not in the format {kind}, or not whole: {error}"
    return content


def _unzstd(content: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise BucketError("MissingPackage", f"ZSTD cannot be read here: {INSTALL}.") from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(BytesIO(content)) as reader:
            return reader.read()
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


def records_of(content: bytes, request: dict[str, Any], table: Table) -> Iterator[Record]:
    if request["InputFormat"] == CSV:
        return _csv(content, request.get("InputFormatOptions", {}).get("Csv", {}), table)
    return _ion(content) if request["InputFormat"] == ION else _json(content)


def _json(content: bytes) -> Iterator[Record]:
    for line in BytesIO(content):
        if not line.strip():
            continue
        try:
            decoded = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield f"a line is not JSON: {error}"
            continue
        item: Any = decoded.get("Item") if isinstance(decoded, dict) else None
        yield item if _is_map(item) else "a line has no Item in DynamoDB JSON"


def _is_map(members: Any) -> bool:
    return isinstance(members, dict) and all(map(_is_value, members.values()))


def _is_value(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    kind = next(iter(value))
    return type(value[kind]) is _SHAPES.get(kind) and _is_content(kind, value[kind])


def _is_content(kind: str, content: Any) -> bool:
    if kind == "L":
        return all(map(_is_value, content))
    if kind == "M":
        return _is_map(content)
    if kind in ("SS", "NS", "BS"):
        return all(isinstance(member, str) for member in content)
    return kind not in ("B",) or _is_base64(content)


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _ion(content: bytes) -> Iterator[Record]:
    try:
        for value in read_ion(content):
            try:
                yield item_from_ion(value["Item"])
            except (KeyError, TypeError, AttributeError):
                yield "a value has no Item"
            except NotIon as error:
                yield str(error)
    except NotIon as error:
        yield f"the rest of it is not Ion: {error}"
    except ImportError:
        raise BucketError("MissingPackage", f"Ion cannot be read here: {INSTALL}.") from None


def _csv(content: bytes, options: dict[str, Any], table: Table) -> Iterator[Record]:
    """All but keys are strings; empty fields are left out (guide, "Source data formats")."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield f"it is not UTF-8: {error}"
        return
    rows = csv.reader(StringIO(text, newline=""), delimiter=options.get("Delimiter", ","))
    headers: Sequence[str] = options.get("HeaderList") or next(rows, [])
    make = _row_reader(headers, table)
    try:
        for row in rows:
            if row:
                yield make(row)
    except csv.Error as error:
        yield f"it is not CSV: {error}"


def _row_reader(headers: Sequence[str], table: Table) -> Callable[[list[str]], Record]:
    kinds = [table.attribute_types.get(name, "S") for name in headers]

    def read(row: list[str]) -> Record:
        if len(row) != len(headers):
            return f"a row has {len(row)} fields, and there are {len(headers)} headers"
        return {
            name: {kind: text} for name, kind, text in zip(headers, kinds, row, strict=True) if text
        }

    return read

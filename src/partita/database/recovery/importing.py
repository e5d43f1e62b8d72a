"""Imports: items out of the objects of a bucket, into a table that the import creates.

Records that are no items are counted and logged, and do not stop an import; an object that cannot
be read to its end is one error, and its rest is skipped (guide, "Import format quotas and
validation"). After a restart an import begins again: putting the same items twice does no harm.
"""

from __future__ import annotations

import binascii
import csv
import logging
from base64 import b64decode
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from io import StringIO
from itertools import islice
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from partita.database.item.sizes import check_item_size
from partita.database.item.values import Item, normalize_item
from partita.database.recovery.buckets import INSTALL, Bucket, BucketError
from partita.database.recovery.ion import NotIon, item_from_ion, read_ion
from partita.database.recovery.loading import Loader
from partita.database.recovery.objects import Lines, NotWhole, whole
from partita.database.recovery.records import COMPLETED, FAILED, Import
from partita.database.recovery.tasks import Task, Workplace, finish_loading
from partita.database.storage.engine import prefix_end
from partita.database.tables import layout
from partita.database.tables.bulk_load import Loading
from partita.database.tables.keys import check_item
from partita.database.tables.schema import Table
from partita.database.tables.stored import Stored, pack
from partita.errors import DynamoDBError

logger = logging.getLogger(__name__)

PIECE_RECORDS: Final = 250
INDEXED_ITEMS: Final = 500
"""With one turn of the loop."""
TOLD_RECORDS: Final = 10_000
"""How far an import has come is written down after so many."""
CSV, DYNAMODB_JSON, ION = "CSV", "DYNAMODB_JSON", "ION"
OBJECTS_MAX: Final = 50_000
FIELD_CHARS_MAX: Final = 1 << 24

Parsed = dict[str, Any]
"""A line: its Item, and what else it has."""
Record = Parsed | str
"""What a record has, or why it has none."""

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
    keys = yield from keys_of(work, bucket, source)
    record = replace(record, processed_items=0, processed_bytes=0, imported_items=0, errors=0)
    loader = Loader(work, table)
    try:
        for key in keys:
            record = yield from _import_object(work, record, table, bucket, key, loader)
        yield from loader.finish()
        yield from _index(work, table, loader)
    finally:
        loader.stop()
    return replace(record, status=COMPLETED)


def _index(
    work: Workplace, table: Table, loader: Loader
) -> Generator[Future[Any] | None, Any, None]:
    """Index entries and figures, out of the items: each of them once, however often it came."""
    loading = Loading(work.snapshot, table, is_resumed=False)
    prefix = layout.items_prefix(table.number)
    position, stop = prefix, prefix_end(prefix)
    while run := list(islice(work.snapshot.range(position, stop), INDEXED_ITEMS)):
        entries = loading.entries([(key[len(prefix) :], value) for key, value in run])
        position = run[-1][0] + b"\x00"
        if entries:
            yield from loader.put(entries)
        else:
            yield None
    yield from loader.finish(loading.figures())


def keys_of(
    work: Workplace, bucket: Bucket, source: dict[str, Any]
) -> Generator[Future[Any] | None, Any, dict[str, int]]:
    """The objects that a request names, and how large they are; in order."""
    listed = work.run(partial(bucket.sizes, source.get("S3KeyPrefix", "")))
    yield listed
    keys: dict[str, int] = listed.result()
    if not keys:
        raise BucketError(
            "S3NoSuchKey", f"The bucket {source['S3Bucket']} has no object with that prefix."
        )
    if len(keys) > OBJECTS_MAX:
        raise BucketError("TooManyObjects", f"Up to {OBJECTS_MAX} objects are read, not more.")
    return dict(sorted(keys.items()))


def _import_object(
    work: Workplace, record: Import, table: Table, bucket: Bucket, key: str, loader: Loader
) -> Generator[Future[Any] | None, Any, Import]:
    request = record.request
    compression = request.get("InputCompressionType", "NONE")
    source = open_object(
        bucket, key, request["InputFormat"], compression, request.get("InputFormatOptions", {})
    )
    before, told = record.processed_bytes, record.processed_items
    ahead = work.run(source.next)
    while True:
        try:
            yield ahead
            content = ahead.result()
        except NotWhole as problem:
            return _with_error(record, key, str(problem))
        if not content:
            return replace(record, processed_bytes=before + source.read_bytes)
        ahead = work.run(source.next)
        records = source.parse(content, table)
        while piece := list(islice(records, PIECE_RECORDS)):
            pairs: dict[bytes, bytes] = {}
            errors = record.errors
            for one in piece:
                reason = _add(pairs, table, one)
                if reason is not None:
                    record = _with_error(record, key, reason)
            imported = len(piece) - (record.errors - errors)
            yield from loader.put(sorted(pairs.items()))
            record = replace(
                record,
                processed_items=record.processed_items + len(piece),
                processed_bytes=before + source.read_bytes,
                imported_items=record.imported_items + imported,
            )
            if record.processed_items - told > TOLD_RECORDS:
                told = record.processed_items
                write_batch = yield None
                work.records.save(write_batch, record)


def _with_error(record: Import, key: str, problem: str) -> Import:
    logger.warning("The import %s could not use a record of %s: %s", record.id, key, problem)
    return replace(record, errors=record.errors + 1)


def _add(pairs: dict[bytes, bytes], table: Table, record: Record) -> str | None:
    """Add an item, or say why that cannot be done. The last one of a key counts."""
    if isinstance(record, str):
        return record
    try:
        stored = checked(table, record["Item"])
    except DynamoDBError as error:
        return str(error)
    pairs[layout.item_key(table, stored.item)] = stored.value(table.sort_attributes)
    return None


def checked(table: Table, item: Item) -> Stored:
    """An item that the table may have; raises what is wrong with it."""
    normal = normalize_item(item)
    stored = pack(normal)
    check_item_size(stored.size)
    check_item(table, normal)
    return stored


# Objects


class Source(Protocol):
    """An object that is read a piece at a time."""

    read_bytes: int

    def next(self) -> Any:
        """The next piece, on a thread that may wait; nothing at the end."""

    def parse(self, content: Any, table: Table) -> Iterator[Record]: ...


def open_object(
    bucket: Bucket, key: str, kind: str, compression: str, options: dict[str, Any] | None = None
) -> Source:
    if kind == CSV:
        return _CsvObject(bucket, key, compression, (options or {}).get("Csv", {}))
    return (_IonObject if kind == ION else _JsonObject)(bucket, key, compression)


class _JsonObject(Lines):
    def __init__(self, bucket: Bucket, key: str, compression: str) -> None:
        super().__init__(bucket, key, compression, has_quotes=False)

    def parse(self, content: list[bytes], table: Table) -> Iterator[Record]:
        return _json(content)


class _CsvObject(Lines):
    def __init__(self, bucket: Bucket, key: str, compression: str, options: dict[str, Any]) -> None:
        super().__init__(bucket, key, compression, has_quotes=True)
        self._headers: Sequence[str] = options.get("HeaderList") or ()
        self._delimiter: str = options.get("Delimiter", ",")
        self._is_first = True

    def parse(self, content: list[bytes], table: Table) -> Iterator[Record]:
        """All but keys are strings; empty fields are left out (guide, "Source data formats")."""
        csv.field_size_limit(FIELD_CHARS_MAX)
        encoding = "utf-8-sig" if self._is_first else "utf-8"
        self._is_first = False
        try:
            text = b"".join(content).decode(encoding)
        except UnicodeDecodeError as error:
            yield f"it is not UTF-8: {error}"
            return
        rows = csv.reader(StringIO(text, newline=""), delimiter=self._delimiter)
        try:
            self._headers = self._headers or next(rows, [])
            make = _row_reader(self._headers, table)
            for row in rows:
                if row:
                    yield make(row)
        except csv.Error as error:
            yield f"it is not CSV: {error}"


class _IonObject:
    """Its reader takes all of it at once."""

    def __init__(self, bucket: Bucket, key: str, compression: str) -> None:
        self._object = bucket, key, compression
        self._is_read = False
        self.read_bytes = 0

    def next(self) -> bytes:
        if self._is_read:
            return b""
        self._is_read = True
        content = whole(*self._object)
        self.read_bytes = len(content)
        return content

    def parse(self, content: bytes, table: Table) -> Iterator[Record]:
        return _ion(content)


def _json(lines: list[bytes]) -> Iterator[Record]:
    for line in lines:
        if not line.strip():
            continue
        try:
            decoded = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield f"a line is not JSON: {error}"
            continue
        if isinstance(decoded, dict) and _is_map(decoded.get("Item")):
            yield decoded
        else:
            yield "a line has no Item in DynamoDB JSON"


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
        is_string = all(isinstance(member, str) for member in content)
        return is_string and (kind != "BS" or all(map(_is_base64, content)))
    return kind != "B" or _is_base64(content)


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
                yield _ion_record(value)
            except (KeyError, TypeError, AttributeError):
                yield "a value has no Item"
            except NotIon as error:
                yield str(error)
    except NotIon as error:
        yield f"the rest of it is not Ion: {error}"
    except ImportError:
        raise BucketError("MissingPackage", f"Ion cannot be read here: {INSTALL}.") from None


def _ion_record(value: Any) -> Record:
    found: Parsed = {"Item": item_from_ion(value["Item"])}
    if "ConditionExpression" in value:
        found["ConditionExpression"] = str(value["ConditionExpression"])
    if "ExpressionAttributeNames" in value:
        names = value["ExpressionAttributeNames"]
        found["ExpressionAttributeNames"] = {str(key): str(names[key]) for key in names}
    if "ExpressionAttributeValues" in value:
        found["ExpressionAttributeValues"] = item_from_ion(value["ExpressionAttributeValues"])
    return found


def _row_reader(headers: Sequence[str], table: Table) -> Callable[[list[str]], Record]:
    kinds = [table.attribute_types.get(name, "S") for name in headers]

    def read(row: list[str]) -> Record:
        if len(row) != len(headers):
            return f"a row has {len(row)} fields, and there are {len(headers)} headers"
        fields = zip(headers, kinds, row, strict=True)
        return {"Item": {name: {kind: text} for name, kind, text in fields if text}}

    return read

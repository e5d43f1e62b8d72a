"""The formats of imports and bulk puts: parses DynamoDB JSON, Ion and CSV into records.

An object is read a piece at a time. A piece contains everything that its records depend on, such as
the headers of a CSV file, so that another process can parse it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from typing import Any, Final, Protocol

import msgspec

from partita.database.item.dynamodb_json import is_map
from partita.database.recovery.s3.ion_items import NotIon, item_from_ion, read_ion
from partita.database.recovery.s3.object_buckets import INSTALL, BucketError, ObjectBucket
from partita.database.recovery.s3.object_pieces import ObjectLines, TruncatedObject, read_object
from partita.database.tables.definition.table_schema import Table

CSV, DYNAMODB_JSON, ION = "CSV", "DYNAMODB_JSON", "ION"
FIELD_CHARS_MAX: Final = 1 << 24
TOO_DEEP: Final = "a record is nested too deeply"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

Parsed = dict[str, Any]
"""The members of a record: Item, and for a bulk put the members of its condition."""
Record = Parsed | str
"""A parsed record, or the reason why it cannot be parsed."""

_decode = msgspec.json.Decoder().decode


class ObjectPiece(msgspec.Struct, frozen=True, array_like=True):
    """Some complete records of an object, not parsed yet."""

    kind: str
    content: bytes
    headers: Sequence[str] = ()
    delimiter: str = ","


class PieceReader(Protocol):
    """An object that is read a piece at a time."""

    @property
    def read_bytes(self) -> int: ...

    def next(self) -> ObjectPiece | None:
        """Reads the next piece, on the background thread; None at the end. Raises NotWhole."""


def open_object(
    bucket: ObjectBucket,
    key: str,
    kind: str,
    compression: str,
    options: dict[str, Any] | None = None,
) -> PieceReader:
    if kind == CSV:
        return _CsvObject(bucket, key, compression, (options or {}).get("Csv", {}))
    return (_IonObject if kind == ION else _JsonObject)(bucket, key, compression)


def records(piece: ObjectPiece, table: Table) -> Iterator[Record]:
    if piece.kind == CSV:
        return _rows(piece, table)
    return _ion(piece.content) if piece.kind == ION else _json(piece.content)


class _JsonObject:
    def __init__(self, bucket: ObjectBucket, key: str, compression: str) -> None:
        self._lines = ObjectLines(bucket, key, compression, has_quotes=False)

    @property
    def read_bytes(self) -> int:
        return self._lines.read_bytes

    def next(self) -> ObjectPiece | None:
        content = self._lines.next()
        return ObjectPiece(DYNAMODB_JSON, content) if content else None


class _CsvObject:
    def __init__(
        self, bucket: ObjectBucket, key: str, compression: str, options: dict[str, Any]
    ) -> None:
        self._lines = ObjectLines(bucket, key, compression, has_quotes=True)
        self._headers: Sequence[str] = options.get("HeaderList") or ()
        self._delimiter: str = options.get("Delimiter", ",")
        self._is_first = True

    @property
    def read_bytes(self) -> int:
        return self._lines.read_bytes

    def next(self) -> ObjectPiece | None:
        content = self._lines.next()
        if self._is_first:
            self._is_first = False
            content = content.removeprefix(BYTE_ORDER_MARK)
            if content and not self._headers:
                content = self._without_headers(content)
                # The first piece may have been the header line alone, and an empty piece would
                # end the object.
                content = content or self._lines.next()
        return ObjectPiece(CSV, content, self._headers, self._delimiter) if content else None

    def _without_headers(self, content: bytes) -> bytes:
        try:
            text = StringIO(content.decode(), newline="")
            self._headers = next(csv.reader(text, delimiter=self._delimiter))
        except (UnicodeDecodeError, csv.Error) as error:
            raise TruncatedObject(f"its headers cannot be read: {error}") from None
        return text.read().encode()


class _IonObject:
    """An object in Ion is a single piece, because the Ion reader needs the whole object."""

    def __init__(self, bucket: ObjectBucket, key: str, compression: str) -> None:
        self._object = bucket, key, compression
        self._is_read = False
        self.read_bytes = 0

    def next(self) -> ObjectPiece | None:
        if self._is_read:
            return None
        self._is_read = True
        content = read_object(*self._object)
        self.read_bytes = len(content)
        return ObjectPiece(ION, content) if content else None


def _json(content: bytes) -> Iterator[Record]:
    for line in content.splitlines():
        if not line.strip():
            continue
        try:
            decoded = _decode(line)
            has_item = isinstance(decoded, dict) and is_map(decoded.get("Item"))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield f"a line is not JSON: {error}"
        except RecursionError:
            yield TOO_DEEP
        else:
            yield decoded if has_item else "a line has no Item in DynamoDB JSON"


def _ion(content: bytes) -> Iterator[Record]:
    try:
        for value in read_ion(content):
            try:
                yield _ion_record(value)
            except (KeyError, TypeError, AttributeError):
                yield "a value has no Item"
            except NotIon as error:
                yield str(error)
            except RecursionError:
                yield TOO_DEEP
    except NotIon as error:
        yield f"the rest of it is not Ion: {error}"
    except RecursionError:
        yield f"the rest of it cannot be read: {TOO_DEEP}"
    except ImportError:
        raise BucketError("MissingPackage", f"Ion cannot be read here: {INSTALL}.") from None


def _ion_record(value: Any) -> Record:
    record: Parsed = {"Item": item_from_ion(value["Item"])}
    if "ConditionExpression" in value:
        record["ConditionExpression"] = str(value["ConditionExpression"])
    if "ExpressionAttributeNames" in value:
        names = value["ExpressionAttributeNames"]
        record["ExpressionAttributeNames"] = {str(key): str(names[key]) for key in names}
    if "ExpressionAttributeValues" in value:
        record["ExpressionAttributeValues"] = item_from_ion(value["ExpressionAttributeValues"])
    return record


def _rows(piece: ObjectPiece, table: Table) -> Iterator[Record]:
    """Parses CSV: attributes other than keys become strings, empty fields are left out (guide,
    "Source data formats")."""
    csv.field_size_limit(FIELD_CHARS_MAX)
    try:
        text = piece.content.decode()
    except UnicodeDecodeError as error:
        yield f"it is not UTF-8: {error}"
        return
    read = _row_reader(piece.headers, table)
    try:
        for row in csv.reader(StringIO(text, newline=""), delimiter=piece.delimiter):
            if row:
                yield read(row)
    except csv.Error as error:
        yield f"it is not CSV: {error}"


def _row_reader(headers: Sequence[str], table: Table) -> Callable[[list[str]], Record]:
    kinds = [table.attribute_types.get(name, "S") for name in headers]

    def read(row: list[str]) -> Record:
        if len(row) != len(headers):
            return f"a row has {len(row)} fields, and there are {len(headers)} headers"
        fields = zip(headers, kinds, row, strict=True)
        return {"Item": {name: {kind: text} for name, kind, text in fields if text}}

    return read

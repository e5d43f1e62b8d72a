"""Parquet files: a column for each attribute, of the type that its values share.

Numbers become 64-bit integers or floats if that keeps every value exactly, and text otherwise.
A field's metadata names its DynamoDB type. Lists, maps and columns of several types hold DynamoDB
JSON.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import IO, Any, Final

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from partita.copies.table_files.column_types import ColumnTypes
from partita.copies.table_files.table_reading import Item

GROUP_ROWS: Final = 20_000
METADATA: Final = b"dynamodb"
JSON: Final = "JSON"
"""The type of a column that holds DynamoDB JSON, type descriptors included."""

Convert = Callable[[Any], Any]

_TYPES: Final[dict[str, pa.DataType]] = {
    "S": pa.string(),
    "B": pa.binary(),
    "BOOL": pa.bool_(),
    "SS": pa.list_(pa.string()),
    "NS": pa.list_(pa.string()),
    "BS": pa.list_(pa.binary()),
    JSON: pa.string(),
}
_OUT: Final[dict[str, Convert]] = {
    "B": b64decode,
    "BS": lambda members: [b64decode(member) for member in members],
}
_IN: Final[dict[str, Convert]] = {
    "N": lambda number: _digits(number),
    "B": lambda content: b64encode(content).decode(),
    "BS": lambda members: [b64encode(member).decode() for member in members],
}


def write_parquet(out: IO[bytes], columns: ColumnTypes, items: Iterator[Item]) -> None:
    fields = {name: _field(columns, name, kinds) for name, kinds in columns.kinds().items()}
    schema = pa.schema(list(fields.values()))
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        while rows := list(islice(items, GROUP_ROWS)):
            arrays = [_array(field, rows) for field in fields.values()]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _field(columns: ColumnTypes, name: str, kinds: set[str]) -> pa.Field:
    kind = next(iter(kinds)) if len(kinds) == 1 else JSON
    if kind == "N":
        arrow_type = pa.int64() if columns.are_integers(name) else pa.string()
        if not columns.are_integers(name) and columns.are_floats(name):
            arrow_type = pa.float64()
    else:
        kind = kind if kind in _TYPES else JSON
        arrow_type = _TYPES[kind]
    return pa.field(name, arrow_type, metadata={METADATA: kind.encode()})


def _array(field: pa.Field, rows: list[Item]) -> pa.Array:
    kind = field.metadata[METADATA].decode()
    values = [row.get(field.name) for row in rows]
    if kind == JSON:
        converted = [None if value is None else orjson.dumps(value).decode() for value in values]
    else:
        convert = _out(kind, field.type)
        converted = [None if value is None else convert(value[kind]) for value in values]
    return pa.array(converted, type=field.type)


def _out(kind: str, arrow_type: pa.DataType) -> Convert:
    if kind == "N" and pa.types.is_integer(arrow_type):
        return int
    if kind == "N":
        return float if pa.types.is_floating(arrow_type) else str
    return _OUT.get(kind, lambda value: value)


def read_parquet(source: IO[bytes]) -> Iterator[Item]:
    file = pq.ParquetFile(source)
    kinds = {
        field.name: (field.metadata or {}).get(METADATA, b"").decode()
        for field in file.schema_arrow
    }
    for batch in file.iter_batches(GROUP_ROWS):
        for row in batch.to_pylist():
            yield {
                name: _value(kinds[name], value) for name, value in row.items() if value is not None
            }


def _value(kind: str, value: Any) -> dict[str, Any]:
    if kind == JSON:
        attribute_value: dict[str, Any] = orjson.loads(value)
        return attribute_value
    return {kind: _IN.get(kind, lambda same: same)(value)} if kind else _guess(value)


def _guess(value: Any) -> dict[str, Any]:
    """The attribute value for a value of a file that another program wrote."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float | Decimal):
        return {"N": _digits(value)}
    if isinstance(value, bytes):
        return {"B": b64encode(value).decode()}
    if isinstance(value, datetime | date):
        return {"S": value.isoformat()}
    if isinstance(value, list):
        return {"L": [_guess(element) for element in value]}
    if isinstance(value, dict):
        return {"M": {name: _guess(member) for name, member in value.items()}}
    return {"NULL": True} if value is None else {"S": str(value)}


def _digits(number: int | float | str | Decimal) -> str:
    return repr(number) if isinstance(number, float) else str(number)

"""Parquet, by pyarrow: a column for each attribute, of the type that its values share.

Numbers are integers or floats where every one of them is kept exactly, and text otherwise. What a
field was is in its metadata; values of several types, lists and maps are the JSON of the wire.
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

from partita.exchange.columns import Columns
from partita.exchange.tables import Item

GROUP_ROWS: Final = 20_000
METADATA: Final = b"dynamodb"
JSON: Final = "JSON"
"""Of a column whose values are of several types: what the wire has."""

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
    "BS": lambda members: [b64decode(one) for one in members],
}
_IN: Final[dict[str, Convert]] = {
    "N": lambda number: _digits(number),
    "B": lambda content: b64encode(content).decode(),
    "BS": lambda members: [b64encode(one).decode() for one in members],
}


def write_parquet(out: IO[bytes], columns: Columns, items: Iterator[Item]) -> None:
    fields = {name: _field(columns, name, kinds) for name, kinds in columns.kinds().items()}
    schema = pa.schema(list(fields.values()))
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        while rows := list(islice(items, GROUP_ROWS)):
            arrays = [_array(field, rows) for field in fields.values()]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _field(columns: Columns, name: str, kinds: set[str]) -> pa.Field:
    kind = next(iter(kinds)) if len(kinds) == 1 else JSON
    if kind == "N":
        kept = pa.int64() if columns.are_integers(name) else pa.string()
        if not columns.are_integers(name) and columns.are_floats(name):
            kept = pa.float64()
    else:
        kind = kind if kind in _TYPES else JSON
        kept = _TYPES[kind]
    return pa.field(name, kept, metadata={METADATA: kind.encode()})


def _array(field: pa.Field, rows: list[Item]) -> pa.Array:
    kind = field.metadata[METADATA].decode()
    values = [row.get(field.name) for row in rows]
    if kind == JSON:
        made = [None if one is None else orjson.dumps(one).decode() for one in values]
    else:
        convert = _out(kind, field.type)
        made = [None if one is None else convert(one[kind]) for one in values]
    return pa.array(made, type=field.type)


def _out(kind: str, kept: pa.DataType) -> Convert:
    if kind == "N":
        return int if pa.types.is_integer(kept) else float if pa.types.is_floating(kept) else str
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
        found: dict[str, Any] = orjson.loads(value)
        return found
    return {kind: _IN.get(kind, lambda one: one)(value)} if kind else _guessed(value)


def _guessed(value: Any) -> dict[str, Any]:
    """What a value is that somebody else wrote."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float | Decimal):
        return {"N": _digits(value)}
    if isinstance(value, bytes):
        return {"B": b64encode(value).decode()}
    if isinstance(value, datetime | date):
        return {"S": value.isoformat()}
    if isinstance(value, list):
        return {"L": [_guessed(one) for one in value]}
    if isinstance(value, dict):
        return {"M": {name: _guessed(one) for name, one in value.items()}}
    return {"NULL": True} if value is None else {"S": str(value)}


def _digits(number: int | float | str | Decimal) -> str:
    return repr(number) if isinstance(number, float) else str(number)

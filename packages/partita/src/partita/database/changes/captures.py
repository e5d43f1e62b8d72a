"""Captures: the changes of a table on their way to Kinesis, in a log that lasts until they arrive.

A table that has a destination logs its changes once more, with both images, whatever its own
stream shows. A change is removed from there in the write batch that puts it on the destination's
stream, so each arrives once, in order, whatever is killed, and no position has to be stored.
"""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

import msgspec
import orjson

from partita.database.changes import layout
from partita.database.changes.log import EXPIRE, INSERT, MODIFY, REMOVE, Change
from partita.database.changes.streams import OpenStream
from partita.database.item.sizes import item_size
from partita.database.item.values import Item
from partita.database.storage.write_batch import WriteBatch

SHARD = 1
"""The only one: changes are forwarded in their order."""
EVENT_NAMES = {INSERT: "INSERT", MODIFY: "MODIFY", REMOVE: "REMOVE", EXPIRE: "REMOVE"}
MILLISECOND, MICROSECOND = "MILLISECOND", "MICROSECOND"
UNITS_PER_SECOND = {MILLISECOND: 1000, MICROSECOND: 1_000_000}
EXPIRED_BY = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}

_decode_keys = msgspec.json.Decoder(dict[str, dict[str, str]]).decode


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """A Kinesis stream that receives the changes of a table, or has received them."""

    stream_arn: str
    stream_name: str
    precision: str | None
    log: int
    """Its own: a table has one destination at a time."""
    changed_at: float
    is_disabled: bool = False
    is_over: bool = False
    """It is disabled and has received everything, or could never be enabled."""
    failure: str | None = None
    """Why it could not be enabled."""


def open_capture(number: int, key_names: tuple[str, ...], now: float) -> OpenStream:
    return OpenStream(
        number=number,
        label="",
        view_type="NEW_AND_OLD_IMAGES",
        key_names=key_names,
        shards=(SHARD,),
        first=1,
        opened_at=now,
    )


def capture_prefixes(log: int) -> list[bytes]:
    """The prefixes of everything that belongs to a log."""
    return [layout.sequence_key(log), layout.changes_prefix(log)]


def close_capture(write_batch: WriteBatch, log: int) -> None:
    """Remove a log from which everything has been delivered."""
    write_batch.delete(layout.sequence_key(log))


def captured_record(
    table_name: str, region: str, destination: Destination, change: Change
) -> bytes:
    """A change as a destination gets it (guide, "Kinesis Data Streams and DynamoDB")."""
    keys: Item = dict(_decode_keys(change.keys))
    precision = destination.precision or MILLISECOND
    captured = {
        "ApproximateCreationDateTime": int(change.created_at * UNITS_PER_SECOND[precision]),
        "Keys": orjson.Fragment(change.keys),
        "SizeBytes": item_size(keys) + change.image_bytes,
    }
    # Records with milliseconds have been seen without it.
    if precision == MICROSECOND:
        captured["ApproximateCreationDateTimePrecision"] = precision
    if change.new_image:
        captured["NewImage"] = orjson.Fragment(change.new_image)
    if change.old_image:
        captured["OldImage"] = orjson.Fragment(change.old_image)
    return orjson.dumps(
        {
            "awsRegion": region,
            "eventID": str(UUID(bytes=_digest(f"{destination.log} {change.sequence}".encode()))),
            "eventName": EVENT_NAMES[change.event],
            "userIdentity": EXPIRED_BY if change.event == EXPIRE else None,
            "recordFormat": "application/json",
            "tableName": table_name,
            "dynamodb": captured,
            "eventSource": "aws:dynamodb",
        }
    )


def partition_key(change: Change) -> str:
    """All changes of an item have the same, so that they stay in order."""
    return _digest(change.keys).hex().upper()


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()

"""Captures: logs of changes on their way to Kinesis, which keep each change until it is delivered.

A table with a Kinesis destination logs its changes a second time, with both images, whatever view
its own stream has. A change is removed from this log in the same write batch that appends it to
the destination's stream. So every change arrives exactly once and in order, even after kill -9,
and no position has to be stored.
"""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

import msgspec
import orjson

from partita.database.item.attribute_values import Item
from partita.database.item.item_sizes import item_size
from partita.database.logs.change_log import change_log_layout
from partita.database.logs.change_log.change_records import (
    EXPIRE,
    INSERT,
    MODIFY,
    REMOVE,
    ChangeRecord,
)
from partita.database.logs.change_log.change_streams import OpenChangeStream
from partita.database.storage.write_batch import WriteBatch

SHARD = 1
"""A capture has a single shard, so that all changes stay in order."""
EVENT_NAMES = {INSERT: "INSERT", MODIFY: "MODIFY", REMOVE: "REMOVE", EXPIRE: "REMOVE"}
MILLISECOND, MICROSECOND = "MILLISECOND", "MICROSECOND"
UNITS_PER_SECOND = {MILLISECOND: 1000, MICROSECOND: 1_000_000}
EXPIRED_BY = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}

_decode_keys = msgspec.json.Decoder(dict[str, dict[str, str]]).decode


class KinesisDestination(msgspec.Struct, frozen=True, kw_only=True):
    """A Kinesis stream that receives the changes of a table, or received them in the past."""

    stream_arn: str
    stream_name: str
    precision: str | None
    log: int
    """The number of its log; a table has one active destination at a time."""
    changed_at: float
    is_disabled: bool = False
    is_over: bool = False
    """True once a disabled destination has received everything, or if it could not be enabled."""
    failure: str | None = None
    """The reason why it could not be enabled."""


def open_capture(number: int, key_names: tuple[str, ...], now: float) -> OpenChangeStream:
    return OpenChangeStream(
        number=number,
        label="",
        view_type="NEW_AND_OLD_IMAGES",
        key_names=key_names,
        shards=(SHARD,),
        first=1,
        opened_at=now,
    )


def capture_prefixes(log: int) -> list[bytes]:
    """Returns the prefixes of all keys that belong to a log."""
    return [change_log_layout.sequence_key(log), change_log_layout.changes_prefix(log)]


def close_capture(write_batch: WriteBatch, log: int) -> None:
    """Remove a log whose changes have all been delivered."""
    write_batch.delete(change_log_layout.sequence_key(log))


def captured_record(
    table_name: str, region: str, destination: KinesisDestination, change: ChangeRecord
) -> bytes:
    """Returns the Kinesis record of a change (guide, "Kinesis Data Streams and DynamoDB")."""
    keys: Item = dict(_decode_keys(change.keys))
    precision = destination.precision or MILLISECOND
    captured = {
        "ApproximateCreationDateTime": int(change.created_at * UNITS_PER_SECOND[precision]),
        "Keys": orjson.Fragment(change.keys),
        "SizeBytes": item_size(keys) + change.image_bytes,
    }
    # Recorded examples with milliseconds do not have this member.
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


def partition_key(change: ChangeRecord) -> str:
    """Returns the Kinesis partition key, which is the same for all changes of an item."""
    return _digest(change.keys).hex().upper()


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()

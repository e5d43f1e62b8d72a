"""Captures: the changes of a table on their way to Kinesis, in a log that lasts until they arrive.

A table that has a destination logs its changes once more, with both images, whatever its own
stream shows. A change is removed from there in the draft that puts it on the last of the streams
it is for, so every change arrives once, in order, whatever is killed.
"""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

import msgspec
import orjson

from partita.changes import layout
from partita.changes.log import EXPIRE, INSERT, MODIFY, REMOVE, Change
from partita.changes.streams import OpenStream
from partita.item.sizes import item_size
from partita.item.values import Item
from partita.storage.commits import Draft
from partita.storage.engine import Reader

SHARD = 1
"""The only one: changes are forwarded in their order."""
EVENT_NAMES = {INSERT: "INSERT", MODIFY: "MODIFY", REMOVE: "REMOVE", EXPIRE: "REMOVE"}
UNITS_PER_SECOND = {"MILLISECOND": 1000, "MICROSECOND": 1_000_000}
EXPIRED_BY = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}

_decode_keys = msgspec.json.Decoder(dict[str, dict[str, str]]).decode


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """A Kinesis stream that gets the changes of a table."""

    stream_arn: str
    stream_name: str
    precision: str
    log: int
    first: int
    last: int | None = None
    """The changes that it gets; the last is known once it is disabled."""
    changed_at: float
    is_over: bool = False
    """It is disabled and has got everything."""


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
    """Where everything lies that belongs to a log."""
    return [
        layout.sequence_key(log),
        layout.checkpoints_prefix(log),
        layout.changes_prefix(log),
    ]


def read_position(reader: Reader, destination: Destination) -> int:
    """The sequence number of the next change for a destination."""
    noted = reader.get(_position_key(destination))
    return destination.first if noted is None else int.from_bytes(noted, "big")


def save_position(draft: Draft, destination: Destination, position: int) -> None:
    draft.put(_position_key(destination), layout.pack_sequence(position))


def forget_position(draft: Draft, destination: Destination) -> None:
    draft.delete(_position_key(destination))


def is_wanted(reader: Reader, destination: Destination, sequence: int) -> bool:
    """Whether a destination is still to get a change."""
    is_beyond = destination.last is not None and sequence > destination.last
    return not is_beyond and read_position(reader, destination) <= sequence


def close_capture(draft: Draft, log: int) -> None:
    """Forget a log from which everything has been delivered."""
    draft.delete(layout.sequence_key(log))


def _position_key(destination: Destination) -> bytes:
    return layout.checkpoint_key(destination.log, SHARD, destination.stream_name)


def captured_record(
    table_name: str, region: str, destination: Destination, change: Change
) -> bytes:
    """A change as a destination gets it (guide, "Kinesis Data Streams and DynamoDB")."""
    keys: Item = dict(_decode_keys(change.keys))
    units = UNITS_PER_SECOND[destination.precision]
    captured = {
        "ApproximateCreationDateTime": int(change.created_at * units),
        "ApproximateCreationDateTimePrecision": destination.precision,
        "Keys": orjson.Fragment(change.keys),
        "SizeBytes": item_size(keys) + change.image_bytes,
    }
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

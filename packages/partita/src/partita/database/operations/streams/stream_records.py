"""Changes as stream records: the JSON that GetRecords returns and that triggers receive."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from partita.database.item.attribute_values import Item
from partita.database.item.item_sizes import item_size
from partita.database.logs.change_log.change_records import (
    EXPIRE,
    INSERT,
    MODIFY,
    REMOVE,
    ChangeRecord,
)
from partita.database.logs.change_log.change_streams import ChangeStream
from partita.database.operations.response_members import answer, member, raw_member

EVENT_NAMES = {INSERT: "INSERT", MODIFY: "MODIFY", REMOVE: "REMOVE", EXPIRE: "REMOVE"}
TTL_PRINCIPAL = "dynamodb.amazonaws.com"
FIRST_SEQUENCE_NUMBER = 10**20
"""Sequence numbers have at least 21 digits (model)."""

_decode_keys = msgspec.json.Decoder(dict[str, dict[str, str]]).decode


def sequence_number(sequence: int) -> str:
    return str(FIRST_SEQUENCE_NUMBER + sequence)


def sequence_of(number: str) -> int | None:
    """Returns the number of a change, or None if the text is not a sequence number."""
    is_number = number.isascii() and number.isdigit()
    return int(number) - FIRST_SEQUENCE_NUMBER if is_number else None


def size_bytes(change: ChangeRecord) -> int:
    """Returns the item sizes of the key and the images (observed on DynamoDB Local)."""
    return key_bytes(change) + change.image_bytes


def key_bytes(change: ChangeRecord) -> int:
    """Returns the item size of the key."""
    keys: Item = dict(_decode_keys(change.keys))
    return item_size(keys)


def api_record(stream: ChangeStream, change: ChangeRecord, region: str) -> bytes:
    """Returns a record as GetRecords returns it."""
    event_id = blake2b(
        f"{stream.table_name} {stream.label} {stream.number} {change.sequence}".encode(),
        digest_size=16,
    ).hexdigest()
    members = [
        raw_member("eventID", b'"%b"' % event_id.encode()),
        member("eventName", EVENT_NAMES[change.event]),
        raw_member("eventVersion", b'"1.1"'),
        raw_member("eventSource", b'"aws:dynamodb"'),
        member("awsRegion", region),
        raw_member("dynamodb", _stream_record(stream, change)),
    ]
    if change.event == EXPIRE:
        members.append(member("userIdentity", {"PrincipalId": TTL_PRINCIPAL, "Type": "Service"}))
    return answer(members)


def _stream_record(stream: ChangeStream, change: ChangeRecord) -> bytes:
    # The time is in whole seconds, rounded down (model).
    members = [
        member("ApproximateCreationDateTime", int(change.created_at)),
        raw_member("Keys", change.keys),
    ]
    if change.new_image:
        members.append(raw_member("NewImage", change.new_image))
    if change.old_image:
        members.append(raw_member("OldImage", change.old_image))
    members += [
        member("SequenceNumber", sequence_number(change.sequence)),
        member("SizeBytes", size_bytes(change)),
        member("StreamViewType", stream.view_type),
    ]
    return answer(members)

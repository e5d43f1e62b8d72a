"""Sequence numbers as clients see them: decimals of 56 digits that increase within a shard.

They have the format that kinesalite found in the service's own. From the highest bits down, it
contains the second in which the shard was opened, the record's number in its shard, the second in
which it arrived, and the shard.
"""

from __future__ import annotations

from typing import NamedTuple

from partita.database.logs.event_log.shard_splits import EventShard

VERSION = 2
SHARD_BITS, TIME_BITS, SEQUENCE_BITS = 4, 36, 80
NIBBLE_BITS, OPENED_BITS, TOP_BITS = 144, 148, 184
SECONDS = (1 << 36) - 1
SEQUENCES = (1 << 64) - 1
SHARDS = (1 << 32) - 1
LAST_SHARD = (1 << 31) - 1
LAST_SEQUENCE = (1 << 63) - 1
"""The record number in the ending sequence number of a closed shard."""
SHORT_NUMBERS = (1 << 124) - 1
"""Numbers up to this one are from the service's first years, so they mean the distant past."""
STEP = 1 << SEQUENCE_BITS
"""The difference between the numbers of two successive records in the same second."""


class SequenceNumber(NamedTuple):
    """The parts of a sequence number."""

    opened_second: int
    shard: int
    sequence: int
    second: int


def sequence_number(shard: EventShard, sequence: int, at: float) -> int:
    return (
        VERSION << TOP_BITS
        | int(shard.opened_at) << OPENED_BITS
        | (shard.number & 15) << NIBBLE_BITS
        | sequence << SEQUENCE_BITS
        | int(at) << TIME_BITS
        | shard.number << SHARD_BITS
        | VERSION
    )


def parse_sequence_number(text: str) -> SequenceNumber | None:
    """Returns the parts of a sequence number, or None if the text is not one."""
    number = int(text)
    if number >> TOP_BITS != VERSION or number & 15 != VERSION:
        return None
    parsed = SequenceNumber(
        number >> OPENED_BITS & SECONDS,
        number >> SHARD_BITS & SHARDS,
        number >> SEQUENCE_BITS & SEQUENCES,
        number >> TIME_BITS & SECONDS,
    )
    is_sound = parsed.shard & 15 == number >> NIBBLE_BITS & 15
    is_small = parsed.shard <= LAST_SHARD and parsed.sequence <= LAST_SEQUENCE
    return parsed if is_sound and is_small else None


def starting_number(shard: EventShard) -> str:
    return str(sequence_number(shard, 0, shard.opened_at))


def ending_number(shard: EventShard) -> str:
    assert shard.closed_at is not None
    return str(sequence_number(shard, LAST_SEQUENCE, shard.closed_at))

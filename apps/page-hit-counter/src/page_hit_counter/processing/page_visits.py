"""Page visits: how they are sent, validated, and packed into records of the stream.

A record of the stream holds many visits as JSON, so that few shards carry much traffic: the visits
of one POST, or of several small ones that arrived at the same time. They keep their order. A batch
that its sender numbered gets a record of its own, because its number is what makes a repeated batch
count once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

# Since 2025 Kinesis accepts records of 10 MB, but only 1 MB works with every consumer.
RECORD_BYTES_MAX = 1_000_000
ASSET_ID_MAX = 2**63 - 1
VISITS_PER_RECORD_MAX = 1_000
RESOURCE_TYPE_CHARACTERS_MAX = 50
MILLISECONDS_FROM = 1e11
"""Larger times are taken for milliseconds, as browsers count. In seconds this is the year 5138."""


class PageVisit(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """One page visit. The processor always overwrites brand and resource type."""

    asset_id: Annotated[int, Meta(ge=1, le=ASSET_ID_MAX)]
    section_id: Annotated[int, Meta(ge=0, lt=2**31)]
    paid_type: Annotated[str, Meta(min_length=1, max_length=20)]
    visitor: Annotated[str, Meta(max_length=128)] = ""
    time: float = 0.0
    """Seconds since the epoch; 0 is replaced by the time at which the visit arrives."""
    url: Annotated[str, Meta(max_length=2048)] = ""
    agent: Annotated[str, Meta(max_length=512)] = ""
    source: Annotated[str, Meta(max_length=64)] = ""
    """The IP address that it came from."""
    brand: Annotated[str, Meta(max_length=32)] = ""
    resource_type: Annotated[str, Meta(max_length=RESOURCE_TYPE_CHARACTERS_MAX)] | None = None
    visit_id: Annotated[str, Meta(max_length=64)] = ""
    signature: Annotated[str, Meta(max_length=128)] = ""


class VisitBatch(msgspec.Struct, rename="camel"):
    """The body of `POST /events` when it is an object instead of a list of events."""

    events: list[msgspec.Raw]
    replay: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")] | None = None
    """The name of a replay, which is history that is sent in order. Its windows close by the times
    of its visits."""
    number: Annotated[int, Meta(ge=0)] | None = None
    """The number of this batch in the replay."""
    is_last: bool = False


class CountedVisit(msgspec.Struct, rename="camel", gc=False):
    """The members of a visit that the counter reads; the decoder skips the others."""

    asset_id: int
    section_id: int
    paid_type: str
    time: float
    brand: str = ""
    resource_type: str | None = None


class VisitRecord(msgspec.Struct, rename="camel", omit_defaults=True):
    """The data of one record of the stream, as the processor writes it."""

    id: str
    visits: list[PageVisit] = []
    replay: str = ""
    number: int = -1
    is_last: bool = False


class CountedRecord(msgspec.Struct, rename="camel"):
    """The data of one record of the stream, as the counter reads it."""

    id: str
    visits: list[CountedVisit] = []
    replay: str = ""
    number: int = -1
    is_last: bool = False


encode = msgspec.json.Encoder().encode
unpack = msgspec.json.Decoder(CountedRecord).decode
_decode_visits = msgspec.json.Decoder(list[PageVisit]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_batch = msgspec.json.Decoder(VisitBatch).decode
_decode_visit = msgspec.json.Decoder(PageVisit).decode


class ReceivedEvents(msgspec.Struct):
    """The events of one POST: for each event a visit, or the reason why it is refused."""

    outcomes: list[PageVisit | str]
    replay: str | None = None
    number: int | None = None
    is_last: bool = False


def decode(body: bytes) -> ReceivedEvents:
    """Reads a body. Events are read one by one only when one of them is invalid, which is slower.

    Raises `msgspec.DecodeError` when the body itself is not a list of events."""
    if body.lstrip()[:1] == b"{":
        batch = _decode_batch(body)
        outcomes = [_decode_one(event) for event in batch.events]
        return ReceivedEvents(outcomes, batch.replay, batch.number, batch.is_last)
    try:
        return ReceivedEvents(list(_decode_visits(body)))
    except msgspec.ValidationError:
        return ReceivedEvents([_decode_one(event) for event in _decode_list(body)])


def settle_time(visit: PageVisit, now: float, future_seconds: float) -> str | None:
    """Sets the time of a visit to seconds since the epoch. Returns the reason when the time is
    invalid."""
    time = visit.time
    if time == 0.0:
        visit.time = now
        return None
    if time >= MILLISECONDS_FROM:
        visit.time = time = time / 1000
    if time > now + future_seconds:
        return f"time is {time - now:.6g} seconds ahead of the server's clock"
    return "time is negative" if time < 0 else None


def _decode_one(event: msgspec.Raw) -> PageVisit | str:
    try:
        return _decode_visit(event)
    except msgspec.ValidationError as error:
        return _decode_written_time(event, str(error))


def _decode_written_time(event: msgspec.Raw, refusal: str) -> PageVisit | str:
    """Reads an event whose time is written as in RFC 3339. That is rare, so it is tried last."""
    members: Any = msgspec.json.decode(event)
    if not isinstance(members, dict) or not isinstance(members.get("time"), str):
        return refusal
    try:
        moment = datetime.fromisoformat(members["time"])
    except ValueError:
        return f"time {members['time']!r} is neither a number nor a date and time"
    if moment.tzinfo is None:
        return f"time {members['time']!r} has no time zone"
    if moment.timestamp() >= MILLISECONDS_FROM:
        return f"time {members['time']!r} is ahead of the server's clock"
    try:
        return msgspec.convert({**members, "time": moment.timestamp()}, PageVisit)
    except msgspec.ValidationError as error:
        return str(error)

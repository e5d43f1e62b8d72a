"""Finds the stream or shard that a Kinesis request names, and refuses requests for missing ones.

Error texts are those that kinesalite recorded from the service, unless noted otherwise.
"""

from __future__ import annotations

from partita.database.logs.event_log.event_streams import (
    ACTIVE,
    CREATING,
    DELETING,
    EventStream,
    name_in_arn,
)
from partita.database.logs.event_log.shard_splits import EventShard, shard_id
from partita.database.operations.operation_context import DatabaseService, Request
from partita.errors import (
    InvalidArgumentException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)

NO_BODY = b""
"""The response of operations that return nothing."""
NO_NAME = (
    "1 validation error detected: Value null at 'streamName' failed to satisfy constraint: "
    "Member must not be null"
)
OTHER_NAME = "StreamARN and StreamName do not name the same stream."


def stream_arn(service: DatabaseService, name: str) -> str:
    return f"arn:aws:kinesis:{service.region}:{service.account_id}:stream/{name}"


def stream_name(request: Request) -> str:
    name: str | None = request.get("StreamName")
    if "StreamARN" in request:
        arn_name = name_in_arn(request["StreamARN"])
        if name not in (None, arn_name):
            raise InvalidArgumentException(OTHER_NAME)
        return arn_name
    if name is None:
        raise ValidationException(NO_NAME)
    return name


def find_stream(service: DatabaseService, name: str) -> EventStream:
    """Returns a stream in any status."""
    stream = service.event_streams.find(name)
    if stream is None:
        raise ResourceNotFoundException(f"{stream_phrase(service, name)} not found.")
    return stream


def stream_of(service: DatabaseService, request: Request) -> EventStream:
    return find_stream(service, stream_name(request))


def active_stream(service: DatabaseService, request: Request) -> EventStream:
    """Returns an ACTIVE stream to change: the service refuses a second change meanwhile."""
    stream = stream_of(service, request)
    status = stream.status(service.clock())
    if status != ACTIVE:
        raise ResourceInUseException(
            f"{stream_phrase(service, stream.name)} not ACTIVE, instead in state {status}"
        )
    return stream


def readable_stream(service: DatabaseService, request: Request) -> EventStream:
    """Returns a stream that takes and gives records; it may be UPDATING."""
    stream = stream_of(service, request)
    if stream.status(service.clock()) in (CREATING, DELETING):
        raise ResourceNotFoundException(f"{stream_phrase(service, stream.name)} not found.")
    return stream


def stream_phrase(service: DatabaseService, name: str) -> str:
    """Returns the phrase with which error texts name a stream."""
    return f"Stream {name} under account {service.account_id}"


def shard_number(service: DatabaseService, stream_name: str, name: str) -> int:
    """Returns 7 for "shardId-000000000007"; the service also accepts "7"."""
    digits = f"{name}-".split("-")[1] or name
    if not (digits.isascii() and digits.isdigit() and int(digits) < 1 << 31):
        raise ResourceNotFoundException(_no_shard(service, stream_name, name))
    return int(digits)


def find_shard(service: DatabaseService, stream: EventStream, number: int) -> EventShard:
    """Returns the shard to split or merge."""
    shard = stream.shard(number)
    if shard is None:
        raise ResourceNotFoundException(_no_shard(service, stream.name, shard_id(number)))
    return shard


def _no_shard(service: DatabaseService, stream_name: str, name: str) -> str:
    account = service.account_id
    return f"Could not find shard {name} in stream {stream_name} under account {account}."

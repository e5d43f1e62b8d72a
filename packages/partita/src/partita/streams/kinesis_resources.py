"""Which stream a request to Kinesis names, and how one that is not there is refused.

Texts are those that kinesalite recorded from the service, unless noted otherwise.
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
"""The answer of operations that only change something."""
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
        named = name_in_arn(request["StreamARN"])
        if name not in (None, named):
            raise InvalidArgumentException(OTHER_NAME)
        return named
    if name is None:
        raise ValidationException(NO_NAME)
    return name


def find_stream(service: DatabaseService, name: str) -> EventStream:
    """The stream that is described or changed, whatever its status."""
    stream = service.event_streams.find(name)
    if stream is None:
        raise ResourceNotFoundException(f"{stream_phrase(service, name)} not found.")
    return stream


def stream_of(service: DatabaseService, request: Request) -> EventStream:
    return find_stream(service, stream_name(request))


def active_stream(service: DatabaseService, request: Request) -> EventStream:
    """The stream that is to be changed, which takes one change at a time."""
    stream = stream_of(service, request)
    status = stream.status(service.clock())
    if status != ACTIVE:
        raise ResourceInUseException(
            f"{stream_phrase(service, stream.name)} not ACTIVE, instead in state {status}"
        )
    return stream


def readable_stream(service: DatabaseService, request: Request) -> EventStream:
    """The stream that records are put on or read from."""
    stream = stream_of(service, request)
    if stream.status(service.clock()) in (CREATING, DELETING):
        raise ResourceNotFoundException(f"{stream_phrase(service, stream.name)} not found.")
    return stream


def stream_phrase(service: DatabaseService, name: str) -> str:
    """How the texts of errors name a stream."""
    return f"Stream {name} under account {service.account_id}"


def shard_number(service: DatabaseService, stream_name: str, given: str) -> int:
    """The number behind a shard's name; the service takes the number alone, too."""
    digits = f"{given}-".split("-")[1] or given
    if not (digits.isascii() and digits.isdigit() and int(digits) < 1 << 31):
        raise ResourceNotFoundException(_no_shard(service, stream_name, given))
    return int(digits)


def find_shard(service: DatabaseService, stream: EventStream, number: int) -> EventShard:
    """The shard that is to be split or merged."""
    shard = stream.shard(number)
    if shard is None:
        raise ResourceNotFoundException(_no_shard(service, stream.name, shard_id(number)))
    return shard


def _no_shard(service: DatabaseService, stream_name: str, given: str) -> str:
    account = service.account_id
    return f"Could not find shard {given} in stream {stream_name} under account {account}."

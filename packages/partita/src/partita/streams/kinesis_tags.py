"""Kinesis: AddTagsToStream, RemoveTagsFromStream, ListTagsForStream, and their twins by ARN."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from partita.database.logs.event_log.event_streams import EventStream, name_in_arn
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.response_members import encode
from partita.errors import InvalidArgumentException
from partita.foundation.service_limits import EVENT_STREAM_TAGS_MAX
from partita.streams.kinesis_resources import NO_BODY, find_stream, stream_of, stream_phrase

_STRANGE = re.compile(r"[^\u00C0-\u1FFF\u2C00-\uD7FF\w./\-=+ @%:]")
CHARACTERS = (
    "Some tags contain invalid characters. Valid characters: "
    "Unicode letters, digits, white space, _ . / = + - % @."
)
PERCENT = (
    "Failed to {} tags {} {} because some tags contained illegal characters. The allowed "
    "characters are Unicode letters, white-spaces, '_',',','/','=','+','-','@'."
)
"""For the percent sign: the service refuses it, although the other text calls it valid."""


def add_tags_to_stream(context: WriteContext, request: Request) -> bytes:
    return _add(context, stream_of(context.service, request), request["Tags"])


def tag_resource(context: WriteContext, request: Request) -> bytes:
    return _add(context, _resource(context.service, request), request["Tags"])


def remove_tags_from_stream(context: WriteContext, request: Request) -> bytes:
    return _remove(context, stream_of(context.service, request), request["TagKeys"])


def untag_resource(context: WriteContext, request: Request) -> bytes:
    return _remove(context, _resource(context.service, request), request["TagKeys"])


def list_tags_for_stream(context: ReadContext, request: Request) -> bytes:
    stream = stream_of(context.service, request)
    after, limit = request.get("ExclusiveStartTagKey", ""), request.get("Limit")
    tags = [tag for tag in _listed(stream) if tag["Key"] > after]
    return encode({"Tags": tags[:limit], "HasMoreTags": limit is not None and len(tags) > limit})


def list_tags_for_resource(context: ReadContext, request: Request) -> bytes:
    return encode({"Tags": _listed(_resource(context.service, request))})


def _listed(stream: EventStream) -> list[dict[str, Any]]:
    return [{"Key": key, "Value": value} for key, value in sorted(stream.tags.items())]


def _resource(service: DatabaseService, request: Request) -> EventStream:
    return find_stream(service, name_in_arn(request["ResourceARN"]))


def _add(context: WriteContext, stream: EventStream, tags: dict[str, str]) -> bytes:
    tagged = check_tags(context.service, stream.name, stream.tags, tags)
    context.service.event_streams.save(context.write_batch, replace(stream, tags=tagged))
    return NO_BODY


def _remove(context: WriteContext, stream: EventStream, keys: list[str]) -> bytes:
    _check_characters(keys, ("remove", "from", _lower_phrase(context.service, stream.name)))
    kept = {key: value for key, value in stream.tags.items() if key not in keys}
    context.service.event_streams.save(context.write_batch, replace(stream, tags=kept))
    return NO_BODY


def check_tags(
    service: DatabaseService, name: str, present: dict[str, str], added: dict[str, str]
) -> dict[str, str]:
    """Returns the tags of a stream after others are added."""
    _check_characters([*added, *added.values()], ("add", "to", _lower_phrase(service, name)))
    tags = present | added
    if len(tags) > EVENT_STREAM_TAGS_MAX:
        raise InvalidArgumentException(
            f"Failed to add tags to {_lower_phrase(service, name)} because a "
            f"given stream cannot have more than {EVENT_STREAM_TAGS_MAX} tags associated with it."
        )
    return tags


def _check_characters(texts: Sequence[str], doing: tuple[str, str, str]) -> None:
    if any(map(_STRANGE.search, texts)):
        raise InvalidArgumentException(CHARACTERS)
    if any("%" in text for text in texts):
        raise InvalidArgumentException(PERCENT.format(*doing))


def _lower_phrase(service: DatabaseService, name: str) -> str:
    return stream_phrase(service, name).replace("Stream", "stream", 1)

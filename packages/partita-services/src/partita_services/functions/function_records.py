"""The records of functions and of what calls them; configurations are as the API shows them."""

from __future__ import annotations

from typing import Any

import msgspec

Configuration = dict[str, Any]


class FunctionRecord(msgspec.Struct, kw_only=True):
    name: str
    configuration: Configuration
    """FunctionConfiguration of $LATEST."""
    package: str
    """The digest of its code."""
    last_version: int = 0
    concurrency: int | None = None
    tags: dict[str, str] = {}


class VersionRecord(msgspec.Struct, kw_only=True):
    """A function as it was when it was published."""

    number: int
    configuration: Configuration
    package: str


class AliasRecord(msgspec.Struct, kw_only=True):
    name: str
    version: str
    description: str
    weights: dict[str, float]
    """Of the other version that it invokes, between 0 and 1."""
    revision_id: str


class EventInvokeRecord(msgspec.Struct, kw_only=True):
    """What becomes of asynchronous invocations of a version or alias."""

    qualifier: str
    configuration: Configuration


class QueuedEvent(msgspec.Struct, kw_only=True):
    """An asynchronous invocation that has not ended."""

    id: str
    function: str
    qualifier: str
    payload: str
    accepted_at: float
    attempts: int = 0
    due_at: float = 0.0
    client_context: Any = None


class MappingRecord(msgspec.Struct, kw_only=True):
    uuid: str
    configuration: Configuration
    """EventSourceMappingConfiguration."""
    goal: str = "Enabled"
    """The state in which its transition ends."""
    tags: dict[str, str] = {}


class ScheduleRecord(msgspec.Struct, kw_only=True):
    group: str
    name: str
    configuration: Configuration
    """As GetSchedule shows it."""
    due_at: float | None = None
    """When it runs next; None when it never will."""


class GroupRecord(msgspec.Struct, kw_only=True):
    name: str
    created_at: float
    tags: dict[str, str] = {}

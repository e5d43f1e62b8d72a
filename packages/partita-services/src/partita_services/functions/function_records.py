"""The records of functions and of whatever calls them. Their configurations are in the API's own
shape."""

from __future__ import annotations

from typing import Any

import msgspec

Configuration = dict[str, Any]


class FunctionRecord(msgspec.Struct, kw_only=True):
    name: str
    configuration: Configuration
    """FunctionConfiguration of $LATEST."""
    package: str
    """The digest of the code."""
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
    """The share of calls that go to the other version, between 0 and 1."""
    revision_id: str


class EventInvokeRecord(msgspec.Struct, kw_only=True):
    """The configuration of asynchronous invocations of a version or alias."""

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
    """The state in which the current transition ends."""
    tags: dict[str, str] = {}


class ScheduleRecord(msgspec.Struct, kw_only=True):
    group: str
    name: str
    configuration: Configuration
    """The members of GetSchedule's answer."""
    due_at: float | None = None
    """The time of the next run; None when there will be no more."""


class GroupRecord(msgspec.Struct, kw_only=True):
    name: str
    created_at: float
    tags: dict[str, str] = {}

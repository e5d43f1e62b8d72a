"""The records of machines, versions, aliases, activities and executions."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

STANDARD, EXPRESS = "STANDARD", "EXPRESS"
ACTIVE, DELETING = "ACTIVE", "DELETING"
RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"
FAILED, ABORTED = "FAILED", "ABORTED"


class MachineRecord(msgspec.Struct, kw_only=True):
    name: str
    type: str
    definition: str
    role_arn: str
    created_at: float
    updated_at: float
    revision_id: str | None = None
    """None until the first update, as in the service."""
    status: str = ACTIVE
    logging: dict[str, object] | None = None
    tracing: dict[str, object] | None = None
    tags: dict[str, str] = {}
    last_version: int = 0
    """The number of the latest published version."""

    @property
    def digest(self) -> str:
        """The key of the definition, which is stored once for all executions that run it."""
        return blake2b(self.definition.encode(), digest_size=16).hexdigest()


class MachineVersion(msgspec.Struct, kw_only=True):
    """A machine as it was when it was published."""

    number: int
    digest: str
    """The digest of the definition."""
    role_arn: str
    created_at: float
    revision_id: str | None = None
    description: str | None = None
    logging: dict[str, object] | None = None
    tracing: dict[str, object] | None = None


class MachineAlias(msgspec.Struct, kw_only=True):
    name: str
    routes: dict[int, int]
    """The weight of each version, in percent."""
    created_at: float
    updated_at: float
    description: str | None = None


class ActivityRecord(msgspec.Struct, kw_only=True):
    name: str
    created_at: float
    tags: dict[str, str] = {}


class ExecutionRecord(msgspec.Struct, kw_only=True):
    """An execution as DescribeExecution shows it. Its state is a record of its own."""

    arn: str
    name: str
    machine: str
    """The machine's name."""
    version: int | None = None
    alias: str | None = None
    """The alias that it was started with."""
    type: str
    digest: str
    """The digest of the definition that it runs."""
    role_arn: str
    revision_id: str | None
    machine_updated_at: float
    started_at: float
    input: str
    trace_header: str | None = None
    status: str = RUNNING
    stopped_at: float | None = None
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    redrive_count: int = 0
    redriven_at: float | None = None
    redrive_tokens: dict[str, float] = {}
    """The client tokens of the latest redrives, each with its time."""


class MapRunCounts(msgspec.Struct, kw_only=True):
    """The counts of a map run's executions, or of their items."""

    total: int
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def pending(self) -> int:
        return self.total - self.running - self.succeeded - self.failed


class MapRun(msgspec.Struct, kw_only=True):
    """A map run as DescribeMapRun shows it; UpdateMapRun changes its limits."""

    arn: str
    execution_arn: str
    machine: str
    started_at: float
    concurrency: int
    """0 for as many as the server allows."""
    tolerated_count: int | None
    tolerated_percentage: float | None
    executions: MapRunCounts
    items: MapRunCounts
    status: str = RUNNING
    stopped_at: float | None = None


class DelayedMessage(msgspec.Struct, kw_only=True):
    """A message that a queue holds back."""

    id: str
    sink: str
    """The ARN of the sink that the message is for."""
    role: str
    content: str
    key: str
    due: float = 0.0

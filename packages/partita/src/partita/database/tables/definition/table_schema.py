"""The definition of a table: keys, indexes and settings, as the catalog stores them.

All of it is immutable, so derived properties are computed once; a change makes a new `Table` and
saves it through the catalog. Storage keys contain the numbers of tables and indexes, not their
names: a name can be used again, a number never is.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from partita.database.capacity.insights_rules import InsightsSetting
from partita.database.capacity.scaling.auto_scaling import ScalingPolicy
from partita.database.item.key_encoding import KeyAttribute
from partita.database.logs.change_log.change_streams import OpenChangeStream
from partita.database.logs.change_log.kinesis_captures import KinesisDestination
from partita.foundation.service_limits import DECREASE_SECONDS, DECREASES_PER_DAY

KEYS_ONLY, INCLUDE, ALL = "KEYS_ONLY", "INCLUDE", "ALL"
CREATING, ACTIVE, UPDATING, DELETING = "CREATING", "ACTIVE", "UPDATING", "DELETING"
DAY = 24 * 3600
NOT_BEFORE_LOADED = 253_402_300_800.0
"""The `settles_at` of a table that is still being restored or imported: the year 10000."""
PROVISIONED, PAY_PER_REQUEST = "PROVISIONED", "PAY_PER_REQUEST"


class ProvisionedThroughput(msgspec.Struct, frozen=True):
    """Provisioned units and when they last changed."""

    read_units: int = 0
    write_units: int = 0
    increased_at: float | None = None
    decreased_at: float | None = None
    decreases: int = 0

    def decreases_today(self, now: float) -> int:
        """Returns how often the units were decreased today (UTC)."""
        same_day = self.decreased_at is not None and self.decreased_at // DAY == now // DAY
        return self.decreases if same_day else 0

    def next_decrease_at(self, now: float) -> float | None:
        """Returns when the units may be decreased again, or None if they may be decreased now.

        Four decreases a day are free; after them, one is allowed every hour.
        """
        if self.decreased_at is None or self.decreases_today(now) < DECREASES_PER_DAY:
            return None
        allowed_at = min(self.decreased_at + DECREASE_SECONDS, (now // DAY + 1) * DAY)
        return allowed_at if now < allowed_at else None

    def changed_to(self, read_units: int, write_units: int, now: float) -> ProvisionedThroughput:
        lowered = read_units < self.read_units or write_units < self.write_units
        raised = read_units > self.read_units or write_units > self.write_units
        return ProvisionedThroughput(
            read_units,
            write_units,
            now if raised else self.increased_at,
            now if lowered else self.decreased_at,
            self.decreases_today(now) + lowered,
        )


class Index(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The definition of a local or global secondary index."""

    name: str
    number: int
    is_local: bool
    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...]
    projection_type: str
    non_key_attributes: tuple[str, ...] = ()
    status: str = ACTIVE
    throughput: ProvisionedThroughput = ProvisionedThroughput()
    on_demand_throughput: dict[str, int] | None = None
    warm_throughput: dict[str, int] | None = None
    read_scaling: ScalingPolicy | None = None
    write_scaling: ScalingPolicy | None = None
    insights: InsightsSetting | None = None

    @cached_property
    def key_attributes(self) -> tuple[KeyAttribute, ...]:
        return self.partition + self.sort

    @property
    def is_readable(self) -> bool:
        return self.status in (ACTIVE, UPDATING)


class ResourcePolicy(msgspec.Struct, frozen=True):
    """The resource policy of a table or stream: its JSON document as the user wrote it."""

    document: str
    revision_id: str


class RecoverySetting(msgspec.Struct, frozen=True):
    """The settings of point-in-time recovery; a table has none while recovery is off."""

    period_days: int
    enabled_at: float


class RestoreOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The backup or point in time that a table was restored from."""

    table_arn: str
    table_id: str
    restored_to: float
    backup_arn: str | None = None
    manifest: str | None = None
    """The manifest of the backup."""
    stamp: int | None = None
    """The commit to restore to, unless a backup is restored; 0 means the latest."""
    is_in_progress: bool = True

    @property
    def is_fixed(self) -> bool:
        """True once it is decided which data is restored: a backup, or a certain commit."""
        return self.manifest is not None or bool(self.stamp)


class Table(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The definition of a table, with everything that the control plane can set."""

    name: str
    number: int
    table_id: str
    created_at: float
    attribute_types: dict[str, str]
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    indexes: tuple[Index, ...] = ()
    next_index_number: int = 1
    transition: str = ACTIVE
    """The status that the last change brought, until `settles_at`."""
    settles_at: float = 0.0
    billing_mode: str = PROVISIONED
    on_demand_since: float | None = None
    throughput: ProvisionedThroughput = ProvisionedThroughput()
    on_demand_throughput: dict[str, int] | None = None
    warm_throughput: dict[str, int] | None = None
    read_scaling: ScalingPolicy | None = None
    write_scaling: ScalingPolicy | None = None
    insights: InsightsSetting | None = None
    deletion_protection: bool = False
    table_class: str | None = None
    table_class_changed_at: float | None = None
    sse: dict[str, Any] | None = None
    key_secret: bytes = b""
    """The key for hashing partition keys, in an encrypted folder."""
    stream_view_type: str | None = None
    stream_label: str | None = None
    """The label of the table's last stream, which may be closed."""
    stream: OpenChangeStream | None = None
    """The open stream: set while the table has a stream view type."""
    capture: OpenChangeStream | None = None
    """The log for Kinesis destinations: set while at least one is enabled."""
    destinations: tuple[KinesisDestination, ...] = ()
    ttl_attribute: str | None = None
    ttl_is_indexed: bool = False
    """True once the items written before TTL was enabled are in the expiry index too."""
    ttl_changes: int = 0
    """The number of times TTL was enabled or disabled; part of the storage keys of expiries."""
    tags: dict[str, str] = {}
    resource_policy: ResourcePolicy | None = None
    stream_policies: dict[str, ResourcePolicy] = {}
    """The resource policies of the table's streams, by stream label."""
    recovery: RecoverySetting | None = None
    origin: RestoreOrigin | None = None
    import_id: str | None = None
    """The import that fills the table, until it is complete."""

    @cached_property
    def key_attributes(self) -> tuple[KeyAttribute, ...]:
        return (self.partition, self.sort) if self.sort else (self.partition,)

    @cached_property
    def sort_attributes(self) -> tuple[KeyAttribute, ...]:
        return (self.sort,) if self.sort else ()

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.key_attributes)

    @cached_property
    def local_indexes(self) -> list[Index]:
        return [index for index in self.indexes if index.is_local]

    @cached_property
    def global_indexes(self) -> list[Index]:
        return [index for index in self.indexes if not index.is_local]

    @property
    def is_loading(self) -> bool:
        """True while the table's items are being restored or imported."""
        return self.import_id is not None or (
            self.origin is not None and self.origin.is_in_progress
        )

    @property
    def has_changing_index(self) -> bool:
        return any(index.status in (CREATING, DELETING) for index in self.indexes)

    @property
    def capacity_owners(self) -> tuple[Table | Index, ...]:
        """The table and its global indexes, which have throughput of their own."""
        return (self, *self.global_indexes)

    @property
    def is_metered(self) -> bool:
        """True when consumption must be counted, for Contributor Insights or auto scaling."""
        return any(
            (owner.insights and owner.insights.is_enabled)
            or owner.read_scaling
            or owner.write_scaling
            for owner in self.capacity_owners
        )

    def index(self, name: str) -> Index | None:
        return next((index for index in self.indexes if index.name == name), None)

    def status(self, now: float) -> str:
        """Returns the table's status at a time.

        CREATING and UPDATING last until the table settles, DELETING until it is removed.
        """
        is_lasting = self.transition == DELETING or now < self.settles_at
        return self.transition if is_lasting else ACTIVE

    def with_index(self, changed: Index) -> Table:
        """Returns this table with one index replaced."""
        return msgspec.structs.replace(
            self,
            indexes=tuple(
                changed if index.name == changed.name else index for index in self.indexes
            ),
        )

    def with_destination(self, changed: KinesisDestination) -> Table:
        """Returns this table with a Kinesis destination added or replaced."""
        others = [
            destination
            for destination in self.destinations
            if destination.stream_name != changed.stream_name
        ]
        return msgspec.structs.replace(self, destinations=(*others, changed))

    @cached_property
    def indexes_by_name(self) -> list[Index]:
        """The indexes sorted by name: errors name the first that is affected (recorded)."""
        return sorted(self.indexes, key=lambda index: index.name)

    @cached_property
    def index_key_names(self) -> frozenset[str]:
        return frozenset(name for index in self.indexes for name, _ in index.key_attributes)

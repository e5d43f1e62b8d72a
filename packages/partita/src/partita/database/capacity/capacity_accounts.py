"""The capacity account of one table or global index: what it may consume, and what it consumed.

A local index has no account: its consumption is charged to its table.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from partita.database.capacity.insights_rules import InsightsRules, Key
from partita.database.capacity.partition_sizing import on_demand_partitions_for, partitions_for
from partita.database.capacity.partition_splits import TablePartitions
from partita.database.capacity.scaling.on_demand_peaks import PreviousPeak
from partita.database.capacity.throttling_errors import KEY_RANGE, ON_DEMAND_MAXIMUM, PROVISIONED
from partita.database.capacity.token_buckets import BURST_SECONDS, TokenBucket
from partita.database.item.attribute_values import Item
from partita.database.item.key_encoding import (
    PARTITION_HASH_BYTES,
    KeyAttribute,
    key_bytes,
    keyed_partition,
    partition_hash,
)

MINUTES_KEPT = 60

Keys = tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]
"""The attributes of a partition key, and those of a sort key."""


class Entitlement(NamedTuple):
    """Units per second: those provisioned, or those that an on-demand table starts with."""

    is_on_demand: bool
    read_units: float
    write_units: float
    read_maximum: float | None = None
    write_maximum: float | None = None
    since: float = 0.0
    """The time when the units were set; units unused since then are available for a burst."""
    partitions_min: int = 1
    """The partitions that exist already: they are never merged."""

    def partitions(self, size_bytes: int = 0) -> int:
        """Returns how many partitions serve these units and store this much data."""
        needed = partitions_for(self.read_units, self.write_units, size_bytes)
        if self.is_on_demand:
            by_units = on_demand_partitions_for(self.read_units, self.write_units)
        else:
            by_units = needed.by_throughput
        return max(by_units, needed.by_storage, self.partitions_min)


class AccountSide:
    """The reads or the writes of an account."""

    __slots__ = (
        "_bucket",
        "_maximum",
        "_peak",
        "consumed",
        "is_write",
        "minutes",
        "throttled",
        "throttled_units",
        "units",
    )

    def __init__(self, is_write: bool) -> None:
        self.is_write = is_write
        self.units = 0.0
        self.consumed = 0.0
        self.throttled: defaultdict[str, int] = defaultdict(int)
        """The number of throttled requests, by the limit that they exceeded."""
        self.throttled_units = 0.0
        self.minutes: dict[int, float] = {}
        """Units consumed by minute since the epoch; minutes without consumption are missing."""
        self._bucket: TokenBucket | None = None
        self._peak: PreviousPeak | None = None
        self._maximum: TokenBucket | None = None

    def entitle(self, entitlement: Entitlement, now: float) -> None:
        units = entitlement.write_units if self.is_write else entitlement.read_units
        maximum = entitlement.write_maximum if self.is_write else entitlement.read_maximum
        self.units = units
        if maximum is None:
            self._maximum = None
        elif self._maximum is None:
            self._maximum = TokenBucket(maximum, now)
        else:
            self._maximum.change_rate(maximum, now)
        if entitlement.is_on_demand:
            if self._peak is None:
                self._peak, self._bucket = PreviousPeak(units, now), TokenBucket(units, now)
            self._peak.initial = units
        elif self._bucket is None or self._peak is not None:
            idle_seconds = max(0.0, now - entitlement.since)
            self._bucket = TokenBucket(
                units, now, burst_seconds=BURST_SECONDS, idle_seconds=idle_seconds
            )
            self._peak = None
        else:
            self._bucket.change_rate(units, now)

    def rate(self, now: float) -> float:
        """Returns the units per second that are provisioned, or that on-demand has grown to."""
        return self._peak.rate(now) if self._peak else self.units

    def entitled(self, now: float) -> float:
        """Returns the units per second that are served: `rate`, but at most the maximum that is
        configured for an on-demand table."""
        rate = self.rate(now)
        return rate if self._maximum is None else min(rate, self._maximum.rate)

    def follow_peak(self, now: float) -> bool:
        """Raise an on-demand table to twice its last peak; True if that changed anything."""
        assert self._bucket is not None
        if self._peak is None or (rate := self._peak.rate(now)) == self._bucket.rate:
            return False
        self._bucket.change_rate(rate, now)
        return True

    def refusing_limit(self, units: float, now: float) -> str | None:
        if self._maximum and not self._allows(self._maximum, units, now):
            return ON_DEMAND_MAXIMUM
        assert self._bucket is not None
        if not self._allows(self._bucket, units, now):
            # An on-demand table has partitions for twice its previous peak, so exceeding that is
            # reported as exceeding a partition.
            return KEY_RANGE if self._peak else PROVISIONED
        return None

    def _allows(self, bucket: TokenBucket, units: float, now: float) -> bool:
        return bucket.allows_write(units, now) if self.is_write else bucket.allows_read(now)

    @property
    def buckets(self) -> list[TokenBucket]:
        """All buckets that units are taken from."""
        return [bucket for bucket in (self._bucket, self._maximum) if bucket]

    def take(self, units: float) -> None:
        for bucket in self.buckets:
            bucket.take(units)

    def record(self, units: float, now: float) -> None:
        self.consumed += units
        if self._peak:
            self._peak.use(units, now)
        minute = int(now) // 60
        minutes = self.minutes
        if minute in minutes:
            minutes[minute] += units
        else:
            minutes[minute] = units
            if len(minutes) > MINUTES_KEPT:
                del minutes[min(minutes)]


class CapacityAccount:
    """The limits, consumption, partitions and insights of a table or global index."""

    def __init__(
        self,
        table_name: str,
        index_name: str | None,
        arn: str,
        keys: Keys,
        entitlement: Entitlement,
        now: float,
        key_secret: bytes = b"",
    ) -> None:
        self._keys = keys
        self._key_secret = key_secret
        self.table_name = table_name
        self.index_name = index_name
        self.arn = arn
        self.is_on_demand = entitlement.is_on_demand
        self.read = AccountSide(is_write=False)
        self.write = AccountSide(is_write=True)
        self.insights: InsightsRules | None = None
        self.partitions = TablePartitions(entitlement.partitions(), now)
        self.entitle(entitlement, now)

    def entitle(self, entitlement: Entitlement, now: float) -> None:
        self.is_on_demand = entitlement.is_on_demand
        self.read.entitle(entitlement, now)
        self.write.entitle(entitlement, now)
        self.partitions.grow(entitlement.partitions(), now)

    def follow_peak(self, is_write: bool, now: float) -> None:
        """Split partitions if an on-demand table has grown to twice its previous peak."""
        side = self.side(is_write)
        if side.follow_peak(now):
            read_units, write_units = self.read.rate(now), self.write.rate(now)
            self.partitions.grow(on_demand_partitions_for(read_units, write_units), now)

    def key_of(self, item: Item) -> Key:
        """Returns an item's key in this table or index, as insights and the console show it."""
        partition, sort = self._keys
        if sort:
            return _shown(item, partition), _shown(item, sort)
        return (_shown(item, partition),)

    def key_hash_of(self, item: Item) -> int:
        """Returns the hash of an item's partition key, as a number."""
        parts = [key_bytes(item[name]) for name, _ in self._keys[0]]
        if self._key_secret:
            keyed = keyed_partition(self._key_secret, parts)
            return int.from_bytes(keyed[:PARTITION_HASH_BYTES], "big")
        return int.from_bytes(partition_hash(b"".join(parts)), "big")

    def side(self, is_write: bool) -> AccountSide:
        return self.write if is_write else self.read

    def watch_keys(self, kinds: list[str], since: float | None) -> None:
        """Start counting keys with these kinds of rules, or stop when `since` is None.

        Counting continues if it was started at the same time.
        """
        if since is None:
            self.insights = None
        elif self.insights is None or self.insights.since != since:
            self.insights = InsightsRules(kinds, since)
        elif list(self.insights.rules()) != kinds:
            self.insights = self.insights.changed_to(kinds)


def _shown(item: Item, attributes: tuple[KeyAttribute, ...]) -> str:
    """Returns key values as people read them, separated by commas."""
    if len(attributes) == 1:
        name, kind = attributes[0]
        only: str = item[name][kind]
        return only
    return ", ".join(item[name][kind] for name, kind in attributes)

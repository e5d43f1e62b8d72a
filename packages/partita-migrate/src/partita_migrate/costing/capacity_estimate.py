"""The capacity estimate: read units, write units and storage of every table and index.

The arithmetic is that of AWS's whitepaper on migration. The sizes of the items that one request
reads are added and rounded up to 4 KB; an eventually consistent read costs half of that. Every
written item is rounded up to 1 KB, in the table and again in each index that holds it; a
transaction costs double.
"""

from __future__ import annotations

import math

from msgspec import Struct, field
from msgspec.structs import replace

from partita.database.capacity.partition_sizing import partitions_for
from partita.foundation.service_limits import READ_UNIT_BYTES, TRANSACTION_FACTOR, WRITE_UNIT_BYTES
from partita_migrate.model.design import (
    READS,
    Design,
    Entity,
    ItemAttribute,
    PatternAccess,
    SecondaryIndex,
    TableDesign,
    columns_of,
)
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join
from partita_migrate.understanding.schema.relationships import is_unique

STORED_ITEM_OVERHEAD_BYTES = 100
"""Charged for each item and each index entry (guide, "DynamoDB item sizes and formats")."""


class TableOrIndex(Struct, frozen=True, order=True):
    """A table, or one of its secondary indexes. As text: `orders` or `orders/by_customer`."""

    table: str
    index: str = ""

    def __str__(self) -> str:
        return f"{self.table}/{self.index}" if self.index else self.table


class PatternUnits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The requests, items and capacity units of one access pattern."""

    pattern: str
    calls_per_second: float
    request: str
    served_by: str
    items: float
    requests: float
    read_units: float = 0.0
    write_units: dict[str, float] = field(default_factory=dict)
    """Write units per second, by table or index."""
    items_written: float = 0.0
    """The items that one call writes, including copies, guards and index entries."""


class ResourceUnits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The capacity that one table or index needs, and the bytes that it stores."""

    table: str
    index: str | None = None
    is_local: bool = False
    items: float
    item_bytes: float
    """The 95th percentile; the mean of those when there are several types of items."""
    bytes: float
    stored_bytes: float
    """The items' bytes plus the overhead that AWS adds to each."""
    read_units: float
    write_units: float
    partitions: int
    partitions_by_size: int
    partitions_by_throughput: int


class CapacityEstimate(Struct, frozen=True, kw_only=True):
    """The whole capacity estimate of a design."""

    patterns: list[PatternUnits]
    resources: list[ResourceUnits]

    @property
    def read_units(self) -> float:
        return sum(resource.read_units for resource in self.resources)

    @property
    def write_units(self) -> float:
        return sum(resource.write_units for resource in self.resources)

    @property
    def stored_bytes(self) -> float:
        return sum(resource.stored_bytes for resource in self.resources)


def units(design: Design, patterns: list[AccessPattern], volumes: Volumes) -> CapacityEstimate:
    """Estimates what a design needs to serve the patterns at their stated rates."""
    counter = _Counter(design, volumes)
    named = {pattern.name: pattern for pattern in patterns}
    counted: list[PatternUnits] = []
    items_read: dict[str, float] = {}
    for access in design.access:
        pattern = named.get(access.pattern)
        if pattern is None:
            continue
        pattern_units = counter.count(access, pattern)
        if access.for_each:
            pattern_units = _times(
                pattern_units, counter.times(access, pattern, items_read.get(pattern.name, 1.0))
            )
        elif access.request in READS:
            items_read[pattern.name] = pattern_units.items
        counted.append(pattern_units)
    return CapacityEstimate(patterns=counted, resources=counter.resources(counted))


def _times(pattern: PatternUnits, count: float) -> PatternUnits:
    return replace(
        pattern,
        items=pattern.items * count,
        requests=pattern.requests * count,
        read_units=pattern.read_units * count,
    )


def read_units(size: float, is_consistent: bool) -> float:
    return _ceiling(size / READ_UNIT_BYTES) * (1 if is_consistent else 0.5)


def write_units(size: float) -> int:
    return _ceiling(size / WRITE_UNIT_BYTES)


def _ceiling(amount: float) -> int:
    # Rounds before it rounds up: 1000 items of 0.7 KB are 175 units of 4 KB, and a floating-point
    # error must not make them 176.
    return math.ceil(round(amount, 9))


class _Counter:
    def __init__(self, design: Design, volumes: Volumes) -> None:
        self.design = design
        self.volumes = volumes
        self.by_source: dict[str, list[tuple[TableDesign, Entity]]] = {}
        self.holders: dict[str, list[tuple[TableDesign, Entity]]] = {}
        """By source table: the items of other entities that repeat its columns."""
        for table, entity in design.entities():
            self.by_source.setdefault(entity.source, []).append((table, entity))
            for name in {
                ref.table
                for attribute in entity.attributes
                if attribute.through
                for ref in columns_of(entity, attribute)
            }:
                self.holders.setdefault(name, []).append((table, entity))

    def count(self, access: PatternAccess, pattern: AccessPattern) -> PatternUnits:
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table else None
        if table is None or entity is None:
            return self._nothing(access, pattern)
        if access.request in READS:
            return self._read(access, pattern, table, entity)
        if access.request == "TTL":
            return self._nothing(access, pattern)
        return self._write(access, pattern, table, entity)

    def times(self, access: PatternAccess, pattern: AccessPattern, read: float) -> float:
        """Returns how often a follow-up request is sent per call.

        An existence test (`keeps`) is sent for every row that was read. A lookup of missing columns
        is sent once for each different key.
        """
        if access.keeps:
            return max(read, 1.0)
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table is not None else None
        keys = self.volumes.items(entity) if entity is not None else read
        return max(min(read, pattern.items or read, keys), 1.0)

    def _nothing(self, access: PatternAccess, pattern: AccessPattern) -> PatternUnits:
        return PatternUnits(
            pattern=pattern.name,
            calls_per_second=pattern.calls_per_second,
            request=access.request,
            served_by=access.table,
            items=pattern.items,
            requests=access.requests,
        )

    # Reads.

    def _read(
        self, access: PatternAccess, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> PatternUnits:
        index = table.index(access.index) if access.index else None
        size = (
            self.volumes.index_bytes(table, index, entity)
            if index
            else self.volumes.item_bytes(entity)
        )
        items = self._items_read(access, pattern, table, index, entity)
        requests = max(access.requests, 1)
        if pattern.items > 1 and self._names_rows(pattern, entity):
            # An IN over unique keys: every item is read by its own key, and rounded up by itself.
            items = requests = pattern.items
        elif access.request == "Scan":
            # A Scan pays for everything in the table, whatever its filters let through.
            total = sum(self.volumes.items(scanned) * self.volumes.item_bytes(scanned)
                        for scanned in table.entities)  # fmt: skip
            items, size = self.volumes.items(entity), total / max(self.volumes.items(entity), 1)
        elif not access.filter and access.request == "Query":
            requests = max(requests, pattern.values)
        each = read_units(items * size / requests, pattern.is_consistent)
        total = each * requests * pattern.calls_per_second
        return PatternUnits(
            pattern=pattern.name,
            calls_per_second=pattern.calls_per_second,
            request=access.request,
            served_by=str(TableOrIndex(table.name, access.index or "")),
            items=items,
            requests=access.requests,
            read_units=total,
        )

    def _names_rows(self, pattern: AccessPattern, entity: Entity) -> bool:
        """True when one value identifies one row, so that several items mean several values
        (IN)."""
        table = self.volumes.inventory.table(pattern.table)
        refs = map(ColumnRef.parse, pattern.equality)
        columns = [ref.column for ref in refs if ref.table == pattern.table]
        is_alone = entity.source == pattern.table and not (pattern.joins or pattern.hierarchy)
        return is_alone and table is not None and is_unique(table, columns)

    def _items_read(
        self,
        access: PatternAccess,
        pattern: AccessPattern,
        table: TableDesign,
        index: SecondaryIndex | None,
        entity: Entity,
    ) -> float:
        if access.request == "GetItem":
            return 1
        items = pattern.items
        if self._is_list(table, index, entity):
            rows = self.collection_rows(table, index, entity)
            return min(rows, access.limit) if access.limit else rows
        if access.alternative:
            # The pattern's item count covers all alternatives of the OR, so it can be too high for
            # a single alternative.
            items = min(items, self.collection_rows(table, index, entity))
        if access.filter or access.first is not None:
            items = max(items, self._rows_walked(access, table, index, entity))
        return min(items, access.limit) if access.limit == 1 else items

    def _rows_walked(
        self,
        access: PatternAccess,
        table: TableDesign,
        index: SecondaryIndex | None,
        entity: Entity,
    ) -> float:
        """Returns the rows that are read for one answer.

        A collection that is filtered or sorted is read to its end. One that is already in order is
        read only up to the rows that are skipped and taken.
        """
        rows = self.collection_rows(table, index, entity)
        is_in_order = access.skips and not (access.filter or access.tested or access.sorts)
        return min(rows, access.skips + access.first) if is_in_order and access.first else rows

    def _is_list(self, table: TableDesign, index: SecondaryIndex | None, entity: Entity) -> bool:
        """True when all rows, or all rows that meet a condition, share one partition key."""
        attribute = entity.attribute((index or table).partition_key.name)
        return attribute is not None and (attribute.constant is not None or bool(attribute.first))

    def collection_rows(
        self, table: TableDesign, index: SecondaryIndex | None, entity: Entity
    ) -> float:
        """Returns the items of an entity under one partition key, as an average call meets them.

        Large collections are read more often than small ones, so the average is weighted by calls.
        """
        key = (index or table).partition_key
        attribute = entity.attribute(key.name)
        refs = columns_of(entity, attribute) if attribute else []
        if attribute is not None and self._is_list(table, index, entity):
            return self.volumes.items(entity) * (1 - self.volumes.absent_share(entity, attribute))
        columns = [ref.column for ref in refs if ref.table == entity.source]
        if not refs or len(columns) != len(refs):
            return 1.0
        skew = self.volumes.skew(entity.source, columns)
        rows_per_call = skew.rows_per_call if skew else 0.0
        return rows_per_call or self.volumes.rows_per_value(entity.source, columns)

    # Writes.

    def _write(
        self, access: PatternAccess, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> PatternUnits:
        is_together = access.request == "TransactWriteItems" or bool(access.transaction)
        factor = TRANSACTION_FACTOR if is_together else 1
        written: dict[str, float] = {}
        count = 0.0
        changed = {ColumnRef.parse(name) for name in pattern.columns}
        for home, written_entity, copies in self._touched(access, pattern, table, entity):
            amounts = self._item_writes(
                home, written_entity, changed, pattern.operation == "update", factor
            )
            for resource, amount in amounts.items():
                rate = amount * copies * pattern.items * pattern.calls_per_second
                written[resource] = written.get(resource, 0.0) + rate
                count += copies * pattern.items if amount else 0
        return PatternUnits(
            pattern=pattern.name,
            calls_per_second=pattern.calls_per_second,
            request=access.request,
            served_by=table.name,
            items=pattern.items,
            requests=access.requests,
            write_units=written,
            items_written=count,
        )

    def _touched(
        self, access: PatternAccess, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> list[tuple[TableDesign, Entity, float]]:
        """Returns what one call writes: the item, its "latest" copy, guards, and repeated columns.

        Each entry has its table, its entity, and the number of such items.
        """
        touched = [(table, entity, 1.0)]
        for home, other in self.by_source[entity.source]:
            if other is not entity and self._is_written_with(other, entity, access, pattern):
                touched.append((home, other, 1.0))
        for home, holder in self.holders.get(pattern.table, []):
            copies = self._copies(holder, pattern) if pattern.operation == "update" else 0.0
            if copies and holder.source != entity.source:
                touched.append((home, holder, copies))
        return touched

    def _is_written_with(
        self, other: Entity, entity: Entity, access: PatternAccess, pattern: AccessPattern
    ) -> bool:
        if other.is_guard:
            return access.request == "TransactWriteItems"
        if "latest" in (other.rows, entity.rows):
            return True
        # Both items hold parts of the same row: the other one is written too if it holds a changed
        # column.
        changed = {ColumnRef.parse(name) for name in pattern.columns}
        held_columns = {
            ref for attribute in other.attributes for ref in columns_of(other, attribute)
        }
        return pattern.operation != "update" or not changed or bool(changed & held_columns)

    def _copies(self, entity: Entity, pattern: AccessPattern) -> float:
        """Returns how many items of an entity repeat what an update of another table's row
        changes."""
        changed = {ColumnRef.parse(name) for name in pattern.columns}
        for attribute in entity.attributes:
            refs = [ref for ref in columns_of(entity, attribute) if ref.table == pattern.table]
            if refs and attribute.through and (not changed or changed & set(refs)):
                return self._fan_out(attribute)
        return 0.0

    def _fan_out(self, attribute: ItemAttribute) -> float:
        count = 1.0
        for text in attribute.through:
            join = parse_join(text)
            if join is not None:
                columns = [ref.column for ref in join.before]
                count *= self.volumes.rows_per_value(
                    join.before[0].table, columns, join.after[0].table
                )
        return count

    def _item_writes(
        self,
        table: TableDesign,
        entity: Entity,
        changed: set[ColumnRef],
        is_update: bool,
        factor: int,
    ) -> dict[str, float]:
        """Returns the write units of one item, by table and index.

        A transaction doubles only the table's share: index updates are not part of it.
        """
        amounts = {table.name: float(write_units(self.volumes.item_bytes(entity)) * factor)}
        for index in table.indexes:
            share = self.volumes.index_share(index, entity)
            times = self._index_writes(table, index, entity, changed) if is_update else 1
            if share and times:
                size = self.volumes.index_bytes(table, index, entity)
                name = str(TableOrIndex(table.name, index.name))
                amounts[name] = write_units(size) * share * times
        return amounts

    def _index_writes(
        self, table: TableDesign, index: SecondaryIndex, entity: Entity, changed: set[ColumnRef]
    ) -> int:
        """Returns the index writes of one update: 2 when it moves the entry (delete and put), 0 or
        1 else."""
        keys = {key.name for key in index.keys}
        touched = {
            attribute.name
            for attribute in entity.attributes
            if not changed or changed & set(columns_of(entity, attribute))
        }
        if changed and touched & keys:
            return 2
        projected = {key.name for key in table.keys} | set(index.include)
        return int(index.projection == "ALL" or bool(touched & projected))

    # Tables and indexes.

    def resources(self, counted: list[PatternUnits]) -> list[ResourceUnits]:
        reads: dict[str, float] = {}
        writes: dict[str, float] = {}
        for pattern_units in counted:
            reads[pattern_units.served_by] = (
                reads.get(pattern_units.served_by, 0.0) + pattern_units.read_units
            )
            for name, amount in pattern_units.write_units.items():
                writes[name] = writes.get(name, 0.0) + amount
        return [
            self._resource(table, index, reads, writes)
            for table in self.design.tables
            for index in (None, *table.indexes)
        ]

    def _resource(
        self,
        table: TableDesign,
        index: SecondaryIndex | None,
        reads: dict[str, float],
        writes: dict[str, float],
    ) -> ResourceUnits:
        items = size = 0.0
        for entity in table.entities:
            share = self.volumes.index_share(index, entity) if index else 1.0
            if not share:
                continue
            count = self.volumes.items(entity) * share
            each = (
                self.volumes.index_bytes(table, index, entity)
                if index
                else self.volumes.item_bytes(entity)
            )
            items += count
            size += count * each
        name = str(TableOrIndex(table.name, index.name if index else ""))
        read, write = reads.get(name, 0.0), writes.get(name, 0.0)
        stored = size + items * STORED_ITEM_OVERHEAD_BYTES
        sizing = partitions_for(read, write, size)
        return ResourceUnits(
            table=table.name,
            index=index.name if index else None,
            is_local=index is not None and index.kind == "local",
            items=items,
            item_bytes=size / items if items else 0.0,
            bytes=size,
            stored_bytes=stored,
            read_units=read,
            write_units=write,
            partitions=sizing.partitions,
            partitions_by_size=sizing.by_storage,
            partitions_by_throughput=sizing.by_throughput,
        )

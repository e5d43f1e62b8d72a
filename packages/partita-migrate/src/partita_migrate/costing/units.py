"""Read and write units that the patterns need of each table and index, and what these store.

The arithmetic is the whitepaper's: sizes of what one request reads are added, then rounded up to
4 KB; every written item is rounded up to 1 KB, in the table and in each index that it is in; an
eventually consistent read is half, a transaction double.
"""

from __future__ import annotations

import math

from msgspec import Struct, field
from msgspec.structs import replace

from partita.database.capacity.sizing import partitions_for
from partita.limits import READ_UNIT_BYTES, TRANSACTION_FACTOR, WRITE_UNIT_BYTES
from partita_migrate.model.design import (
    READS,
    Access,
    Attribute,
    Design,
    Entity,
    SecondaryIndex,
    TableDesign,
    columns_of,
)
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import Ref, parse_join
from partita_migrate.understanding.schema.relationships import is_unique

STORED_ITEM_OVERHEAD_BYTES = 100
"""Charged for each item and each index entry (guide, "DynamoDB item sizes and formats")."""


class Resource(Struct, frozen=True, order=True):
    """A table, or an index of it."""

    table: str
    index: str = ""

    def __str__(self) -> str:
        return f"{self.table}/{self.index}" if self.index else self.table


class PatternUnits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one access pattern costs a second."""

    pattern: str
    calls_per_second: float
    request: str
    served_by: str
    items: float
    requests: float
    read_units: float = 0.0
    write_units: dict[str, float] = field(default_factory=dict)
    """By table and index."""
    items_written: float = 0.0
    """By one call, with copies, guards and index entries."""


class ResourceUnits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one table or index needs and stores."""

    table: str
    index: str | None = None
    is_local: bool = False
    items: float
    item_bytes: float
    """At the 95th percentile; with several types of items, the mean of theirs."""
    bytes: float
    stored_bytes: float
    """With what the service adds to each item."""
    read_units: float
    write_units: float
    partitions: int
    partitions_by_size: int
    partitions_by_throughput: int


class Units(Struct, frozen=True, kw_only=True):
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


def units(design: Design, patterns: list[AccessPattern], volumes: Volumes) -> Units:
    counter = _Counter(design, volumes)
    named = {pattern.name: pattern for pattern in patterns}
    counted: list[PatternUnits] = []
    found: dict[str, float] = {}
    for access in design.access:
        pattern = named.get(access.pattern)
        if pattern is None:
            continue
        one = counter.count(access, pattern)
        if access.for_each:
            one = _times(one, counter.times(access, pattern, found.get(pattern.name, 1.0)))
        elif access.request in READS:
            found[pattern.name] = one.items
        counted.append(one)
    return Units(patterns=counted, resources=counter.resources(counted))


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
    # 1000 items of 0.7 KB are 175 units of 4 KB, not a rounding error more.
    return math.ceil(round(amount, 9))


class _Counter:
    def __init__(self, design: Design, volumes: Volumes) -> None:
        self.design = design
        self.volumes = volumes
        self.by_source: dict[str, list[tuple[TableDesign, Entity]]] = {}
        self.holders: dict[str, list[tuple[TableDesign, Entity]]] = {}
        """Entities with copies of a table's columns."""
        for table, entity in design.entities():
            self.by_source.setdefault(entity.source, []).append((table, entity))
            for name in {
                ref.table
                for attribute in entity.attributes
                if attribute.through
                for ref in columns_of(entity, attribute)
            }:
                self.holders.setdefault(name, []).append((table, entity))

    def count(self, access: Access, pattern: AccessPattern) -> PatternUnits:
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table else None
        if table is None or entity is None:
            return self._nothing(access, pattern)
        if access.request in READS:
            return self._read(access, pattern, table, entity)
        if access.request == "TTL":
            return self._nothing(access, pattern)
        return self._write(access, pattern, table, entity)

    def times(self, access: Access, pattern: AccessPattern, read: float) -> float:
        """How often a request is sent for what another one has read: for every row among which it
        chooses, or once for each key that the rows of the answer lack something of."""
        if access.keeps:
            return max(read, 1.0)
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table is not None else None
        keys = self.volumes.items(entity) if entity is not None else read
        return max(min(read, pattern.items or read, keys), 1.0)

    def _nothing(self, access: Access, pattern: AccessPattern) -> PatternUnits:
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
        self, access: Access, pattern: AccessPattern, table: TableDesign, entity: Entity
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
            # As many keys as items: each is read, and rounded up, by itself.
            items = requests = pattern.items
        elif access.request == "Scan":
            # Everything that the table holds, whatever passes the filters.
            total = sum(self.volumes.items(one) * self.volumes.item_bytes(one)
                        for one in table.entities)  # fmt: skip
            items, size = self.volumes.items(entity), total / max(self.volumes.items(entity), 1)
        elif not access.filter and access.request == "Query":
            requests = max(requests, pattern.values)
        each = read_units(items * size / requests, pattern.is_consistent)
        total = each * requests * pattern.calls_per_second
        return PatternUnits(
            pattern=pattern.name,
            calls_per_second=pattern.calls_per_second,
            request=access.request,
            served_by=str(Resource(table.name, access.index or "")),
            items=items,
            requests=access.requests,
            read_units=total,
        )

    def _names_rows(self, pattern: AccessPattern, entity: Entity) -> bool:
        """Whether one value names one row: then several items are of several values (IN)."""
        table = self.volumes.inventory.table(pattern.table)
        given = map(Ref.parse, pattern.equality)
        columns = [ref.column for ref in given if ref.table == pattern.table]
        is_alone = entity.source == pattern.table and not (pattern.joins or pattern.hierarchy)
        return is_alone and table is not None and is_unique(table, columns)

    def _items_read(
        self,
        access: Access,
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
            # What all alternatives find together is no measure of one.
            items = min(items, self.collection_rows(table, index, entity))
        if access.filter or access.first is not None:
            items = max(items, self._rows_walked(access, table, index, entity))
        return min(items, access.limit) if access.limit == 1 else items

    def _rows_walked(
        self, access: Access, table: TableDesign, index: SecondaryIndex | None, entity: Entity
    ) -> float:
        """A collection that is filtered or sorted is read whole; of one in order, what is skipped
        and what is taken."""
        rows = self.collection_rows(table, index, entity)
        is_in_order = access.skips and not (access.filter or access.tested or access.sorts)
        return min(rows, access.skips + access.first) if is_in_order and access.first else rows

    def _is_list(self, table: TableDesign, index: SecondaryIndex | None, entity: Entity) -> bool:
        """Whether one partition key has all rows, or all that a condition holds for."""
        attribute = entity.attribute((index or table).partition_key.name)
        return attribute is not None and (attribute.constant is not None or bool(attribute.first))

    def collection_rows(
        self, table: TableDesign, index: SecondaryIndex | None, entity: Entity
    ) -> float:
        """Items of an entity under one partition key, as a call finds them: large collections are
        asked for more often than small ones."""
        key = (index or table).partition_key
        attribute = entity.attribute(key.name)
        refs = columns_of(entity, attribute) if attribute else []
        if attribute is not None and self._is_list(table, index, entity):
            return self.volumes.items(entity) * (1 - self.volumes.absent_share(entity, attribute))
        columns = [ref.column for ref in refs if ref.table == entity.source]
        if not refs or len(columns) != len(refs):
            return 1.0
        skew = self.volumes.skew(entity.source, columns)
        found = skew.rows_per_call if skew else 0.0
        return found or self.volumes.rows_per_value(entity.source, columns)

    # Writes.

    def _write(
        self, access: Access, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> PatternUnits:
        is_together = access.request == "TransactWriteItems" or bool(access.transaction)
        factor = TRANSACTION_FACTOR if is_together else 1
        written: dict[str, float] = {}
        count = 0.0
        changed = {Ref.parse(name) for name in pattern.columns}
        for home, one, copies in self._touched(access, pattern, table, entity):
            amounts = self._item_writes(home, one, changed, pattern.operation == "update", factor)
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
        self, access: Access, pattern: AccessPattern, table: TableDesign, entity: Entity
    ) -> list[tuple[TableDesign, Entity, float]]:
        """The items that one call writes: its own, the copy of the latest, guards, copies."""
        found = [(table, entity, 1.0)]
        for home, one in self.by_source[entity.source]:
            if one is not entity and self._is_written_with(one, entity, access, pattern):
                found.append((home, one, 1.0))
        for home, one in self.holders.get(pattern.table, []):
            copies = self._copies(one, pattern) if pattern.operation == "update" else 0.0
            if copies and one.source != entity.source:
                found.append((home, one, copies))
        return found

    def _is_written_with(
        self, one: Entity, entity: Entity, access: Access, pattern: AccessPattern
    ) -> bool:
        if one.is_guard:
            return access.request == "TransactWriteItems"
        if "latest" in (one.rows, entity.rows):
            return True
        # Another part of the same row.
        changed = {Ref.parse(name) for name in pattern.columns}
        held = {ref for attribute in one.attributes for ref in columns_of(one, attribute)}
        return pattern.operation != "update" or not changed or bool(changed & held)

    def _copies(self, entity: Entity, pattern: AccessPattern) -> float:
        """How many items of an entity hold what an update of another table's row changes."""
        changed = {Ref.parse(name) for name in pattern.columns}
        for attribute in entity.attributes:
            refs = [ref for ref in columns_of(entity, attribute) if ref.table == pattern.table]
            if refs and attribute.through and (not changed or changed & set(refs)):
                return self._fan_out(attribute)
        return 0.0

    def _fan_out(self, attribute: Attribute) -> float:
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
        changed: set[Ref],
        is_update: bool,
        factor: int,
    ) -> dict[str, float]:
        """Write units of one item, by table and index; a transaction doubles the table's only."""
        amounts = {table.name: float(write_units(self.volumes.item_bytes(entity)) * factor)}
        for index in table.indexes:
            share = self.volumes.index_share(index, entity)
            times = self._index_writes(table, index, entity, changed) if is_update else 1
            if share and times:
                size = self.volumes.index_bytes(table, index, entity)
                name = str(Resource(table.name, index.name))
                amounts[name] = write_units(size) * share * times
        return amounts

    def _index_writes(
        self, table: TableDesign, index: SecondaryIndex, entity: Entity, changed: set[Ref]
    ) -> int:
        """An update that moves an entry deletes one and puts another."""
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
        for one in counted:
            reads[one.served_by] = reads.get(one.served_by, 0.0) + one.read_units
            for name, amount in one.write_units.items():
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
        name = str(Resource(table.name, index.name if index else ""))
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

"""Suggests services beside the tables: a search service, a cache, a bucket, colder tables.

A test of the tables cannot prove these. Each is marked "outside" and says what it costs.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from partita.foundation.service_limits import (
    GB,
    ITEM_BYTES_MAX,
    ITEM_COLLECTION_BYTES_MAX,
    KB,
    PARTITION_READ_UNITS,
)
from partita_migrate.costing.amounts import amount
from partita_migrate.costing.capacity_estimate import PatternUnits, units
from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.pattern_usage import DATES, WRITES
from partita_migrate.model.design import Design, Technique, columns_of
from partita_migrate.understanding.schema.column_refs import ColumnRef

LARGE_VALUE_BYTES = 100 * KB
"""The value size from which a bucket is suggested: a quarter of an item."""
HOT_SHARE = 0.5
"""The share of a partition's read units from which a cache pays off."""
COLD_BYTES = 10 * GB
FULL_SHARE = 0.5
"""The share of an item collection's limit from which a split is suggested."""
SEARCHES = (" LIKE ", " ILIKE ", "MATCH ", "TO_TSVECTOR", "@@", " REGEXP ", " SIMILAR TO ")
OUTSIDE = "outside"


def techniques_beside(design: Design, inputs: DesignInputs) -> list[Technique]:
    looks = (
        _searches,
        _hot_reads,
        _large_values,
        _periods,
        _collections,
        _locks,
        _transactions,
        _adjacency,
    )
    return [technique for look in looks for technique in look(design, inputs)]


def _searches(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    unserved = {pattern.pattern for pattern in design.unserved}
    for pattern in inputs.patterns:
        text = (pattern.statement or "").upper()
        if pattern.name not in unserved or not any(word in text for word in SEARCHES):
            continue
        rows, size = inputs.volumes.rows(pattern.table), inputs.volumes.row_bytes(pattern.table)
        yield Technique(
            name="search service beside the table",
            patterns=[pattern.name],
            why="No key finds words inside a text: a consumer of the stream indexes"
            f" {pattern.table} in a search service, which returns keys, and BatchGetItem reads the"
            " items.",
            cost=f"{OUTSIDE}: the service's own bill for {rows * size / GB:,.3f} GB,"
            f" {amount(inputs.usage.rows_written_per_second(pattern.table), 3)} changes and"
            f" {amount(pattern.calls_per_second, 3)} searches a second",
            limit="results lag behind the table as far as the consumer lags behind the stream",
            next_best=f"a Scan with contains(): {rows * size / (8 * KB):,.1f} read units a call",
        )


def _hot_reads(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    counted: dict[str, PatternUnits] = {}
    for pattern_units in units(design, inputs.patterns, inputs.volumes).patterns:
        # Only the first request of a pattern reads a single key. Follow-up requests go to many
        # keys.
        counted.setdefault(pattern_units.pattern, pattern_units)
    for pattern in inputs.patterns:
        needed = counted.get(pattern.name)
        columns = [ColumnRef.parse(name).column for name in pattern.equality]
        skew = inputs.volumes.skew(pattern.table, columns)
        if needed is None or pattern.operation in WRITES or pattern.is_consistent:
            continue
        hot = needed.read_units * (skew.top_share if skew else 0.0 if columns else 1.0)
        if hot > PARTITION_READ_UNITS * HOT_SHARE:
            yield Technique(
                name="cache for hot reads",
                patterns=[pattern.name],
                why=f"One key is read with about {hot:,.0f} units a second, and a partition"
                f" delivers {PARTITION_READ_UNITS:,}; DAX, or a cache in the application, answers"
                " repeated reads.",
                cost=f"{OUTSIDE}: nodes by the hour; [estimate] dax_node and dax_nodes price them",
                limit="answers can be as old as the cache's entries; writes must go through the"
                " cache",
                next_best="copies of the item under several keys, one of them read at random:"
                " every write is repeated for each copy",
            )


def _large_values(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    for table in inputs.volumes.inventory.tables:
        for column in table.columns:
            measured = inputs.volumes.column(ColumnRef(table.name, column.name))
            if measured is None or measured.bytes_max < LARGE_VALUE_BYTES:
                continue
            yield Technique(
                name="large values in a bucket",
                patterns=[
                    pattern.name for pattern in inputs.patterns if pattern.table == table.name
                ],
                why=f"{table.name}.{column.name} has values of {measured.bytes_max / KB:,.0f} KB:"
                " an object in a bucket, with its address as the attribute, keeps items small.",
                cost=f"{OUTSIDE}: one more request for each read and write of the value; the item"
                f" costs {measured.bytes_max / KB:,.0f} fewer write units",
                limit=f"the object and the item are not one transaction; an item has at most"
                f" {ITEM_BYTES_MAX // KB} KB",
                next_best="the value compressed, or in parts under keys of their own",
            )


def _periods(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    for analysis in inputs.volumes.analysis.tables:
        size = inputs.volumes.rows(analysis.table) * inputs.volumes.row_bytes(analysis.table)
        if not analysis.growth_rows_per_day or size < COLD_BYTES:
            continue
        if any(pattern.operation == "update" and pattern.table == analysis.table
               for pattern in inputs.patterns):  # fmt: skip
            continue
        yield Technique(
            name="one table for each period",
            patterns=[
                pattern.name for pattern in inputs.patterns if pattern.table == analysis.table
            ],
            why=f"{analysis.table} only grows, by {analysis.growth_rows_per_day:,.0f} rows a day:"
            " use a table for each month, the newest with the capacity for writes, older ones in"
            " the Infrequent Access class.",
            cost=f"storage of {size / GB:,.0f} GB at the price of Standard-IA; `estimate` has the"
            " break-even",
            limit="a read across a boundary reads two tables; 2,500 tables per account",
            next_best="one table with a TTL, which deletes old items at no cost",
        )


def _collections(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    """Suggests a split of collections that come close to the limit for tables with a local
    index."""
    volumes = inputs.volumes
    for table, entity in design.entities():
        attribute = entity.attribute(table.partition_key.name)
        refs = columns_of(entity, attribute) if attribute is not None else []
        if entity.is_guard or not refs or any(ref.table != entity.source for ref in refs):
            continue
        names = [ref.column for ref in refs]
        skew = volumes.skew(entity.source, names)
        size = (
            (skew.top_share if skew else 0.0) * volumes.items(entity) * volumes.item_bytes(entity)
        )
        # An estimate: the most frequent value's share of the sample, of all items' bytes.
        if size < ITEM_COLLECTION_BYTES_MAX * FULL_SHARE:
            continue
        source = volumes.inventory.table(entity.source)
        dates = [column.name for column in source.columns if column.kind in DATES] if source else []
        part = f"the month of {dates[0]}" if dates else "a running number"
        yield Technique(
            name="item collections cut before a limit",
            patterns=[access.pattern for access in design.access if access.entity == entity.name],
            place=table.name,
            why=f"The most frequent {' and '.join(names)} would have {size / GB:,.1f} GB of"
            f" {entity.name}: {part} after it in the partition key starts a new collection before"
            f" {ITEM_COLLECTION_BYTES_MAX // GB} GB; change the template in `model.toml`.",
            cost="no more units; a read across a boundary reads one partition for each part",
            limit=f"{ITEM_COLLECTION_BYTES_MAX // GB} GB under one partition key with a local"
            " index; without one, pages of 1 MB and the units of a partition",
            next_best="global indexes instead of local ones: the collection can then grow, and"
            " each index costs its own writes",
        )


def _locks(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    for pattern in inputs.patterns:
        if "FOR UPDATE" not in (pattern.statement or "").upper():
            continue
        yield Technique(
            name="optimistic locking",
            patterns=[pattern.name],
            why=f"The source locks rows of {pattern.table} while the application decides. Instead,"
            " read the item, and write it on condition that its version number is still the one"
            " that was read; each write adds one to the number.",
            cost="no more units; a write that loses is charged and has to be sent again",
            limit="many writers of one item retry often; a transaction takes at most 100 items",
            next_best="a lock item with a TTL: two more writes for each change",
        )


def _transactions(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    named: dict[str, list[str]] = {}
    for pattern in inputs.patterns:
        if pattern.transaction:
            named.setdefault(pattern.transaction, []).append(pattern.name)
    for name, patterns in named.items():
        both = [access for access in design.access if access.pattern in patterns]
        single = [replace(access, transaction="") for access in both]
        together, alone = (
            units(replace(design, access=requests), inputs.patterns, inputs.volumes).write_units
            for requests in (both, single)
        )
        yield Technique(
            name="transaction",
            patterns=patterns,
            place=", ".join(dict.fromkeys(access.table for access in both)),
            why=f"{name!r}: {' and '.join(map(repr, patterns))} are written together or not at all,"
            " by one TransactWriteItems.",
            cost=f"{amount(together, 3)} write units a second",
            limit="100 items and 4 MB; of two transactions on one item at the same time, one is"
            " refused and has to be sent again",
            next_best=f"one request after the other: {amount(alone, 3)} write units a second, and a"
            " repair of half-finished writes",
        )


def _adjacency(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    """Names the adjacency list: both directions of a many-to-many relationship in one table."""
    for table, entity in design.entities():
        if design.kind != "single-table" or entity.is_guard:
            continue
        if entity.source not in inputs.schema.tables or not inputs.schema.sides(entity.source):
            continue
        used = [access for access in design.access if access.entity == entity.name and access.index]
        if not used:
            continue
        yield Technique(
            name="adjacency list",
            patterns=list(dict.fromkeys(access.pattern for access in used)),
            place=f"{table.name}, {used[0].index}",
            why=f"Each row of {entity.source} is an edge under the key of one side; the index has"
            " the other side first.",
            cost=f"one more write in the index for each edge,"
            f" {amount(inputs.usage.rows_written_per_second(entity.source), 3)} units a second",
            limit="an edge that repeats columns of a side must be updated with them",
            next_best="a set of keys in the items of one side: only one direction, at most 400 KB",
        )

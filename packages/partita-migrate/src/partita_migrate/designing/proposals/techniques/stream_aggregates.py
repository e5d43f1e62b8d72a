"""Counts and sums that a Lambda function keeps up to date from the table's stream.

The design itself reads the rows under an aggregate, and `test` compares that. Where one call reads
many rows, an item per group is cheaper, so the design also proposes a function that maintains such
items. The function adds what each change adds. In the same transaction it records the number of the
change, so that a record that is delivered twice counts once. A group that changes more often than
one item can be written is sharded over several items, which the reader adds up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from string import Template

from sqlglot import exp

from partita.foundation.service_limits import (
    PARTITION_WRITE_UNITS,
    READ_UNIT_BYTES,
    TRANSACTION_FACTOR,
)
from partita_migrate.costing.amounts import amount
from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.keys.index_plans import WRITE_UNIT_IN_READ_UNITS
from partita_migrate.designing.proposals.pattern_usage import DATES, KEY_LOAD
from partita_migrate.model.design import Design, Entity, PatternAccess, Technique, type_attribute
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.literal_values import fold_of
from partita_migrate.understanding.statements.pattern_statements import PatternStatements
from partita_migrate.understanding.statements.resolved_statements import (
    NotExact,
    Parameter,
    ResolvedQuery,
)

READ_UNITS = 0.5
"""Reads of one item of at most 4 KB, eventually consistent."""
CHANGE_UNITS = 2 * TRANSACTION_FACTOR
"""The update of the group's item and the record of the change, in one transaction."""
NAME = "aggregate kept by a stream's consumer"
FUNCTION = Template('''\
"""Keeps $what of $entity, from the stream (NEW_AND_OLD_IMAGES) of the table $table.

Written by `partita migrate model`. Create the table $aggregates with the partition key "key" (S)
and a TTL on "expires". To read a group, use $read; encode each value with
urllib.parse.quote(text, safe="").
"""

import time
import zlib
from decimal import Decimal
from urllib.parse import quote

import boto3

TABLE = "$aggregates"
GROUP = $group
SUMS = $sums
SHARDS = $shards
"""The number of items that share the changes of one group."""
KEPT_SECONDS = 2 * 86_400
"""Longer than the 24 hours in which a stream can deliver a record again."""

dynamodb = boto3.client("dynamodb")


def handler(event, context):
    for record in event["Records"]:
        count(record["eventID"], record["dynamodb"])


def count(number, change):
    groups = {}
    for sign, image in ((-1, "OldImage"), (1, "NewImage")):
        item = change.get(image)
        if item is None or item.get("$type_name", {}).get("S") != "$entity":
            continue
        if any(name not in item for name in GROUP):
            continue
        key = "#".join(["$entity", *(text_of(item[name]) for name in GROUP)])
        if SHARDS > 1:
            key += f"#{zlib.crc32(number.encode()) % SHARDS}"
        added = groups.setdefault(key, {})
        added["rows"] = added.get("rows", 0) + sign
        for name in SUMS:
            if name in item:
                added["sum_" + name] = added.get("sum_" + name, 0) + sign * number_of(item[name])
    updates = [update(key, added) for key, added in groups.items() if any(added.values())]
    if not updates:
        return
    seen = {
        "TableName": TABLE,
        "Item": {"key": {"S": "#seen#" + number},
                 "expires": {"N": str(int(time.time()) + KEPT_SECONDS)}},
        "ConditionExpression": "attribute_not_exists(#key)",
        "ExpressionAttributeNames": {"#key": "key"},
    }
    try:
        dynamodb.transact_write_items(TransactItems=[{"Put": seen}, *updates])
    except dynamodb.exceptions.TransactionCanceledException as error:
        if error.response["CancellationReasons"][0]["Code"] != "ConditionalCheckFailed":
            raise


def text_of(value):
    return quote(str(next(iter(value.values()))), safe="")


def number_of(value):
    return Decimal(value["N"])


def update(key, added):
    names = {f"#n{place}": name for place, name in enumerate(added)}
    values = {f":v{place}": {"N": str(amount)} for place, amount in enumerate(added.values())}
    pairs = ", ".join(f"#n{place} :v{place}" for place in range(len(added)))
    return {
        "Update": {
            "TableName": TABLE,
            "Key": {"key": {"S": key}},
            "UpdateExpression": f"ADD {pairs}",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
    }
''')  # fmt: skip


@dataclass(frozen=True)
class StreamAggregate:
    """An aggregate of one pattern that an item per group could hold."""

    pattern: AccessPattern
    table: str
    entity: Entity
    type_name: str
    group: list[str]
    """Attributes whose values identify a group."""
    columns: list[str]
    """The source's columns of those attributes."""
    sums: list[str]
    shards: int = 1

    @property
    def file(self) -> str:
        return f"{re.sub(r'[^a-z0-9]+', '_', self.pattern.name.lower()).strip('_')}.py"

    @property
    def read_units(self) -> float:
        """Read units of one call."""
        return READ_UNITS * self.shards

    def function(self) -> str:
        """Returns the source of the Lambda function."""
        named = "#".join([self.entity.name, *(f"<{name}>" for name in self.group)])
        read = f'a GetItem of "{named}"'
        if self.shards > 1:
            read = f'the sum of the items "{named}#0" to "{named}#{self.shards - 1}"'
        counted = ["COUNT(*)", *(f"SUM({name})" for name in self.sums)]
        return FUNCTION.substitute(
            what=" and ".join(counted),
            entity=self.entity.name,
            table=self.table,
            aggregates=f"{self.table}_aggregates",
            read=read,
            shards=self.shards,
            group=repr(self.group),
            sums=repr(self.sums),
            type_name=self.type_name,
        )


def kept_aggregates(design: Design, inputs: DesignInputs) -> Iterator[StreamAggregate]:
    """Yields the aggregates that cost less when they are kept than when the rows are read."""
    for candidate in _possible(design, inputs):
        aggregate = replace(candidate, shards=_shards(inputs, candidate))
        kept = aggregate.read_units * aggregate.pattern.calls_per_second
        kept += _write_units(inputs, aggregate) * WRITE_UNIT_IN_READ_UNITS
        if kept < _read_units(inputs, aggregate) * aggregate.pattern.calls_per_second:
            yield aggregate


def _write_units(inputs: DesignInputs, aggregate: StreamAggregate) -> float:
    """Returns write units per second: a transaction of two items for each change."""
    return CHANGE_UNITS * inputs.usage.rows_written_per_second(aggregate.entity.source)


def _hottest_units(inputs: DesignInputs, aggregate: StreamAggregate) -> float:
    """Returns the write units per second of the group that changes most."""
    volumes, table = inputs.volumes, aggregate.entity.source
    # Rows written now carry the current date: with a group by date, all changes hit one group.
    is_current = all(volumes.kind(ColumnRef(table, name)) in DATES for name in aggregate.columns)
    skew = None if is_current else volumes.skew(table, aggregate.columns)
    share = skew.top_share if skew is not None else 1.0
    return (
        TRANSACTION_FACTOR * inputs.usage.rows_written_per_second(aggregate.entity.source) * share
    )


def _shards(inputs: DesignInputs, aggregate: StreamAggregate) -> int:
    units = _hottest_units(inputs, aggregate)
    is_hot = units > PARTITION_WRITE_UNITS
    return math.ceil(units / (PARTITION_WRITE_UNITS * KEY_LOAD)) if is_hot else 1


def _read_units(inputs: DesignInputs, aggregate: StreamAggregate) -> float:
    """Returns the read units of one call that reads the rows instead."""
    size = max(aggregate.pattern.items, 1.0) * inputs.volumes.item_bytes(aggregate.entity)
    return max(math.ceil(size / READ_UNIT_BYTES), 1) / 2


def _possible(design: Design, inputs: DesignInputs) -> Iterator[StreamAggregate]:
    statements = PatternStatements(SchemaLookup(inputs.volumes.inventory))
    served: dict[str, PatternAccess] = {}
    for access in design.access:
        served.setdefault(access.pattern, access)
    for pattern in inputs.patterns:
        first = served.get(pattern.name)
        try:
            query = statements.of(pattern)
        except NotExact:
            continue
        if first is not None and isinstance(query, ResolvedQuery):
            aggregate = _kept(design, pattern, query, first)
            if aggregate is not None and not _is_folded(inputs, query):
                yield aggregate


def _is_folded(inputs: DesignInputs, query: ResolvedQuery) -> bool:
    """True when a case-insensitive comparison would merge values that an item's key keeps apart."""
    table = inputs.volumes.inventory.table(query.table)
    tested = {test.ref.column for test in query.tests}
    columns = table.columns if table is not None else []
    dialect = inputs.volumes.inventory.dialect
    return any(fold_of(column, dialect) for column in columns if column.name in tested) or any(
        test.form for test in query.tests
    )


def _kept(
    design: Design, pattern: AccessPattern, query: ResolvedQuery, access: PatternAccess
) -> StreamAggregate | None:
    """Returns the aggregate of a query that counts or sums rows of one table with given values.

    None for everything else, such as ranges, joins or OR.
    """
    table = design.table(access.table)
    entity = table.entity(access.entity) if table is not None else None
    kind = type_attribute(table) if table is not None else None
    tree = query.tree
    if table is None or entity is None or kind is None or not isinstance(tree, exp.Select):
        return None
    if query.finish != "counts or sums the rows" or query.joins:
        return None
    if (
        query.alternatives
        or query.existences
        or any(
            not test.is_fixing or not isinstance(test.values[0], Parameter) for test in query.tests
        )
    ):
        return None
    names = {
        ColumnRef.parse(attribute.column): attribute.name
        for attribute in entity.attributes
        if attribute.column and not attribute.through
    }
    sums: list[str] = []
    for expression in tree.expressions:
        node = expression.this if isinstance(expression, exp.Alias) else expression
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            continue
        is_sum = isinstance(node, exp.Sum) and isinstance(node.this, exp.Column)
        name = names.get(ColumnRef(query.table, node.this.name)) if is_sum else None
        if name is None:
            return None
        sums.append(name)
    group = [names.get(test.ref) for test in query.tests]
    if None in group:
        return None
    return StreamAggregate(
        pattern=pattern,
        table=table.name,
        entity=entity,
        type_name=kind,
        group=[name for name in group if name is not None],
        columns=[test.ref.column for test in query.tests],
        sums=sums,
    )


def aggregate_techniques(design: Design, inputs: DesignInputs) -> Iterator[Technique]:
    for aggregate in kept_aggregates(design, inputs):
        subject = "One item holds" if aggregate.shards == 1 else f"{aggregate.shards} items hold"
        written = _write_units(inputs, aggregate)
        yield Technique(
            name=NAME,
            patterns=[aggregate.pattern.name],
            why=(
                f"{subject} the figures of each {' and '.join(aggregate.group) or 'table'};"
                f" functions/{design.kind}/{aggregate.file} keeps them up to date from the"
                " stream. It stands beside the design: `test` proves the rows under the figures,"
                " not the function."
            ),
            cost=(
                f"{amount(aggregate.read_units)} read units a call, and {amount(written)} write"
                " units a second for the consumer's transactions"
            ),
            limit=(
                f"{PARTITION_WRITE_UNITS:,} write units a second for one item; the group that"
                f" changes most needs {amount(_hottest_units(inputs, aggregate), 3)}. The figures"
                " lag behind the table as far as the consumer lags behind the stream, and changes"
                " that it has not read within 24 hours are lost to them"
            ),
            next_best=(
                f"reading the rows: {amount(_read_units(inputs, aggregate), 3)} read units a call,"
                " and always up to date"
            ),
        )

"""Makes items from rows, and rows from items: the one function that every stage uses.

A row maps column names to what `attribute_value` made of their values; NULL columns are missing.
Rows of other tables come from `Rows.matching`. The definition of an attribute is compiled once into
a function of a row, because items are made by the million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, timedelta
from decimal import Decimal
from typing import NamedTuple, Protocol
from zlib import crc32

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import LATEST, Entity, ItemAttribute
from partita_migrate.model.items.row_conditions import parse_condition
from partita_migrate.model.keys.key_formats import Written, field_writer, moment_of, plain_text
from partita_migrate.model.keys.key_templates import (
    PATH,
    ROOT,
    SEPARATOR,
    SHARD,
    escaped,
    filled,
    template_fields,
    template_parts,
)
from partita_migrate.understanding.schema.column_refs import (
    ColumnRef,
    ForeignKeyJoin,
    parse_join,
    qualified,
)

SETS = ("SS", "NS", "BS")

Chain = dict[str, Item]
"""The rows that a list of foreign keys leads to, by table. If a table is met twice, its last
row."""
Chains = dict[tuple[str, ...], list[Chain]]
"""The chains of one row, by the foreign keys that were followed. Attributes of one item share
them."""
Make = Callable[[Item, Chains], AttributeValue | None]
"""Computes an attribute's value for the item of a row."""
Chained = Callable[[Item, Chains], list[Chain]]
"""Follows a list of foreign keys from a row."""


class RowLookup(Protocol):
    """Looks up rows of the source, for items that take columns from other tables."""

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Iterable[Item]:
        """Returns the rows of a table that have these values in these columns."""


class EntityPlan(NamedTuple):
    """The compiled definition of an entity."""

    entity: Entity
    attributes: list[tuple[str, Make, bool]]
    """The name, the function, and whether the item does not exist without the attribute."""
    unless: list[Chained]
    """If one of these leads to a row, the item does not exist."""


class ItemMaker:
    """Makes the items of rows. The shard of a row is chosen by its table's entry in
    `primary_keys`."""

    def __init__(self, rows: RowLookup, primary_keys: Mapping[str, Sequence[str]]) -> None:
        self.rows = rows
        self.primary_keys = primary_keys
        self._plans: dict[int, EntityPlan] = {}
        self._makes: dict[tuple[int, int], tuple[Entity, ItemAttribute, Make]] = {}
        """By id, because definitions have no hash. The entry keeps the definition alive, so that
        its id is not used again."""

    def item(self, entity: Entity, row: Item) -> Item | None:
        """Returns the item that a row becomes, or None if the row has no item of this type."""
        # Making an item runs once for each row of the source, so the design is compiled to closures
        # first.
        plan = self._plans.get(id(entity)) or self._plan(entity)
        if entity.rows == LATEST and not self._is_latest(entity, row):
            return None
        item: Item = {}
        chains: Chains = {}
        if any(leads_on(row, chains) for leads_on in plan.unless):
            return None
        for name, make, is_required in plan.attributes:
            value = make(row, chains)
            if value is not None:
                item[name] = value
            # Only the value of a guard is required: without it there is nothing to keep unique.
            elif is_required:
                return None
        return item

    def value(self, entity: Entity, attribute: ItemAttribute, row: Item) -> AttributeValue | None:
        """Returns None when all columns of the attribute are NULL, or its condition does not
        hold."""
        return self._make(entity, attribute)(row, {})

    def chains(self, entity: Entity, attribute: ItemAttribute, row: Item) -> list[Chain]:
        """Returns the row itself, or the rows that the attribute's foreign keys lead to."""
        return self._chained(entity.source, attribute.through)(row, {})

    # Compiling the definitions.

    def _plan(self, entity: Entity) -> EntityPlan:
        attributes = [
            (
                attribute.name,
                self._make(entity, attribute),
                entity.is_guard and bool(attribute.template),
            )
            for attribute in entity.attributes
        ]
        unless = [self._chained(entity.source, way) for way in entity.unless]
        self._plans[id(entity)] = EntityPlan(entity, attributes, unless)
        return self._plans[id(entity)]

    def _make(self, entity: Entity, attribute: ItemAttribute) -> Make:
        cached = self._makes.get((id(entity), id(attribute)))
        if cached is None:
            cached = (entity, attribute, self._conditional(entity, attribute))
            self._makes[id(entity), id(attribute)] = cached
        return cached[2]

    def _conditional(self, entity: Entity, attribute: ItemAttribute) -> Make:
        make = self._unconditional(entity, attribute)
        if attribute.when == LATEST:
            return lambda row, chains: make(row, chains) if self._is_latest(entity, row) else None
        condition = parse_condition(attribute.when) if attribute.when else None
        if condition is None:
            return make
        holds = condition.holds
        return lambda row, chains: make(row, chains) if holds(row) else None

    def _unconditional(self, entity: Entity, attribute: ItemAttribute) -> Make:
        kind = attribute.type
        if attribute.constant is not None:
            constant = attribute.constant
            return lambda row, chains: {kind: constant}
        fields = template_fields(attribute.template or "")
        if any(part.format in (PATH, ROOT) for part in fields):
            return lambda row, chains: {"S": self._of_tree(attribute, row)}
        if attribute.template is not None:
            return self._template(entity, attribute, attribute.template)
        if attribute.collect:
            chained = self._chained(entity.source, attribute.through)
            return lambda row, chains: (
                _collected(attribute, found) if (found := chained(row, chains)) else None
            )
        if attribute.expires is not None:
            (expiry,) = self._cells(entity, attribute, [ColumnRef.parse(attribute.expires)])
            return lambda row, chains: _expiry(attribute, expiry(row, chains))
        (cell,) = self._cells(entity, attribute, [ColumnRef.parse(attribute.column or "")])
        return _as_text(cell) if kind == "S" else cell

    def _cells(
        self, entity: Entity, attribute: ItemAttribute, refs: Sequence[ColumnRef]
    ) -> list[Make]:
        """Compiles columns of the row, or of the first rows that the attribute's foreign keys lead
        to."""
        if attribute.through:
            chained = self._chained(entity.source, attribute.through)
            return [_joined_cell(chained, ref) for ref in refs]
        return [_own_cell(ref.column if ref.table == entity.source else None) for ref in refs]

    def _template(self, entity: Entity, attribute: ItemAttribute, template: str) -> Make:
        """Compiles a template. Its value is None when all columns are NULL; for a guard, when any
        is."""
        literals, fields = template_parts(template)
        named = [part for part in fields if part.name != SHARD]
        refs = [qualified(entity.source, part.name) for part in named]
        columns = iter(self._cells(entity, attribute, refs))
        shard = self._shard_cell(entity, attribute)
        cells = [shard if part.name == SHARD else next(columns) for part in fields]
        writers = [field_writer(part.format if part.name != SHARD else "") for part in fields]
        needs_all, count, first, rest = entity.is_guard, len(named), literals[0], literals[1:]
        # Most keys have one column of the row itself; this path skips the list handling below.
        if len(cells) == count == 1 and not attribute.through:
            return _one_field(first, cells[0], writers[0], rest[0])
        chained = self._chained(entity.source, attribute.through)

        def make(row: Item, chains: Chains) -> AttributeValue | None:
            if not chained(row, chains):
                return None
            values = [cell(row, chains) for cell in cells]
            absent = values.count(None)
            if absent and (needs_all or absent == count):
                return None
            text = first
            for value, write, literal in zip(values, writers, rest, strict=True):
                text += write(value) + literal
            return {"S": text}

        return make

    def _shard_cell(self, entity: Entity, attribute: ItemAttribute) -> Make:
        table, shards = entity.source, attribute.shards
        return lambda row, chains: {"N": str(self.shard(table, row, shards))}

    def _chained(self, source: str, through: Sequence[str]) -> Chained:
        """Compiles a list of foreign keys; the rows that it finds are cached in `chains`."""
        way = tuple(through)
        joins = [parse_join(text) for text in way]
        parsed = [join for join in joins if join is not None]
        if len(joins) == len(parsed) == 1:
            return self._joined_once(source, parsed[0], way)

        def chained(row: Item, chains: Chains) -> list[Chain]:
            found_chains = chains.get(way)
            if found_chains is None:
                found_chains = [{source: row}] if len(parsed) == len(joins) else []
                for join in parsed:
                    table = join.after[0].table
                    found_chains = [
                        {**chain, table: other}
                        for chain in found_chains
                        for other in self._matching(chain, join)
                    ]
                chains[way] = found_chains
            return found_chains

        return chained

    def _joined_once(self, source: str, join: ForeignKeyJoin, way: tuple[str, ...]) -> Chained:
        """Compiles the common case: a single foreign key of the row itself."""
        before, after = [ref.column for ref in join.before], [ref.column for ref in join.after]
        is_own, table = all(ref.table == source for ref in join.before), join.after[0].table

        def chained(row: Item, chains: Chains) -> list[Chain]:
            found_chains = chains.get(way)
            if found_chains is None:
                found_chains = chains[way] = []
                if is_own and all(name in row for name in before):
                    values = [row[name] for name in before]
                    for other in self.rows.matching(table, after, values):
                        found_chains.append({source: row, table: other})
            return found_chains

        return chained

    # Values that depend on other rows.

    def _is_latest(self, entity: Entity, row: Item) -> bool:
        by = ColumnRef.parse(entity.latest_by or "").column
        per = [ColumnRef.parse(name).column for name in entity.per]
        if by not in row or any(name not in row for name in per):
            return False
        # Two rows with the same greatest value are both the latest; they make the same key, and the
        # later write wins.
        others = self.rows.matching(entity.source, per, [row[name] for name in per])
        return all(order(other[by]) <= order(row[by]) for other in others if by in other)

    def _matching(self, chain: Chain, join: ForeignKeyJoin) -> Iterator[Item]:
        values = [_cell(chain, ref) for ref in join.before]
        present = [value for value in values if value is not None]
        if len(present) == len(values):
            columns = [ref.column for ref in join.after]
            yield from self.rows.matching(join.after[0].table, columns, present)

    def _of_tree(self, attribute: ItemAttribute, row: Item) -> str:
        """Fills in the path from the root of a tree to a row, as far up as rows are found."""
        join = parse_join(attribute.through[0]) if attribute.through else None
        rows = [row]
        while join is not None:
            above = next(self._matching({join.before[0].table: rows[-1]}, join), None)
            # A cycle in the data would otherwise never end.
            if above is None or above in rows:
                break
            rows.append(above)
        key = join.after[0].column if join else ""
        keys = [escaped(plain_text(ancestor[key])) for ancestor in rows[::-1] if key in ancestor]
        path = "".join(f"{text}{SEPARATOR}" for text in keys)
        return filled(
            attribute.template or "",
            lambda part: path if part.format == PATH else "".join(keys[:1]),
        )

    def shard(self, table: str, row: Item, shards: int) -> int:
        """Returns the write shard of a row: the same for the same primary key, in every process."""
        names = self.primary_keys.get(table) or sorted(row)
        text = SEPARATOR.join(plain_text(row[name]) for name in names if name in row)
        return crc32(text.encode()) % max(shards, 1)


def row_of(entity: Entity, item: Item) -> Item:
    """Returns the row that an item was made of, with the columns that the entity holds
    unchanged."""
    row = {}
    for attribute in entity.attributes:
        ref = ColumnRef.parse(attribute.column or "")
        if ref.table == entity.source and not attribute.through and attribute.name in item:
            row[ref.column] = item[attribute.name]
    return row


def of_type(kind: str, value: AttributeValue) -> AttributeValue:
    """Returns the value as the model types it: a number in an attribute of type S becomes a
    text."""
    return {"S": value["N"]} if kind == "S" and "N" in value else value


def order(value: AttributeValue) -> tuple[int, object]:
    """Returns a sort key that orders values as DynamoDB does: numbers by size, others by their
    bytes."""
    if "N" in value:
        return 0, Decimal(value["N"])
    return 1, str(next(iter(value.values()), "")).encode()


def _cell(chain: Chain, ref: ColumnRef) -> AttributeValue | None:
    return chain.get(ref.table, {}).get(ref.column)


def _own_cell(column: str | None) -> Make:
    if column is None:
        return lambda row, chains: None
    return lambda row, chains: row.get(column)


def _joined_cell(chained: Chained, ref: ColumnRef) -> Make:
    table, column = ref

    def cell(row: Item, chains: Chains) -> AttributeValue | None:
        found_chains = chained(row, chains)
        return found_chains[0].get(table, {}).get(column) if found_chains else None

    return cell


def _as_text(cell: Make) -> Make:
    def make(row: Item, chains: Chains) -> AttributeValue | None:
        value = cell(row, chains)
        return value if value is None or "N" not in value else {"S": value["N"]}

    return make


def _one_field(before: str, cell: Make, write: Written, after: str) -> Make:
    """Compiles the common key: a literal and a single column."""

    def make(row: Item, chains: Chains) -> AttributeValue | None:
        value = cell(row, chains)
        return None if value is None else {"S": before + write(value) + after}

    return make


def _collected(attribute: ItemAttribute, chains: list[Chain]) -> AttributeValue | None:
    refs = [ColumnRef.parse(name) for name in attribute.collect]
    members = [
        {ref.column: value for ref in refs if (value := _cell(chain, ref)) is not None}
        for chain in chains
    ]
    if attribute.type in SETS:
        # DynamoDB refuses duplicates in a set, and sets without members.
        texts = [str(next(iter(value.values()))) for member in members for value in member.values()]
        return {attribute.type: list(dict.fromkeys(texts))} if texts else None
    return {"L": [{"M": member} for member in members]}


def _expiry(attribute: ItemAttribute, value: AttributeValue | None) -> AttributeValue | None:
    moment = moment_of(plain_text(value)) if value is not None else None
    if moment is None:
        return None
    end = moment + timedelta(seconds=attribute.after_seconds)
    return {"N": str(int(end.replace(tzinfo=end.tzinfo or UTC).timestamp()))}

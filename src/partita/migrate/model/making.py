"""Rows become items, and items become rows again: the one function that every stage uses.

A row is what `attribute_value` made of its columns, by name, without those that are NULL. What an
item takes from rows of other tables is found by `Rows.matching`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, timedelta
from decimal import Decimal
from typing import Protocol
from zlib import crc32

from partita.database.item.values import AttributeValue, Item
from partita.migrate.model.design import Attribute, Entity
from partita.migrate.model.key_texts import field_text, moment_of, plain_text
from partita.migrate.model.row_conditions import parse_condition
from partita.migrate.model.templates import (
    PATH,
    ROOT,
    SEPARATOR,
    SHARD,
    TemplateField,
    escaped,
    filled,
    template_fields,
)
from partita.migrate.understanding.schema.column_refs import Join, Ref, parse_join, qualified

SETS = ("SS", "NS", "BS")

Chain = dict[str, Item]
"""Rows that foreign keys lead to one after the other, by table; of one met twice, the last."""


class Rows(Protocol):
    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Iterable[Item]:
        """The rows of a table with these values."""


class ItemMaker:
    """`primary_keys`: by table; a shard is chosen by them."""

    def __init__(self, rows: Rows, primary_keys: Mapping[str, Sequence[str]]) -> None:
        self.rows = rows
        self.primary_keys = primary_keys

    def item(self, entity: Entity, row: Item) -> Item | None:
        """The item that a row becomes; None when it becomes none of this type."""
        if entity.rows == "latest" and not self._is_latest(entity, row):
            return None
        item = {}
        for attribute in entity.attributes:
            value = self.value(entity, attribute, row)
            if value is not None:
                item[attribute.name] = value
            elif entity.is_guard and attribute.template:
                return None
        return item

    def value(self, entity: Entity, attribute: Attribute, row: Item) -> AttributeValue | None:
        """None when all the columns that it is made of are NULL, or its condition does not hold."""
        condition = parse_condition(attribute.when) if attribute.when else None
        if condition is not None and not condition.holds(row):
            return None
        if attribute.constant is not None:
            return {attribute.type: attribute.constant}
        if any(part.format in (PATH, ROOT) for part in template_fields(attribute.template or "")):
            return {"S": self._of_tree(attribute, row)}
        chains = self.chains(entity, attribute, row)
        if not chains:
            return None
        if attribute.template is not None:
            text = self._filled(entity, attribute, chains[0], row)
            return {"S": text} if text is not None else None
        if attribute.collect:
            return _collected(attribute, chains)
        if attribute.expires is not None:
            return _expiry(attribute, chains[0])
        value = _cell(chains[0], Ref.parse(attribute.column or ""))
        return of_type(attribute.type, value) if value is not None else None

    def chains(self, entity: Entity, attribute: Attribute, row: Item) -> list[Chain]:
        """The row itself, and those that the foreign keys of an attribute lead to."""
        chains: list[Chain] = [{entity.source: row}]
        for text in attribute.through:
            join = parse_join(text)
            if join is None:
                return []
            chains = [
                {**chain, join.after[0].table: other}
                for chain in chains
                for other in self._matching(chain, join)
            ]
        return chains

    def _is_latest(self, entity: Entity, row: Item) -> bool:
        by = Ref.parse(entity.latest_by or "").column
        per = [Ref.parse(name).column for name in entity.per]
        if by not in row or any(name not in row for name in per):
            return False
        others = self.rows.matching(entity.source, per, [row[name] for name in per])
        return all(order(other[by]) <= order(row[by]) for other in others if by in other)

    def _matching(self, chain: Chain, join: Join) -> Iterator[Item]:
        wanted = [_cell(chain, ref) for ref in join.before]
        known = [value for value in wanted if value is not None]
        if len(known) == len(wanted):
            columns = [ref.column for ref in join.after]
            yield from self.rows.matching(join.after[0].table, columns, known)

    def _of_tree(self, attribute: Attribute, row: Item) -> str:
        """The path to a row, as far up as rows are known."""
        join = parse_join(attribute.through[0]) if attribute.through else None
        rows = [row]
        while join is not None:
            above = next(self._matching({join.before[0].table: rows[-1]}, join), None)
            if above is None or above in rows:
                break
            rows.append(above)
        key = join.after[0].column if join else ""
        keys = [escaped(plain_text(one[key])) for one in rows[::-1] if key in one]
        path = "".join(f"{one}{SEPARATOR}" for one in keys)
        return filled(
            attribute.template or "",
            lambda part: path if part.format == PATH else "".join(keys[:1]),
        )

    def _filled(self, entity: Entity, attribute: Attribute, chain: Chain, row: Item) -> str | None:
        """None when all its columns are NULL; of a guard, when one is."""
        template = attribute.template or ""
        cells = [
            _cell(chain, qualified(entity.source, part.name))
            for part in template_fields(template)
            if part.name != SHARD
        ]
        absent = [cell is None for cell in cells]
        if cells and (all(absent) or (entity.is_guard and any(absent))):
            return None

        def text(part: TemplateField) -> str:
            if part.name == SHARD:
                return str(self.shard(entity.source, row, attribute.shards))
            return field_text(part.format, _cell(chain, qualified(entity.source, part.name)))

        return filled(template, text)

    def shard(self, table: str, row: Item, shards: int) -> int:
        names = self.primary_keys.get(table) or sorted(row)
        known = SEPARATOR.join(plain_text(row[name]) for name in names if name in row)
        return crc32(known.encode()) % max(shards, 1)


def row_of(entity: Entity, item: Item) -> Item:
    """The row that an item was made of, as far as the entity holds its columns."""
    row = {}
    for attribute in entity.attributes:
        ref = Ref.parse(attribute.column or "")
        if ref.table == entity.source and not attribute.through and attribute.name in item:
            row[ref.column] = item[attribute.name]
    return row


def of_type(kind: str, value: AttributeValue) -> AttributeValue:
    """A number that the model keeps as text."""
    return {"S": value["N"]} if kind == "S" and "N" in value else value


def order(value: AttributeValue) -> tuple[int, object]:
    """As a sort key orders its values: numbers by size, the others by their bytes."""
    if "N" in value:
        return 0, Decimal(value["N"])
    return 1, str(next(iter(value.values()), "")).encode()


def _cell(chain: Chain, ref: Ref) -> AttributeValue | None:
    return chain.get(ref.table, {}).get(ref.column)


def _collected(attribute: Attribute, chains: list[Chain]) -> AttributeValue | None:
    refs = [Ref.parse(name) for name in attribute.collect]
    members = [
        {ref.column: value for ref in refs if (value := _cell(chain, ref)) is not None}
        for chain in chains
    ]
    if attribute.type in SETS:
        texts = [str(next(iter(value.values()))) for one in members for value in one.values()]
        return {attribute.type: list(dict.fromkeys(texts))} if texts else None
    return {"L": [{"M": member} for member in members]}


def _expiry(attribute: Attribute, chain: Chain) -> AttributeValue | None:
    value = _cell(chain, Ref.parse(attribute.expires or ""))
    moment = moment_of(plain_text(value)) if value is not None else None
    if moment is None:
        return None
    end = moment + timedelta(seconds=attribute.after_seconds)
    return {"N": str(int(end.replace(tzinfo=end.tzinfo or UTC).timestamp()))}

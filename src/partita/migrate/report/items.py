"""Items of a model, made of the example rows that `analyze` kept, for the drawings of the report.

What the examples cannot tell, because no row of a table was kept, is made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from partita.database.item.values import AttributeValue, Item
from partita.migrate.designs import (
    NULL_IN_TEMPLATE,
    PATH,
    ROOT,
    SEPARATOR,
    SHARD,
    Attribute,
    Entity,
    Ref,
    Step,
    TemplateField,
    escaped,
    filled,
    parse_step,
    qualified,
    template_fields,
)
from partita.migrate.samples import sample_item

MADE_UP_ITEMS = 2

Chain = dict[str, Item]
"""Rows that foreign keys lead to one after the other, by table; of one met twice, the last."""


class ExampleItems:
    def __init__(self, examples: dict[str, list[Item]]) -> None:
        self.examples = examples

    def of(self, entity: Entity) -> list[Item]:
        rows = self._rows(entity)
        if not rows:
            return [sample_item(entity, number) for number in range(1, MADE_UP_ITEMS + 1)]
        return [self._item(entity, row, number) for number, row in enumerate(rows, 1)]

    def _rows(self, entity: Entity) -> list[Item]:
        rows = self.examples.get(entity.source, [])
        if entity.rows == "each":
            return rows
        newest: dict[str, Item] = {}
        by = Ref.parse(entity.latest_by or "").column
        for row in sorted(rows, key=lambda row: order(row.get(by, {}))):
            newest[repr([row.get(Ref.parse(name).column) for name in entity.per])] = row
        return list(newest.values())

    def _item(self, entity: Entity, row: Item, number: int) -> Item:
        made = sample_item(entity, number)
        item = {}
        for attribute in entity.attributes:
            value = self._value(entity, attribute, row, made[attribute.name])
            if value is not None:
                item[attribute.name] = value
        return item

    def _value(
        self, entity: Entity, attribute: Attribute, row: Item, made: AttributeValue
    ) -> AttributeValue | None:
        if attribute.constant is not None:
            return made
        if any(part.format in (PATH, ROOT) for part in template_fields(attribute.template or "")):
            return {"S": self._of_tree(attribute, row)}
        chains = self._chains(entity, attribute, row)
        if not chains:
            return made if self._has_first_key(attribute, row) else None
        if attribute.template is not None:
            text = self._filled(entity, attribute.template, chains[0])
            return {"S": text} if text is not None else None
        if attribute.collect:
            return _collected(attribute, chains)
        if attribute.expires is not None:
            return _expiry(attribute, chains[0]) or made
        value = _cell(chains[0], Ref.parse(attribute.column or ""))
        return _of_type(attribute.type, value) if value else None

    def _of_tree(self, attribute: Attribute, row: Item) -> str:
        """The path to a row, as far up as rows were kept."""
        step = parse_step(attribute.through[0]) if attribute.through else None
        rows = [row]
        while step is not None:
            above = next(self._matching({step.before[0].table: rows[-1]}, step), None)
            if above is None or above in rows:
                break
            rows.append(above)
        key = step.after[0].column if step else ""
        keys = [escaped(str(next(iter(one[key].values())))) for one in rows[::-1] if key in one]
        path = "".join(f"{one}{SEPARATOR}" for one in keys)
        return filled(
            attribute.template or "",
            lambda part: path if part.format == PATH else "".join(keys[:1]),
        )

    def _chains(self, entity: Entity, attribute: Attribute, row: Item) -> list[Chain]:
        """The row itself, and those that the foreign keys of an attribute lead to."""
        chains: list[Chain] = [{entity.source: row}]
        for text in attribute.through:
            step = parse_step(text)
            if step is None:
                return []
            chains = [
                {**chain, step.after[0].table: other}
                for chain in chains
                for other in self._matching(chain, step)
            ]
        return chains

    def _matching(self, chain: Chain, step: Step) -> Iterator[Item]:
        wanted = [_cell(chain, ref) for ref in step.before]
        for other in self.examples.get(step.after[0].table, []):
            if None not in wanted and [other.get(ref.column) for ref in step.after] == wanted:
                yield other

    def _has_first_key(self, attribute: Attribute, row: Item) -> bool:
        """A row that refers to nothing has nothing to show; one whose parent was not kept has."""
        step = parse_step(attribute.through[0])
        return step is not None and all(ref.column in row for ref in step.before)

    def _filled(self, entity: Entity, template: str, chain: Chain) -> str | None:
        """None when all its columns are NULL."""
        refs = [
            qualified(entity.source, part.name)
            for part in template_fields(template)
            if part.name != SHARD
        ]
        if refs and all(_cell(chain, ref) is None for ref in refs):
            return None
        return filled(template, lambda part: _field(entity, part, chain))


def _field(entity: Entity, part: TemplateField, chain: Chain) -> str:
    if part.name == SHARD:
        return "0"
    value = _cell(chain, qualified(entity.source, part.name))
    if value is None:
        return NULL_IN_TEMPLATE
    text = str(next(iter(value.values())))
    if part.format.startswith("0"):
        return text.zfill(int(part.format))
    moment = _moment(text) if part.format else None
    return escaped(moment.strftime(part.format) if moment else text)


def _cell(chain: Chain, ref: Ref) -> AttributeValue | None:
    return chain.get(ref.table, {}).get(ref.column)


def _collected(attribute: Attribute, chains: list[Chain]) -> AttributeValue | None:
    refs = [Ref.parse(name) for name in attribute.collect]
    members = [
        {ref.column: value for ref in refs if (value := _cell(chain, ref)) is not None}
        for chain in chains
    ]
    if attribute.type in ("SS", "NS", "BS"):
        texts = [str(next(iter(value.values()))) for one in members for value in one.values()]
        return {attribute.type: list(dict.fromkeys(texts))} if texts else None
    return {"L": [{"M": member} for member in members]}


def _expiry(attribute: Attribute, chain: Chain) -> AttributeValue | None:
    value = _cell(chain, Ref.parse(attribute.expires or ""))
    moment = _moment(str(next(iter(value.values())))) if value else None
    if moment is None:
        return None
    end = moment + timedelta(seconds=attribute.after_seconds)
    return {"N": str(int(end.replace(tzinfo=end.tzinfo or UTC).timestamp()))}


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _of_type(kind: str, value: AttributeValue) -> AttributeValue:
    """A number that the model keeps as text."""
    return {"S": value["N"]} if kind == "S" and "N" in value else value


def order(value: AttributeValue) -> tuple[int, Any]:
    """As a sort key orders its values: numbers by size, the others by their bytes."""
    if "N" in value:
        return 0, Decimal(value["N"])
    return 1, str(next(iter(value.values()), "")).encode()

"""Items of a model, made of the example rows that `analyze` kept, for the drawings of the report.

What the examples cannot tell, because no row of a table was kept, is made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from partita.item.values import AttributeValue, Item
from partita.migrate.designs import (
    SHARD,
    Attribute,
    Entity,
    Ref,
    TemplateField,
    parse_step,
    qualified,
    template_fields,
)
from partita.migrate.samples import made_up, sample_item

MADE_UP_ITEMS = 2


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
        reached = list(self._reached(attribute, row))
        if attribute.through and not reached:
            return made if self._has_first_key(attribute, row) else None
        if attribute.template is not None:
            return {"S": self._filled(entity, attribute.template, [row, *reached])}
        if attribute.collect:
            return _collected(attribute, reached)
        origin = reached[0] if attribute.through else row
        if attribute.expires is not None:
            return _expiry(attribute, origin) or made
        value = origin.get(Ref.parse(attribute.column or "").column)
        return _of_type(attribute.type, value) if value else None

    def _reached(self, attribute: Attribute, row: Item) -> Iterator[Item]:
        """The rows at the end of the foreign keys that an attribute follows."""
        rows = [row]
        for text in attribute.through:
            step = parse_step(text)
            if step is None:
                return
            found = []
            for one in rows:
                wanted = [one.get(ref.column) for ref in step.before]
                found += [
                    other
                    for other in self.examples.get(step.after[0].table, [])
                    if None not in wanted
                    and [other.get(ref.column) for ref in step.after] == wanted
                ]
            rows = found
        if attribute.through:
            yield from rows

    def _has_first_key(self, attribute: Attribute, row: Item) -> bool:
        """A row that refers to nothing has nothing to show; one whose parent was not kept has."""
        step = parse_step(attribute.through[0])
        return step is not None and all(ref.column in row for ref in step.before)

    def _filled(self, entity: Entity, template: str, rows: list[Item]) -> str:
        text = template
        for part in template_fields(template):
            name = f"{{{part.name}:{part.format}}}" if part.format else f"{{{part.name}}}"
            text = text.replace(name, self._field(entity, part, rows))
        return text

    def _field(self, entity: Entity, part: TemplateField, rows: list[Item]) -> str:
        if part.name == SHARD:
            return "0"
        ref = qualified(entity.source, part.name)
        own = rows[:1] if ref.table == entity.source else rows[1:]
        value = next((row[ref.column] for row in own if ref.column in row), None)
        if value is None:
            # NULL in the row itself is an empty text.
            return "" if own and ref.table == entity.source else made_up(ref.column, 1)
        text = str(next(iter(value.values())))
        if part.format.startswith("0"):
            return text.zfill(int(part.format))
        moment = _moment(text) if part.format else None
        return moment.strftime(part.format) if moment else text


def _collected(attribute: Attribute, rows: list[Item]) -> AttributeValue | None:
    columns = [Ref.parse(name).column for name in attribute.collect]
    if attribute.type in ("SS", "NS", "BS"):
        texts = [str(next(iter(row[columns[0]].values()))) for row in rows if columns[0] in row]
        return {attribute.type: list(dict.fromkeys(texts))} if texts else None
    members = [{name: row[name] for name in columns if name in row} for row in rows]
    return {"L": [{"M": member} for member in members]}


def _expiry(attribute: Attribute, row: Item) -> AttributeValue | None:
    value = row.get(Ref.parse(attribute.expires or "").column)
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

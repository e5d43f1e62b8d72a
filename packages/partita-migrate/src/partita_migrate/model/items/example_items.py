"""Items made of the example rows that `analyze` keeps, for the drawings of the report.

Values that the examples cannot give, because no row of a table was kept, are placeholders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import Entity, ItemAttribute
from partita_migrate.model.items.item_maker import ItemMaker, order
from partita_migrate.model.items.placeholder_items import sample_item
from partita_migrate.model.keys.key_templates import PATH, ROOT, template_fields
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join

__all__ = ["MADE_UP_ITEMS", "ExampleItems", "order"]

MADE_UP_ITEMS = 2


class ExampleItems:
    """Makes a design's items from the example rows, and serves as their lookup."""

    def __init__(self, examples: dict[str, list[Item]]) -> None:
        self.examples = examples
        self._maker = ItemMaker(self, {})

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Iterable[Item]:
        expected = list(values)
        return [
            row
            for row in self.examples.get(table, [])
            if [row.get(column) for column in columns] == expected
        ]

    def of(self, entity: Entity) -> list[Item]:
        """Returns an entity's items: of its example rows, or placeholders if there are none."""
        rows = self._rows(entity)
        if not rows:
            return [sample_item(entity, number) for number in range(1, MADE_UP_ITEMS + 1)]
        return [self._item(entity, row, number) for number, row in enumerate(rows, 1)]

    def _rows(self, entity: Entity) -> list[Item]:
        rows = self.examples.get(entity.source, [])
        if entity.rows == "each":
            return rows
        newest: dict[str, Item] = {}
        by = ColumnRef.parse(entity.latest_by or "").column
        for row in sorted(rows, key=lambda row: order(row.get(by, {}))):
            newest[repr([row.get(ColumnRef.parse(name).column) for name in entity.per])] = row
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
        self, entity: Entity, attribute: ItemAttribute, row: Item, made: AttributeValue
    ) -> AttributeValue | None:
        if attribute.constant is not None:
            return self._maker.value(entity, attribute, row)
        if any(part.format in (PATH, ROOT) for part in template_fields(attribute.template or "")):
            return self._maker.value(entity, attribute, row)
        if not self._maker.chains(entity, attribute, row):
            return made if self._has_first_key(attribute, row) else None
        value = self._maker.value(entity, attribute, row)
        return made if value is None and attribute.expires is not None else value

    def _has_first_key(self, attribute: ItemAttribute, row: Item) -> bool:
        """True when the row refers to another row, which only was not kept as an example.

        A row whose foreign key is NULL refers to nothing, so it does not get the attribute.
        """
        join = parse_join(attribute.through[0])
        return join is not None and all(ref.column in row for ref in join.before)

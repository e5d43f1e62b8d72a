"""Makes rows of a statement from the items of its first request and of follow-up lookups."""

from __future__ import annotations

from collections.abc import Sequence

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.designing.requests.read_planner import ColumnsOfRequests
from partita_migrate.model.design import Design, ItemAttribute, PatternAccess
from partita_migrate.model.items.item_maker import of_type
from partita_migrate.model.keys.key_formats import field_text
from partita_migrate.model.keys.key_templates import filled, template_fields
from partita_migrate.proving.read_proofs.answer_rows import Cells, RequestNotPossible, Row
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.resolved_statements import ResolvedQuery

FetchedItems = dict[tuple[str, str], Item | None]
"""Items that this call has looked up already, by table and key; None for a key without an item."""


class RowCombiner:
    """Makes the rows of one statement."""

    def __init__(
        self,
        server: DynamoDBClient,
        design: Design,
        question: ResolvedQuery,
        brought: ColumnsOfRequests,
        lookups: Sequence[PatternAccess],
        prefix: str = "",
    ) -> None:
        self.server = server
        self.design = design
        self.question = question
        self.brought = brought
        self.lookups = lookups
        self.prefix = prefix

    def rows(self, items: Sequence[Item], fetched: FetchedItems | None = None) -> list[Row]:
        """Returns the rows of these items; `fetched` has the items that the call has looked up
        before."""
        rows = []
        fetched = {} if fetched is None else fetched
        for item in items:
            first = self.brought.attributes[0]
            cells: Cells = {ref: item.get(name) for ref, name in first.items()}
            is_whole = True
            for access, names in zip(self.lookups, self.brought.attributes[1:], strict=True):
                other = self._look_up(access, item, cells, fetched)
                is_whole = is_whole and (other is not None or self._is_outer(access))
                for ref, name in names.items():
                    cells.setdefault(ref, (other or {}).get(name))
            if is_whole:
                rows.append(tuple(cells.get(ref) for ref in self.question.columns))
        return rows

    def _look_up(
        self, access: PatternAccess, item: Item, cells: Cells, fetched: FetchedItems
    ) -> Item | None:
        """Returns an item by key; each key is read once, however many rows refer to it."""
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table is not None else None
        if entity is None:
            raise RequestNotPossible(f"the model has no {access.entity!r}")
        key: Item = {}
        for condition in access.key:
            attribute = entity.attribute(condition.attribute)
            if attribute is None:
                raise RequestNotPossible(f"{entity.name} has no attribute {condition.attribute!r}")
            value = self._key_value(attribute, condition.value, item, cells)
            if value is None:
                return None
            key[condition.attribute] = value
        place = (access.table, repr(key))
        if place not in fetched:
            answer = self.server.call("GetItem", TableName=self.prefix + access.table, Key=key)
            fetched[place] = answer.get("Item")
        return fetched[place]

    def _key_value(
        self, attribute: ItemAttribute, template: str, item: Item, cells: Cells
    ) -> AttributeValue | None:
        parts = template_fields(template)
        values = {part.name: self._cell(ColumnRef.parse(part.name), item, cells) for part in parts}
        if any(value is None for value in values.values()):
            return None
        present = {name: value for name, value in values.items() if value is not None}
        if len(parts) == 1 and attribute.template is None and attribute.constant is None:
            return of_type(attribute.type, present[parts[0].name])
        return {"S": filled(template, lambda part: field_text(part.format, present[part.name]))}

    def _cell(self, ref: ColumnRef, item: Item, cells: Cells) -> AttributeValue | None:
        same = sorted(self.brought.asked.same(ref))
        for column in same:
            name = self.brought.held.get(column)
            if name is not None:
                return item.get(name)
        for column in same:
            if column in cells:
                return cells[column]
        raise RequestNotPossible(f"the first request does not return {ref}")

    def _is_outer(self, access: PatternAccess) -> bool:
        joins = {join.table: join.is_outer for join in self.question.joins}
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table is not None else None
        return entity is not None and joins.get(entity.source, True)

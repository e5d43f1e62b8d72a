"""Draws a table of a model and its indexes with example items, in the way of NoSQL Workbench.

Items with the same partition key stand together, sorted by their sort keys. An index shows only the
attributes that it projects, and only the items that have its keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import Design, SecondaryIndex, TableDesign
from partita_migrate.model.items.example_items import ExampleItems, order

ITEMS_PER_VIEW_MAX = 40
CELLS_MAX = 14
VALUE_CHARS_MAX = 60
TABLES_DRAWN_MAX = 40


class DrawnAttribute(NamedTuple):
    name: str
    value: str


class DrawnItem(NamedTuple):
    entity: str
    color: int
    """The number of the color of the item's type."""
    sort: DrawnAttribute | None
    cells: list[DrawnAttribute]
    more: int
    """The number of attributes that are not drawn."""


class ItemCollection(NamedTuple):
    """The items with one partition key."""

    partition: DrawnAttribute
    items: list[DrawnItem]


class TableView(NamedTuple):
    title: str
    keys: list[str]
    is_index: bool
    detail: str
    why: str
    groups: list[ItemCollection]
    left_out: int
    """The number of items that are not drawn."""


class DrawnTable(NamedTuple):
    name: str
    why: str
    entities: list[tuple[str, int, str, str]]
    """Name, color, source and reason of every type of item."""
    views: list[TableView]


def draw_tables(design: Design, items: ExampleItems) -> tuple[list[DrawnTable], list[TableDesign]]:
    """Returns the drawn tables, and the tables that are left out because there are too many."""
    drawn = [draw(table, items) for table in design.tables[:TABLES_DRAWN_MAX]]
    return drawn, design.tables[TABLES_DRAWN_MAX:]


def draw(table: TableDesign, items: ExampleItems) -> DrawnTable:
    each = 4 if len(table.entities) <= 6 else 2
    made = [
        (number, entity.name, item)
        for number, entity in enumerate(table.entities)
        for item in items.of(entity)[:each]
    ]
    ttl = f", expires by {table.ttl}" if table.ttl else ""
    own = _view(table.name, table, None, made)._replace(detail=f"table{ttl}", why=table.why)
    return DrawnTable(
        name=table.name,
        why=table.why,
        entities=[
            (entity.name, number, entity.source, entity.why)
            for number, entity in enumerate(table.entities)
        ],
        views=[own, *(_view(index.name, table, index, made) for index in table.indexes)],
    )


def _view(
    title: str,
    table: TableDesign,
    index: SecondaryIndex | None,
    made: list[tuple[int, str, Item]],
) -> TableView:
    keys = (index or table).keys
    present = [
        (color, entity, _projected(item, table, index))
        for color, entity, item in made
        # As in DynamoDB, an item without a key of the index is not in the index.
        if all(key.name in item for key in [*table.keys, *keys])
    ]
    shown = present[:ITEMS_PER_VIEW_MAX]
    collections: dict[str, list[tuple[int, str, Item]]] = {}
    for member in shown:
        collections.setdefault(text_of(member[2][keys[0].name]), []).append(member)
    if len(keys) == 2:
        for members in collections.values():
            # In the order in which a Query returns them.
            members.sort(key=lambda member: order(member[2][keys[1].name]))
    names = [key.name for key in keys]
    return TableView(
        title=title,
        keys=[f"{key.name} ({key.type})" for key in keys],
        is_index=index is not None,
        detail=_detail(index) if index else "",
        why=index.why if index else "",
        groups=[
            ItemCollection(
                DrawnAttribute(names[0], value), [_item(member, names) for member in members]
            )
            for value, members in collections.items()
        ],
        left_out=len(present) - len(shown),
    )


def _detail(index: SecondaryIndex) -> str:
    projected = {
        "ALL": "all attributes",
        "KEYS_ONLY": "keys only",
        "INCLUDE": f"keys and {', '.join(index.include)}",
    }
    return f"{index.kind} secondary index, {projected[index.projection]}"


def _projected(item: Item, table: TableDesign, index: SecondaryIndex | None) -> Item:
    if index is None or index.projection == "ALL":
        return item
    kept = {key.name for key in [*table.keys, *index.keys]} | set(index.include)
    return {name: value for name, value in item.items() if name in kept}


def _item(member: tuple[int, str, Item], keys: list[str]) -> DrawnItem:
    color, entity, item = member
    cells = [
        DrawnAttribute(name, text_of(value)) for name, value in item.items() if name not in keys
    ]
    return DrawnItem(
        entity=entity,
        color=color,
        sort=DrawnAttribute(keys[1], text_of(item[keys[1]])) if len(keys) == 2 else None,
        cells=cells[:CELLS_MAX],
        more=max(0, len(cells) - CELLS_MAX),
    )


def text_of(value: AttributeValue) -> str:
    """Returns a value as people read it, cut if it is long."""
    text = _plain(value)
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[: VALUE_CHARS_MAX - 1]}…"


def _plain(value: AttributeValue) -> str:
    ((kind, content),) = value.items()
    if kind == "M":
        return "{ " + ", ".join(_member(*member) for member in content.items()) + " }"
    if kind == "L":
        return "[ " + ", ".join(map(_plain, content)) + " ]"
    if kind in ("SS", "NS", "BS"):
        return "{ " + ", ".join(map(str, content)) + " }"
    if kind == "BOOL":
        return "true" if content else "false"
    return "null" if kind == "NULL" else f"{content}" if content or kind != "B" else "(bytes)"


def _member(name: str, value: Any) -> str:
    return f"{name}: {_plain(value)}"

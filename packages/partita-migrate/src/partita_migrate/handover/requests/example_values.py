"""Values for the requests of a pattern, taken from the items of example rows.

A condition's template says how the application makes a value. The items already contain such
values, so nothing is formatted a second time.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import (
    AccessCondition,
    Entity,
    ItemAttribute,
    PatternAccess,
    TableDesign,
    columns_of,
)
from partita_migrate.model.items.example_items import ExampleItems, order
from partita_migrate.model.items.placeholder_items import sample_item
from partita_migrate.model.keys.key_templates import (
    SEPARATOR,
    SHARD,
    template_fields,
    template_text,
)
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef

BETWEEN = " and "
OR = " or "
SHARD_FIELD = f"{{{SHARD}}}"
OTHER_NUMBER = 9
"""The number of the placeholder row whose values an update writes."""


def items_of(examples: dict[str, list[Item]], table: TableDesign, entity: Entity) -> list[Item]:
    """Returns items with complete keys, or placeholders if no example row gives one."""
    items = [item for item in ExampleItems(examples).of(entity) if _has_keys(table, item)]
    return items or [sample_item(entity, number) for number in (1, 2)]


def _has_keys(table: TableDesign, item: Item) -> bool:
    return all(next(iter(item.get(key.name, {"": ""}).values())) for key in table.keys)


def example_of(access: PatternAccess, items: list[Item]) -> Item:
    """Returns the item that a request is written for: one with all compared attributes, in a large
    collection."""
    names = [condition.attribute for condition in [*access.key, *access.filter]]
    partition = names[0] if names else ""
    shared = [item.get(partition) for item in items]
    return max(
        items,
        key=lambda item: (sum(name in item for name in names), shared.count(item.get(partition))),
    )


def compared(
    condition: AccessCondition, entity: Entity, item: Item, items: list[Item]
) -> list[AttributeValue]:
    """Returns the values of a condition: two for `between`, any number for `in`, else one."""
    attribute = entity.attribute(condition.attribute)
    kind = attribute.type if attribute else "S"
    comparison: str = condition.comparison
    if comparison in ("in", "not in"):
        parts = [
            replace(condition, comparison="=", value=text) for text in condition.value.split(OR)
        ]
        return _distinct(value for part in parts for value in compared(part, entity, item, items))
    if condition.comparison == "between":
        first, _, last = condition.value.partition(BETWEEN)
        ends = _ends(condition.attribute, item, items)
        return [_bound(first, kind, ends[0]), _bound(last, kind, ends[-1])]
    if not template_fields(condition.value):
        return [_constant(kind, condition.value)]
    value = item.get(condition.attribute)
    if value is None:
        value = sample_item(entity, 1).get(condition.attribute, {"S": condition.value})
    if condition.comparison == "begins_with" and "S" in value:
        whole = attribute.template if attribute else None
        return [{"S": _beginning(value["S"], condition.value, whole)}]
    return [value]


def _constant(kind: str, text: str) -> AttributeValue:
    return {"BOOL": text in ("True", "true", "1")} if kind == "BOOL" else {kind: text}


def _distinct(values: Iterable[AttributeValue]) -> list[AttributeValue]:
    return list({repr(value): value for value in values}.values())


def _ends(name: str, item: Item, items: list[Item]) -> list[AttributeValue]:
    return sorted((other[name] for other in [*items, item] if name in other), key=order) or [
        {"S": ""}
    ]


def _bound(template: str, kind: str, value: AttributeValue) -> AttributeValue:
    """Returns an end of a range. The upper end has a character after the last separator that sorts
    after it, so that keys with that beginning are in the range."""
    fields = template_fields(template)
    if not fields:
        return _constant(kind, template)
    end = template_text(template[template.rindex("}") + 1 :])
    if "S" not in value:
        return value
    depth = template_text(template[: template.rindex("{")]).count(SEPARATOR) + 1
    parts = value["S"].split(SEPARATOR)[:depth]
    return {"S": SEPARATOR.join(parts) + end}


def _beginning(text: str, template: str, whole: str | None) -> str:
    """Returns the beginning of a key that a template covers. Values contain no separator."""
    if template == whole:
        return text
    literal = template_text(template, "\0")
    parts = text.split(SEPARATOR)
    depth = literal.count(SEPARATOR)
    if literal.endswith(SEPARATOR):
        return SEPARATOR.join(parts[:depth]) + SEPARATOR
    if not literal.endswith("\0"):
        # The literal ends within a part: all keys share that beginning of it.
        return SEPARATOR.join([*parts[:depth], literal.rpartition(SEPARATOR)[2]])
    return SEPARATOR.join(parts[: depth + 1])


def shards(attribute: ItemAttribute | None, value: AttributeValue) -> list[AttributeValue]:
    """Returns the key in each of its shards."""
    segments = (attribute.template or "").split(SEPARATOR) if attribute else []
    places = [place for place, text in enumerate(segments) if SHARD_FIELD in text]
    if attribute is None or not places or "S" not in value:
        return [value]
    parts = value["S"].split(SEPARATOR)
    sharded_keys: list[AttributeValue] = []
    for number in range(attribute.shards):
        parts[places[0]] = segments[places[0]].replace(SHARD_FIELD, str(number))
        sharded_keys.append({"S": SEPARATOR.join(parts)})
    return sharded_keys


# Writes.


def changed_item(
    examples: dict[str, list[Item]], entity: Entity, pattern: AccessPattern, unique: set[str]
) -> Item:
    """Returns the first example row's item as an update leaves it.

    New values of the `unique` columns are values that no row has.
    """
    rows = examples.get(entity.source, [])
    if not rows:
        return sample_item(entity, OTHER_NUMBER)
    row = dict(rows[0])
    for name in _changed_columns(entity, pattern):
        candidates = [other[name] for other in rows if name in other and name not in unique]
        row[name] = _other(row.get(name), candidates)
    return ExampleItems({**examples, entity.source: [row, *rows[1:]]}).of(entity)[0]


def _changed_columns(entity: Entity, pattern: AccessPattern) -> list[str]:
    """Returns the changed columns of the entity's own row; all of them if the pattern names
    none."""
    refs = [ColumnRef.parse(name) for name in pattern.columns]
    if not refs:
        refs = [ref for attribute in entity.attributes for ref in columns_of(entity, attribute)]
        equal_columns = {ColumnRef.parse(name) for name in pattern.equality}
        refs = [ref for ref in refs if ref not in equal_columns]
    return list(dict.fromkeys(ref.column for ref in refs if ref.table == entity.source))


def _other(value: AttributeValue | None, candidates: Iterable[AttributeValue]) -> AttributeValue:
    """Returns another value for a column: one of the candidates, or an invented one."""
    for candidate in candidates:
        if candidate != value:
            return candidate
    if value is None:
        return {"S": "new"}
    ((kind, content),) = value.items()
    if kind == "N":
        return {"N": str(int(float(content)) + 1)}
    if kind == "BOOL":
        return {"BOOL": not content}
    return {"S": f"{content} (new)"} if kind == "S" else value

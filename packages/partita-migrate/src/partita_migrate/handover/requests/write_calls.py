"""Writes puts, updates and deletes of items, each with its condition."""

from __future__ import annotations

from typing import Any

from partita.database.item.attribute_values import Item
from partita_migrate.handover.requests.expression_placeholders import ExpressionPlaceholders
from partita_migrate.handover.requests.pattern_request import PatternRequest, RequestTest
from partita_migrate.model.design import ItemAttribute, PatternAccess, TableDesign

KEPT = "If it is refused, the row exists already, and stays as it is."
REFUSED = "If it is refused, the row was changed in the meantime: read it again, or give up."


def key_tests(table: TableDesign, item: Item, access: PatternAccess | None) -> list[RequestTest]:
    templates = {condition.attribute: condition.value for condition in access.key} if access else {}
    return [
        RequestTest(
            attribute=key.name,
            comparison="=",
            values=[item[key.name]],
            template=templates.get(key.name, ""),
        )
        for key in table.keys
    ]


def put(
    table: TableDesign,
    item: Item,
    access: PatternAccess | None,
    *,
    is_new: bool,
    afterwards: str = "",
) -> PatternRequest:
    content: dict[str, Any] = {"TableName": table.name, "Item": item}
    if is_new:
        content["ConditionExpression"] = "attribute_not_exists(#k0)"
        content["ExpressionAttributeNames"] = {"#k0": table.partition_key.name}
    return PatternRequest(
        operation="PutItem",
        input=content,
        table=table.name,
        key=key_tests(table, item, access),
        item=item,
        must="not_exists" if is_new else "",
        afterwards=afterwards,
    )


def update(
    table: TableDesign,
    item: Item,
    changed: Item,
    access: PatternAccess,
    removed: list[ItemAttribute],
    unchanged: list[RequestTest],
) -> PatternRequest:
    keys = {key.name for key in table.keys}
    new = {name: value for name, value in changed.items() if name not in keys}
    sums = [add.rsplit(" ", 2) for add in access.adds]
    added = {name: sign for name, sign, _ in sums}
    new |= {name: {"N": text} for name, _, text in sums if not text.startswith("{")}
    expressions = ExpressionPlaceholders()
    sets = []
    for number, (name, value) in enumerate(new.items()):
        expressions.values[f":s{number}"] = value
        label = expressions.name(name, f"s{number}")
        before = f"{label} {added[name]} " if name in added else ""
        sets.append(f"{label} = {before}:s{number}")
    gone = [
        expressions.name(attribute.name, f"r{place}") for place, attribute in enumerate(removed)
    ]
    clauses = [f"SET {', '.join(sets)}"] if sets else []
    clauses += [f"REMOVE {', '.join(gone)}"] if gone else []
    condition = f"attribute_exists({expressions.name(table.partition_key.name, 'k0')})"
    if unchanged:
        condition += f" AND {expressions.joined(unchanged, 'f')}"
    content = {
        "TableName": table.name,
        "Key": {name: item[name] for name in (key.name for key in table.keys)},
        **({"UpdateExpression": " ".join(clauses)} if clauses else {}),
        "ConditionExpression": condition,
        **expressions.members(),
    }
    hints = [
        f"{attribute.name} exists only while {attribute.when}: set it to {attribute.constant!r}"
        " then, and remove it otherwise."
        for attribute in removed
    ]
    return PatternRequest(
        operation="UpdateItem",
        input=content,
        table=table.name,
        key=key_tests(table, item, access),
        filter=unchanged,
        item=new,
        added=added,
        removed=[attribute.name for attribute in removed],
        must="exists",
        afterwards=" ".join([*hints, *([REFUSED] if unchanged else [])]),
    )


def delete(
    table: TableDesign,
    item: Item,
    access: PatternAccess | None,
    unchanged: list[RequestTest] | None = None,
) -> PatternRequest:
    content: dict[str, Any] = {
        "TableName": table.name,
        "Key": {key.name: item[key.name] for key in table.keys},
    }
    if unchanged:
        expressions = ExpressionPlaceholders()
        content["ConditionExpression"] = expressions.joined(unchanged, "f")
        content |= expressions.members()
    return PatternRequest(
        operation="DeleteItem",
        input=content,
        table=table.name,
        key=key_tests(table, item, access),
        filter=unchanged or [],
        afterwards=REFUSED if unchanged else "",
    )


def transaction(parts: list[PatternRequest]) -> PatternRequest:
    verbs = {"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete"}
    return PatternRequest(
        operation="TransactWriteItems",
        input={"TransactItems": [{verbs[part.operation]: part.input} for part in parts]},
        table=parts[0].table,
        key=parts[0].key,
        afterwards=parts[0].afterwards,
        parts=parts,
    )

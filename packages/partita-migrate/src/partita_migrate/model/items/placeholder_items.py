"""Placeholder items, invented from a design alone: for drawings and for NoSQL Workbench."""

from __future__ import annotations

from base64 import b64encode

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import Entity, ItemAttribute
from partita_migrate.model.keys.key_templates import SHARD, TemplateField, filled
from partita_migrate.understanding.measuring.made_up_texts import made_up
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.name_words import singular


def sample_item(entity: Entity, number: int) -> Item:
    """Returns the `number`-th item. The same number stands for the same row everywhere, so that
    items join."""
    return {attribute.name: _value(attribute, number) for attribute in entity.attributes}


def _value(attribute: ItemAttribute, number: int) -> AttributeValue:
    if attribute.constant is not None:
        return _typed(attribute.type, attribute.constant, number)
    if attribute.template is not None:
        return {"S": filled(attribute.template, lambda part: _filled(part, number))}
    if attribute.expires is not None:
        return {"N": str(1_800_000_000 + number * 86_400)}
    if attribute.collect:
        return _members(attribute, number)
    return _typed(
        attribute.type, made_up(ColumnRef.parse(attribute.column or "").column, number), number
    )


def _filled(part: TemplateField, number: int) -> str:
    if part.name == SHARD:
        return str(number % 10)
    if part.format.startswith("0"):
        return str(number).zfill(int(part.format))
    return made_up(ColumnRef.parse(part.name).column, number)


def _typed(kind: str, text: str, number: int) -> AttributeValue:
    if kind == "N":
        return {"N": text if text.lstrip("-").isdigit() else str(number)}
    if kind == "BOOL":
        return {"BOOL": bool(number % 2)}
    if kind == "B":
        return {"B": b64encode(text.encode()).decode()}
    if kind in ("SS", "NS", "BS"):
        return {"SS": [text]} if kind == "SS" else {kind: [str(number)]}
    if kind == "L":
        return {"L": [{"S": text}]}
    if kind == "M":
        return {"M": {"value": {"S": text}}}
    return {"S": text}


def _members(attribute: ItemAttribute, number: int) -> AttributeValue:
    columns = [ColumnRef.parse(name) for name in attribute.collect]
    if attribute.type in ("SS", "NS", "BS"):
        owner = singular(columns[0].table.rpartition(".")[2])
        values = [f"{owner}{number}", f"{owner}{number + 1}"]
        return {"SS": values} if attribute.type == "SS" else {"NS": [str(number), str(number + 1)]}
    member = {ref.column: {"S": made_up(ref.column, number)} for ref in columns}
    return {"L": [{"M": member}]}

"""The parameters that expressions replaced: Expected, AttributeUpdates, KeyConditions, filters."""

from __future__ import annotations

from collections.abc import Collection

from ..notation import Body, Value
from .dice import Dice
from .requests import maybe
from .tables import ATTRIBUTES, Table, attribute_value
from .values import SETS, needle, value

SORTABLE = ("S", "N", "B")
OPERATORS = (
    *("EQ", "EQ", "NE", "LT", "LE", "GT", "GE", "BETWEEN", "IN"),
    *("NULL", "NOT_NULL", "CONTAINS", "NOT_CONTAINS", "BEGINS_WITH"),
)


def conditions(dice: Dice, table: Table, avoid: Collection[str] = ()) -> Body:
    names = [name for name in (*ATTRIBUTES, *table.key_kinds) if name not in avoid]
    return {name: condition(dice, table, name) for name in dice.some(names, 1, 3)}


def condition(dice: Dice, table: Table, name: str) -> Body:
    operator = dice.choice(OPERATORS)
    return _written(operator, _operands(dice, table, name, operator))


def _written(operator: str, operands: list[Value]) -> Body:
    body: Body = {"ComparisonOperator": operator}
    return body | ({"AttributeValueList": operands} if operands else {})


def _operands(dice: Dice, table: Table, name: str, operator: str) -> list[Value]:
    if operator in ("NULL", "NOT_NULL"):
        return []
    usual = attribute_value(dice, table, name)
    if operator in ("EQ", "NE"):
        return [usual]
    kind = next(iter(usual))
    scalar = kind if kind in SORTABLE else kind[0] if kind in SETS else dice.choice(SORTABLE)
    if operator in ("CONTAINS", "NOT_CONTAINS"):
        return [needle(dice, scalar)]
    if operator in ("LT", "LE", "GT", "GE"):
        return [value(dice, scalar)]
    if operator == "BEGINS_WITH":
        return [value(dice, "B" if scalar == "B" else "S")]
    if operator == "BETWEEN":
        return [value(dice, scalar), value(dice, scalar)]
    return dice.times(1, 3, lambda: value(dice, scalar))


def operator(dice: Dice, conditions: Body) -> Body:
    """Returns the ConditionalOperator, which is not allowed for a single condition."""
    probability = 0.5 if len(conditions) > 1 else 0.01
    return maybe(dice, probability, "ConditionalOperator", ("AND", "OR", "OR"))


def expected(dice: Dice, table: Table) -> Body:
    if dice.chance(0.4):
        return {}
    body = {}
    for name in dice.some((*ATTRIBUTES, *table.key_kinds), 1, 3):
        body[name] = _expectation(dice, table, name)
    return {"Expected": body} | operator(dice, body)


def _expectation(dice: Dice, table: Table, name: str) -> Body:
    if dice.chance(0.2):
        return {"Exists": False}
    if dice.chance(0.3):
        return {"Value": attribute_value(dice, table, name)} | maybe(dice, 0.3, "Exists", (True,))
    return condition(dice, table, name)


def attribute_updates(dice: Dice, table: Table) -> Body:
    names = dice.some(ATTRIBUTES, 1, 4)
    return {"AttributeUpdates": {name: _update(dice, table, name) for name in names}}


def _update(dice: Dice, table: Table, name: str) -> Body:
    new = attribute_value(dice, table, name)
    kind = next(iter(new))
    if dice.chance(0.2):
        return {"Action": "DELETE"}
    if kind in SETS and dice.chance(0.6):
        return {"Action": dice.choice(("ADD", "DELETE")), "Value": new}
    if kind in ("N", "L") and dice.chance(0.6):
        return {"Action": "ADD", "Value": new}
    return {"Action": "PUT", "Value": new}


def attributes_to_get(dice: Dice, table: Table) -> Body:
    return {"AttributesToGet": dice.some((*ATTRIBUTES, *table.key_kinds), 1, 4)}

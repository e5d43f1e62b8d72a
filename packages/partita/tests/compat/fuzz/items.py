"""PutItem, GetItem, UpdateItem and DeleteItem, batches and transactions of them."""

from __future__ import annotations

from typing import Any

from ..notation import Body
from . import legacy
from .dice import Dice
from .expressions import Expressions
from .requests import Request, capacity, maybe, table
from .tables import TABLES, Table, item, key, place

ON_FAILURE = "ReturnValuesOnConditionCheckFailure"
UPDATE_RETURNS = ("NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW", "UPDATED_NEW")
LEGACY = 0.2


def put_item(dice: Dice) -> Request:
    return _single(dice, "PutItem", "Item")


def delete_item(dice: Dice) -> Request:
    return _single(dice, "DeleteItem", "Key")


def _single(dice: Dice, operation: str, target: str) -> Request:
    used = table(dice)
    body: Body = {"TableName": used.name, target: (item if target == "Item" else key)(dice, used)}
    body |= maybe(dice, 0.5, "ReturnValues", ("ALL_OLD", "ALL_OLD", "NONE"))
    if dice.chance(LEGACY):
        body |= legacy.expected(dice, used)
    else:
        body |= _condition(Expressions(dice, used), 0.5)
    return Request(operation, body | capacity(dice))


def _condition(expressions: Expressions, probability: float) -> Body:
    body: Body = {}
    if expressions.dice.chance(probability):
        body["ConditionExpression"] = expressions.condition()
        body |= maybe(expressions.dice, 0.5, ON_FAILURE, ("ALL_OLD", "NONE"))
    return body | expressions.placeholders()


def update_item(dice: Dice) -> Request:
    used = table(dice)
    body: Body = {"TableName": used.name, "Key": key(dice, used)}
    body |= maybe(dice, 0.8, "ReturnValues", UPDATE_RETURNS)
    if dice.chance(LEGACY):
        body |= legacy.attribute_updates(dice, used) | legacy.expected(dice, used)
    else:
        expressions = Expressions(dice, used)
        if dice.chance(0.97):
            body["UpdateExpression"] = expressions.update()
        body |= _condition(expressions, 0.3)
    return Request("UpdateItem", body | capacity(dice))


def get_item(dice: Dice) -> Request:
    used = table(dice)
    body: Body = {"TableName": used.name, "Key": key(dice, used)}
    body |= maybe(dice, 0.5, "ConsistentRead", (True, True, False))
    return Request("GetItem", body | _projection(dice, used) | capacity(dice))


def _projection(dice: Dice, used: Table) -> Body:
    if dice.chance(0.1):
        return legacy.attributes_to_get(dice, used)
    if dice.chance(0.3):
        return {}
    expressions = Expressions(dice, used)
    return {"ProjectionExpression": expressions.projection()} | expressions.placeholders()


def batch_get_item(dice: Dice) -> Request:
    asked: Body = {}
    for used in dice.some(TABLES, 1, 2):
        one: Body = {"Keys": _different_keys(dice, used)} | _projection(dice, used)
        asked[used.name] = one | maybe(dice, 0.3, "ConsistentRead", (True, False))
    paths = tuple(f"Responses.{name}" for name in asked)
    return Request("BatchGetItem", {"RequestItems": asked} | capacity(dice), paths)


def _different_keys(dice: Dice, used: Table) -> list[Any]:
    keys = {place(used, one): one for one in dice.times(1, 6, lambda: key(dice, used))}
    return list(keys.values())


def batch_write_item(dice: Dice) -> Request:
    asked: Body = {}
    for used in dice.some(TABLES, 1, 2):
        asked[used.name] = [_batched(dice, used, one) for one in _different_keys(dice, used)]
    return Request("BatchWriteItem", {"RequestItems": asked} | capacity(dice))


def _batched(dice: Dice, used: Table, one: Body) -> Body:
    if dice.chance(0.3):
        return {"DeleteRequest": {"Key": one}}
    return {"PutRequest": {"Item": item(dice, used) | one}}


def transact_get_items(dice: Dice) -> Request:
    gets = dice.times(1, 4, lambda: {"Get": _transact_get(dice)})
    return Request("TransactGetItems", {"TransactItems": gets} | capacity(dice))


def _transact_get(dice: Dice) -> Body:
    used = table(dice)
    body: Body = {"TableName": used.name, "Key": key(dice, used)}
    if dice.chance(0.6):
        expressions = Expressions(dice, used)
        body["ProjectionExpression"] = expressions.projection()
        body |= expressions.placeholders()
    return body


def transact_write_items(dice: Dice) -> Request:
    actions: dict[str, Body] = {}
    for _ in range(dice.randint(1, 4)):
        used = table(dice)
        name, body = _transact_action(dice, used)
        actions[place(used, body["Item" if name == "Put" else "Key"])] = {name: body}
    asked = {"TransactItems": list(actions.values())}
    return Request("TransactWriteItems", asked | capacity(dice))


def _transact_action(dice: Dice, used: Table) -> tuple[str, Body]:
    name = dice.choice(("Put", "Update", "Update", "Delete", "ConditionCheck"))
    expressions = Expressions(dice, used)
    target: Body = {"Item": item(dice, used)} if name == "Put" else {"Key": key(dice, used)}
    body: Body = {"TableName": used.name} | target
    if name == "Update":
        body["UpdateExpression"] = expressions.update()
    needed = 1.0 if name == "ConditionCheck" else 0.4
    return name, body | _condition(expressions, needed)

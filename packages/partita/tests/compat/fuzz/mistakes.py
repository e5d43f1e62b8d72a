"""A mistake in a request that had none: errors are answers too."""

from __future__ import annotations

from dataclasses import replace

from ..notation import Body
from .dice import Dice
from .requests import Request
from .values import value


def with_a_mistake(dice: Dice, request: Request) -> Request:
    body = dict(request.body)
    mistakes = (_unused_value, _unused_name, _undefined, _other_key, _lacking, _repeated)
    dice.choice(mistakes)(dice, body)
    return replace(request, body=body)


def _unused_value(dice: Dice, body: Body) -> None:
    body["ExpressionAttributeValues"] = {
        **body.get("ExpressionAttributeValues", {}),
        ":unused": value(dice),
    }


def _unused_name(dice: Dice, body: Body) -> None:
    body["ExpressionAttributeNames"] = {
        **body.get("ExpressionAttributeNames", {}),
        "#unused": "unused",
    }


def _undefined(dice: Dice, body: Body) -> None:
    """A placeholder that an expression uses is not there."""
    for member in ("ExpressionAttributeValues", "ExpressionAttributeNames"):
        given = dict(body.get(member, {}))
        if given:
            del given[dice.choice(list(given))]
            body[member] = given


def _other_key(dice: Dice, body: Body) -> None:
    """A key attribute of another type, too much or missing."""
    for member in ("Key", "Item"):
        if member in body:
            given = dict(body[member])
            name = dice.choice(("pk", "sk", "n"))
            if dice.chance(0.3):
                given.pop(name, None)
            else:
                given[name] = value(dice)
            body[member] = given


def _lacking(dice: Dice, body: Body) -> None:
    names = [name for name in body if name != "TableName"]
    if names:
        del body[dice.choice(names)]


def _repeated(dice: Dice, body: Body) -> None:
    """Repeats one request of a batch or transaction."""
    for member in ("TransactItems", "Statements", "TransactStatements"):
        if member in body:
            body[member] = [*body[member], dice.choice(body[member])]
    if "RequestItems" in body:
        name = dice.choice(list(body["RequestItems"]))
        asked = body["RequestItems"][name]
        body["RequestItems"] = {
            **body["RequestItems"],
            name: [*asked, dice.choice(asked)]
            if isinstance(asked, list)
            else {**asked, "Keys": [*asked["Keys"], dice.choice(asked["Keys"])]},
        }

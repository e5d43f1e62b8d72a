"""Requests of all data operations, with expressions and with the parameters from before them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..notation import Body
from .dice import Dice
from .tables import TABLES, Table


@dataclass(frozen=True)
class Request:
    """A request, and how the responses of two servers to it are compared.

    `unordered` are the lists of the answer that have no order, as paths. Items of an index come
    in the order of `order_by`, those with the same value in any. With `to_the_end` all pages are
    asked for; with `segments` those of every segment of a parallel scan.
    """

    operation: str
    body: Body
    unordered: tuple[str, ...] = ()
    order_by: str | None = None
    to_the_end: bool = False
    segments: int = 0

    @property
    def tables(self) -> tuple[Table, ...]:
        text = json.dumps(self.body)
        return tuple(table for table in TABLES if table.name in text)

    @property
    def writes(self) -> bool:
        if self.operation in WRITES:
            return True
        statements = [self.body, *self.body.get("Statements", ())]
        statements += self.body.get("TransactStatements", ())
        return any(_changes(one.get("Statement", "")) for one in statements)


WRITES = frozenset(("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"))
Make = Callable[[Dice], Request]


def _changes(statement: str) -> bool:
    return statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE", "EXISTS"))


def table(dice: Dice) -> Table:
    return dice.choices(TABLES, (3, 4, 2, 1))[0]


def maybe(dice: Dice, probability: float, name: str, options: Sequence[Any]) -> Body:
    """A member of a request that is there at times, with one of some values."""
    return {name: dice.choice(options)} if dice.chance(probability) else {}


def capacity(dice: Dice) -> Body:
    return maybe(dice, 0.3, "ReturnConsumedCapacity", ("TOTAL", "INDEXES", "INDEXES", "NONE"))

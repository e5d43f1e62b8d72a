"""Generates requests: a round is a sequence of requests that is made from one seed."""

from __future__ import annotations

from collections.abc import Iterator

from . import items, reading, statements
from .dice import Dice
from .mistakes import with_a_mistake
from .requests import Make, Request
from .tables import TABLES, Item, item

ROUND_REQUESTS = 100
FIRST_ITEMS = 12
MISTAKE = 0.03

MAKERS: tuple[tuple[int, Make], ...] = (
    (10, items.put_item),
    (8, items.get_item),
    (22, items.update_item),
    (6, items.delete_item),
    (16, reading.query),
    (14, reading.scan),
    (4, items.batch_get_item),
    (3, items.batch_write_item),
    (4, items.transact_get_items),
    (8, items.transact_write_items),
    (14, statements.execute_statement),
    (4, statements.batch_execute_statement),
    (4, statements.execute_transaction),
)


def first_items(seed: int) -> dict[str, list[Item]]:
    """Returns the content of the tables at the beginning of the round of a seed."""
    dice = Dice(f"items {seed}")
    return {table.name: [item(dice, table) for _ in range(FIRST_ITEMS)] for table in TABLES}


def requests(seed: int) -> Iterator[Request]:
    dice = Dice(f"requests {seed}")
    for _ in range(ROUND_REQUESTS):
        request = dice.weighted(MAKERS)(dice)
        yield with_a_mistake(dice, request) if dice.chance(MISTAKE) else request

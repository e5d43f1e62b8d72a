"""Conditions on a row, by which an attribute is there or not: what makes an index sparse.

`returned_on is null`, `returned_on is not null` or `status = open`, of a column of the entity's own
row.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

from partita.database.item.values import Item
from partita.migrate.model.key_texts import plain_text
from partita.migrate.understanding.schema.column_refs import QUOTED, Ref

RowTest = Literal["is null", "is not null", "="]
_CONDITION = re.compile(rf"({QUOTED}|.+?) (is null|is not null|= (.*))", re.DOTALL)


class RowCondition(NamedTuple):
    column: str
    test: RowTest
    value: str = ""

    def __str__(self) -> str:
        value = f" {self.value}" if self.test == "=" else ""
        return f"{Ref('', self.column)} {self.test}{value}"

    def holds(self, row: Item) -> bool:
        value = row.get(self.column)
        if self.test == "is null":
            return value is None
        return value is not None and (self.test != "=" or plain_text(value) == self.value)


def parse_condition(text: str) -> RowCondition | None:
    """None when it is none."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        return None
    column = Ref.parse(found[1]).column
    for test in get_args(RowTest):
        if found[2] == test:
            return RowCondition(column, test)
    return RowCondition(column, "=", found[3])

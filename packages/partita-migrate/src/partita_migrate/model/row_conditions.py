"""Conditions on a row, by which an attribute is there or not: what makes an index sparse.

`returned_on is null`, `returned_on is not null` or `status = open`, of a column of the entity's own
row; `status:utf8mb4_unicode_ci = OPEN` compares as a collation does.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

from partita.database.item.values import AttributeValue, Item
from partita_migrate.model.key_texts import plain_text
from partita_migrate.understanding.schema.column_refs import QUOTED, Ref
from partita_migrate.understanding.schema.text_folds import folding

RowTest = Literal["is null", "is not null", "="]
_CONDITION = re.compile(rf"({QUOTED}|.+?)(?::(\w+))? (is null|is not null|= (.*))", re.DOTALL)


class RowCondition(NamedTuple):
    column: str
    test: RowTest
    value: str = ""
    """Folded."""
    fold: str = ""

    def __str__(self) -> str:
        fold = f":{self.fold}" if self.fold else ""
        value = f" {self.value}" if self.test == "=" else ""
        return f"{Ref('', self.column)}{fold} {self.test}{value}"

    def holds(self, row: Item) -> bool:
        value = row.get(self.column)
        if self.test == "is null":
            return value is None
        return value is not None and (self.test != "=" or self.is_value(value))

    def is_value(self, value: AttributeValue) -> bool:
        """Whether the source takes a value for the one that is asked for."""
        text = plain_text(value)
        return (folding(self.fold)(text) if self.fold else text) == self.value


def parse_condition(text: str) -> RowCondition | None:
    """None when it is none."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        return None
    column = Ref.parse(found[1]).column
    for test in get_args(RowTest):
        if found[3] == test:
            return RowCondition(column, test)
    return RowCondition(column, "=", found[4], found[2] or "")

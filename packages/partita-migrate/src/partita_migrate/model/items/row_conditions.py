"""Conditions on a row that decide whether its item has an attribute. They make an index sparse.

A condition is `returned_on is null`, `returned_on is not null` or `status = open`, on a column of
the entity's own row. `status:utf8mb4_unicode_ci = OPEN` compares as that collation does.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.keys.key_formats import plain_text
from partita_migrate.understanding.schema.column_refs import QUOTED, ColumnRef
from partita_migrate.understanding.schema.text_folds import folding

RowTest = Literal["is null", "is not null", "="]
_CONDITION = re.compile(rf"({QUOTED}|.+?)(?::(\w+))? (is null|is not null|= (.*))", re.DOTALL)


class RowCondition(NamedTuple):
    column: str
    test: RowTest
    value: str = ""
    """The text to compare with, already folded."""
    fold: str = ""

    def __str__(self) -> str:
        fold = f":{self.fold}" if self.fold else ""
        value = f" {self.value}" if self.test == "=" else ""
        return f"{ColumnRef('', self.column)}{fold} {self.test}{value}"

    def holds(self, row: Item) -> bool:
        value = row.get(self.column)
        if self.test == "is null":
            return value is None
        return value is not None and (self.test != "=" or self.is_value(value))

    def is_value(self, value: AttributeValue) -> bool:
        """True when the source compares the value as equal to the condition's."""
        text = plain_text(value)
        return (folding(self.fold)(text) if self.fold else text) == self.value


def parse_condition(text: str) -> RowCondition | None:
    """Returns None for a text that is not a condition."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        return None
    column = ColumnRef.parse(match[1]).column
    for test in get_args(RowTest):
        if match[3] == test:
            return RowCondition(column, test)
    return RowCondition(column, "=", match[4], match[2] or "")

"""Tests the conditions of sparse indexes: their syntax and the rows that meet them."""

from __future__ import annotations

import pytest

from partita_migrate.model.items.row_conditions import RowCondition, parse_condition


@pytest.mark.parametrize(
    "condition",
    [
        RowCondition("returned_on", "is null"),
        RowCondition("a:b", "is not null"),
        RowCondition("status", "=", "open"),
        RowCondition("status", "=", "OPEN", "ai"),
        RowCondition("a:ai", "=", "", "pad"),
    ],
)
def test_a_condition_is_read_as_it_is_written(condition: RowCondition) -> None:
    assert parse_condition(str(condition)) == condition


def test_a_folded_condition_holds_for_what_the_collation_takes_for_the_same() -> None:
    plain, folded = RowCondition("s", "=", "open"), RowCondition("s", "=", "OPEN", "ai")
    rows = [{"s": {"S": text}} for text in ("open", "Open ", "opén", "opened")]
    assert [plain.holds(row) for row in rows] == [True, False, False, False]
    assert [folded.holds(row) for row in rows] == [True, True, True, False]
    assert not folded.holds({})

"""Schedule expressions as AWS writes them, and the entries of partita.toml."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from partita.database.capacity.scaling.capacity_schedules import (
    parse_schedule,
    scheduled_change,
    scheduled_changes,
)
from partita.errors import PartitaError


def minute(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) // 60


@pytest.mark.parametrize(
    ("expression", "due", "not_due"),
    [
        ("at(2026-12-01T08:00:00)", "2026-12-01T08:00", "2026-12-02T08:00"),
        ("rate(5 minutes)", "2026-12-01T08:05", "2026-12-01T08:06"),
        ("rate(1 day)", "2026-12-01T00:00", "2026-12-01T01:00"),
        ("cron(0 8 * * ? *)", "2026-12-01T08:00", "2026-12-01T08:01"),
        ("cron(0/15 10 * * ? *)", "2026-12-01T10:45", "2026-12-01T10:46"),
        # 2026-12-04 is a Friday.
        ("cron(30 9 ? * MON-FRI *)", "2026-12-04T09:30", "2026-12-05T09:30"),
        ("cron(0 0 ? * 7 *)", "2026-12-05T00:00", "2026-12-06T00:00"),
        ("cron(0 0 1,15 JAN-MAR ? 2027)", "2027-02-15T00:00", "2028-02-15T00:00"),
    ],
)
def test_expressions(expression: str, due: str, not_due: str) -> None:
    is_due = parse_schedule(expression)
    assert is_due(60.0 * minute(due) - 1, 60.0 * minute(due))
    assert not is_due(60.0 * minute(not_due) - 1, 60.0 * minute(not_due))


def test_a_moment_is_met_to_the_second() -> None:
    is_due = parse_schedule("at(2026-12-01T08:00:41)")
    eight = 60.0 * minute("2026-12-01T08:00")
    assert not is_due(eight - 1, eight + 40)
    assert is_due(eight + 40, eight + 41)
    assert not is_due(eight + 41, eight + 100)
    assert is_due(eight, eight + 365 * 24 * 3600)


@pytest.mark.parametrize(
    "expression",
    [
        *("", "8 o'clock", "cron(0 8 * * *)", "cron(60 8 * * ? *)", "cron(x 8 * * ? *)"),
        *("cron(0 8 ? * MON#1 *)", "rate(0 minutes)", "rate(5 weeks)", "at(tomorrow)"),
        *(
            "cron(0 8 ? * FRI-MON *)",
            "cron(0/0 8 * * ? *)",
            "cron(0/-5 8 * * ? *)",
            "at(2026-12-01T08:00:00+02:00)",
        ),
    ],
)
def test_what_is_no_schedule_is_refused_in_a_sentence(expression: str) -> None:
    with pytest.raises(PartitaError, match=r"\.$"):
        parse_schedule(expression)


ENTRY = {"table": "votes", "schedule": "cron(0 8 * * ? *)", "write_minimum": 100}


def test_an_entry() -> None:
    change = scheduled_change(ENTRY)
    assert (change.table, change.index, change.units) == ("votes", None, {"write_minimum": 100})
    at_eight = minute("2026-12-01T08:00") * 60.0
    assert change.is_due_between(at_eight - 1, at_eight + 1)
    assert not change.is_due_between(at_eight, at_eight + 59)
    assert change.is_due_between(at_eight - 1, at_eight + 30 * 24 * 3600)
    assert not change.is_due_between(at_eight + 60, at_eight - 3600)


@pytest.mark.parametrize(
    "more",
    [
        {"table": 5},
        {"schedule": "now"},
        {"write_minimum": 0},
        {"write_minimum": "many"},
        {"write_minimum": True},
        {"write_maximum": 99},
        {"units": 5},
    ],
)
def test_a_wrong_entry_is_refused_in_a_sentence(more: dict[str, Any]) -> None:
    with pytest.raises(PartitaError, match=r"\.$"):
        scheduled_change(ENTRY | more)


def test_an_entry_must_change_something() -> None:
    with pytest.raises(PartitaError, match="changes nothing"):
        scheduled_change({"table": "votes", "schedule": "rate(1 day)"})


def test_the_section() -> None:
    assert [change.table for change in scheduled_changes({"schedule": [ENTRY]})] == ["votes"]
    assert scheduled_changes({}) == []
    for wrong in ({"schedules": [ENTRY]}, {"schedule": ENTRY}):
        with pytest.raises(PartitaError):
            scheduled_changes(wrong)

"""Schedule expressions: when a schedule runs next."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from partita_services.functions.schedules.schedule_expressions import (
    InvalidScheduleExpression,
    parse,
)


def moment(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def following(expression: str, after: str, count: int = 1, zone: str = "UTC") -> list[str]:
    step, now, found = parse(expression, zone, 0.0), moment(after, zone), []
    for _ in range(count):
        due = step(now)
        if due is None:
            break
        now = due
        found.append(datetime.fromtimestamp(now, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("cron(0 10 * * ? *)", ["2026-11-17 10:00", "2026-11-18 10:00"]),
        ("cron(15 12 * * ? *)", ["2026-11-16 12:15", "2026-11-17 12:15"]),
        ("cron(0 18 ? * MON-FRI *)", ["2026-11-16 18:00", "2026-11-17 18:00"]),
        ("cron(0 8 1 * ? *)", ["2026-12-01 08:00", "2027-01-01 08:00"]),
        ("cron(0/15 * * * ? *)", ["2026-11-16 12:15", "2026-11-16 12:30"]),
        ("cron(0/10 * ? * MON-FRI *)", ["2026-11-16 12:10", "2026-11-16 12:20"]),
        ("cron(30 9 L * ? *)", ["2026-11-30 09:30", "2026-12-31 09:30"]),
        ("cron(0 9 15W * ? *)", ["2026-12-15 09:00", "2027-01-15 09:00"]),
        ("cron(0 9 ? * 2#1 *)", ["2026-12-07 09:00", "2027-01-04 09:00"]),
        ("cron(0 9 ? * 6L *)", ["2026-11-27 09:00", "2026-12-25 09:00"]),
        ("cron(0 0 29 2 ? *)", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("cron(0 0 1 JAN ? 2027,2029)", ["2027-01-01 00:00", "2029-01-01 00:00"]),
        ("cron(0 0 1 1 ? 2020)", []),
        ("at(2026-11-16T13:00:00)", ["2026-11-16 13:00"]),
        ("at(2026-11-16T11:00:00)", []),
    ],
)
def test_when_it_runs_next(expression: str, expected: list[str]) -> None:
    assert following(expression, "2026-11-16T12:00:00", 2) == expected


def test_weekdays_near_the_end_of_a_month_stay_in_it() -> None:
    # The 31st of October 2026 is a Saturday, the 1st of August as well.
    assert following("cron(0 9 LW * ? *)", "2026-10-01T00:00:00") == ["2026-10-30 09:00"]
    assert following("cron(0 9 1W * ? *)", "2026-07-31T00:00:00") == ["2026-08-03 09:00"]


def test_rates_count_from_where_they_began() -> None:
    step = parse("rate(5 minutes)", "UTC", 1000.0)
    assert [step(1000.0), step(1299.0), step(1300.0)] == [1300.0, 1300.0, 1600.0]


def test_hours_that_a_change_of_the_clock_leaves_out_are_left_out() -> None:
    found = following("cron(30 2 * * ? *)", "2026-03-28T12:00:00", 2, "Europe/Berlin")
    assert found == ["2026-03-30 02:30", "2026-03-31 02:30"]


def test_hours_that_come_twice_count_once() -> None:
    found = following("cron(30 2 * * ? *)", "2026-10-24T12:00:00", 2, "Europe/Berlin")
    assert found == ["2026-10-25 02:30", "2026-10-26 02:30"]


def test_time_zones_are_those_of_the_places() -> None:
    step = parse("cron(0 12 * * ? *)", "America/New_York", 0.0)
    due = step(moment("2026-07-01T00:00:00"))
    assert due is not None
    assert datetime.fromtimestamp(due, UTC).hour == 16


@pytest.mark.parametrize(
    "expression",
    [
        "", "rate(5)", "rate(1 minutes)", "rate(2 minute)", "rate(0 days)", "rate(-1 days)",
        "cron()", "cron(0 10 * * *)", "cron(0 10 * * * *)", "cron(0 10 ? * ? *)",
        "cron(60 10 * * ? *)", "cron(0 24 * * ? *)", "cron(0 10 32 * ? *)", "cron(0 10 * 13 ? *)",
        "cron(0 10 ? * 8 *)", "cron(0 10 ? * MON#6 *)", "cron(x 10 * * ? *)", "cron(0/0 * * * ? *)",
        "cron(5-1 * * * ? *)", "at(2026-02-30T00:00:00)", "at(tomorrow)",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(InvalidScheduleExpression):
        parse(expression, "UTC", 0.0)


def test_a_time_zone_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidScheduleExpression, match="Timezone"):
        parse("rate(1 day)", "Middle/Earth", 0.0)

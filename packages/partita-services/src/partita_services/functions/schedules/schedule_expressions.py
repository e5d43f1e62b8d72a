"""Schedule expressions: rate(5 minutes), cron(0 10 * * ? *), at(2026-11-20T13:00:00).

(EventBridge Scheduler guide, "Schedule types") An expression is parsed into a function from a time
to the next due time.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from math import floor
from typing import NamedTuple
from zoneinfo import ZoneInfo

from partita.errors import PartitaError

Next = Callable[[float], float | None]
"""The next due time after a time, in seconds since the epoch; None when the schedule has ended."""

UNITS = {"minute": 60, "hour": 3600, "day": 86_400}
MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
WEEKDAYS = {"SUN": 1, "MON": 2, "TUE": 3, "WED": 4, "THU": 5, "FRI": 6, "SAT": 7}
YEARS = (1970, 2199)
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)(s?)\)")
_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
_CRON = re.compile(r"cron\(([^()]*)\)")


class InvalidScheduleExpression(PartitaError):
    """Raised for a malformed expression or an unknown time zone."""


def parse(expression: str, timezone: str, since: float, time_scale: float = 1.0) -> Next:
    """Parse an expression. Rates count from `since`, and are divided by `time_scale`."""
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise InvalidScheduleExpression(
            f"Invalid Schedule Expression Timezone {timezone}."
        ) from None
    try:
        if match := _RATE.fullmatch(expression):
            return _rate(int(match[1]), match[2], match[3], since, time_scale)
        if match := _AT.fullmatch(expression):
            moment = datetime.fromisoformat(match[1]).replace(tzinfo=zone).timestamp()
            return lambda after: moment if moment > after else None
        if match := _CRON.fullmatch(expression):
            return _cron(match[1], zone)
    except ValueError:
        pass
    raise InvalidScheduleExpression(f"Invalid Schedule Expression {expression}.")


def _rate(count: int, unit: str, plural: str, since: float, time_scale: float) -> Next:
    if count == 0 or (count == 1) == bool(plural):
        raise ValueError
    seconds = count * UNITS[unit] / time_scale

    def following(after: float) -> float:
        return since + seconds * max(1, floor((after - since) / seconds) + 1)

    return following


class Cron(NamedTuple):
    minutes: frozenset[int]
    hours: frozenset[int]
    days: str
    months: frozenset[int]
    weekdays: str
    years: frozenset[int]

    def matches(self, day: date) -> bool:
        if day.year not in self.years or day.month not in self.months:
            return False
        if self.weekdays == "?":
            return _is_day_of_month(self.days, day)
        return _is_weekday(self.weekdays, day)


def _cron(text: str, zone: ZoneInfo) -> Next:
    fields = text.split()
    if len(fields) != 6:
        raise ValueError
    minutes, hours, days, months, weekdays, years = (field.upper() for field in fields)
    # Exactly one of day-of-month and day-of-week is "?". (EventBridge Scheduler guide)
    if (days == "?") == (weekdays == "?"):
        raise ValueError
    cron = Cron(
        frozenset(_values(minutes, 0, 59)),
        frozenset(_values(hours, 0, 23)),
        days,
        frozenset(_values(months, 1, 12, MONTHS)),
        weekdays,
        frozenset(_values(years, *YEARS)),
    )
    # These fields are parsed when they are used. A trial run finds the malformed ones now.
    probe = date(2024, 1, 31)
    _is_day_of_month(days, probe)
    _is_weekday(weekdays, probe)
    return lambda after: _next(cron, zone, after)


def _next(cron: Cron, zone: ZoneInfo, after: float) -> float | None:
    start = datetime.fromtimestamp(after, zone)
    for day in _days(cron, start.date()):
        for hour in sorted(cron.hours):
            for minute in sorted(cron.minutes):
                local = datetime.combine(day, time(hour, minute), zone)
                moment = local.timestamp()
                # When the clock goes forward, some local times do not exist. They come back from
                # UTC
                # as another hour.
                exists = datetime.fromtimestamp(moment, UTC).astimezone(zone).hour == hour
                if moment > after and exists:
                    return moment
    return None


def _days(cron: Cron, first: date) -> Iterator[date]:
    day = first
    last = max(cron.years, default=0)
    while day.year <= last:
        if day.year not in cron.years:
            day = date(day.year + 1, 1, 1)
        elif day.month not in cron.months:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        else:
            if cron.matches(day):
                yield day
            day += timedelta(days=1)


def _values(
    field: str, least: int, most: int, names: dict[str, int] | None = None
) -> Iterator[int]:
    """The numbers of a cron field: `*`, lists, ranges, steps."""
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            start, end = least, most
        else:
            start = _number(first, names)
            end = _number(last, names) if dash else (most if slash else start)
        if not least <= start <= end <= most or (slash and int(step) < 1):
            raise ValueError
        yield from range(start, end + 1, int(step) if slash else 1)


def _number(text: str, names: dict[str, int] | None) -> int:
    if names is not None and text in names:
        return names[text]
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def _is_day_of_month(field: str, day: date) -> bool:
    if field in ("*", "?"):
        return True
    last = calendar.monthrange(day.year, day.month)[1]
    if field == "L":
        return day.day == last
    if field == "LW":
        return day == _nearest_weekday(day.replace(day=last))
    if field.endswith("W"):
        number = _number(field[:-1], None)
        if not 1 <= number <= 31:
            raise ValueError
        return number <= last and day == _nearest_weekday(day.replace(day=number))
    return day.day in set(_values(field, 1, 31))


def _nearest_weekday(day: date) -> date:
    """The nearest weekday in the same month."""
    if day.isoweekday() == 6:
        other = day - timedelta(days=1)
        return other if other.month == day.month else day + timedelta(days=2)
    if day.isoweekday() == 7:
        other = day + timedelta(days=1)
        return other if other.month == day.month else day - timedelta(days=2)
    return day


def _is_weekday(field: str, day: date) -> bool:
    if field in ("*", "?"):
        return True
    weekday = day.isoweekday() % 7 + 1
    if "#" in field:
        name, _, count = field.partition("#")
        number, nth = _number(name, WEEKDAYS), _number(count, None)
        if not (1 <= number <= 7 and 1 <= nth <= 5):
            raise ValueError
        return weekday == number and (day.day - 1) // 7 + 1 == nth
    if field.endswith("L") and field != "L":
        number = _number(field[:-1], WEEKDAYS)
        return weekday == number and (day + timedelta(days=7)).month != day.month
    if field == "L":
        return weekday == 7
    return weekday in set(_values(field, 1, 7, WEEKDAYS))
